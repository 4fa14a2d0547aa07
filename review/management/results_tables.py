"""The tables that ``results`` and ``evaluate`` print of a report."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from evaluation.profiles.arithmetic import Label
from review.management.tables import NOTHING, Sheet, number
from review.reports.figure import Figure
from review.reports.figure_notes import why_withheld
from review.reports.report import CategoryLine, Coverage, Latency, Report


def results_sheets(report: Report) -> Iterator[Sheet]:
    """Overall score three ways, metrics with coverage, categories."""
    header = report.header
    yield Sheet(f"{_('Run')} {header.run_id} · {header.name} · {header.state}", (_("what"), _("value")), _about(report))
    yield Sheet(_("Overall score"), (_("score"), _("value"), _("95% interval"), "n", _("note")), _overall(report))
    yield Sheet(
        _("Metrics"),
        (
            _("metric"),
            _("judge only"),
            _("reviewed"),
            _("corrected"),
            _("scored"),
            _("failed"),
            _("not applicable"),
            _("pending"),
        ),
        _metrics(report),
    )
    yield Sheet(_("Categories"), _category_header(report), _categories(report))


def short(figure: Figure, factor: float = 1.0) -> str:
    """The value times a factor, with bounds in brackets where results failed; a dash without one."""
    text = number(None if figure.value is None else figure.value * factor)
    if figure.worst is not None and figure.best is not None:
        text += f" [{figure.worst * factor:.3f}, {figure.best * factor:.3f}]"
    return text


def _about(report: Report) -> list[tuple[str, str]]:
    header, cost = report.header, report.provenance.cost
    judges = ", ".join(header.judges) or _("none")
    if header.baseline_judged:
        judges += " " + _("(offline baseline)")
    spent = f"{cost.known:.4f} USD"
    rows = [
        (_("system"), header.system),
        (_("questions"), header.question_set),
        (_("profile"), header.profile),
        (_("judge"), judges),
        (_("answers"), str(header.answers)),
        (_("cost"), _("at least %(cost)s") % {"cost": spent} if cost.at_least else spent),
    ]
    return [*rows, (_("reason"), header.reason)] if header.reason else rows


def _overall(report: Report) -> Iterator[tuple[str, ...]]:
    overall = report.overall
    if overall.part_only is not None:
        name = _("rules only") if overall.label is Label.RULES_ONLY else _("partial")
        label = _("%(label)s, weight %(weight).2f") % {"label": name, "weight": overall.weight}
        yield _figure_row(label, overall.part_only)
    yield _figure_row(_("judge only"), overall.judge_only)
    yield _figure_row(_("reviewed"), overall.reviewed)
    yield _figure_row(_("corrected"), overall.corrected)


def _figure_row(name: str, figure: Figure) -> tuple[str, ...]:
    interval = NOTHING if figure.low is None else f"{figure.low:.3f} – {figure.high:.3f}"
    note = why_withheld(figure) if figure.withheld else ""
    if not note and figure.target == "questions_like_these":
        note = _("variation over questions, not judge error")
    return name, short(figure), interval, str(figure.n), note


def _metrics(report: Report) -> Iterator[tuple[str, ...]]:
    for line in report.metrics:
        yield (
            line.report_name,
            _seconds(line.latency) if line.latency else short(line.judge_only, line.report_factor),
            short(line.reviewed, line.report_factor),
            short(line.corrected, line.report_factor),
            *_counts(line.coverage),
        )


def _counts(coverage: Coverage) -> tuple[str, ...]:
    return tuple(str(n) for n in (coverage.scored, coverage.failed, coverage.not_applicable, coverage.pending))


def _seconds(latency: Latency) -> str:
    return f"{latency.mean:.2f} s (p50 {latency.p50:.2f}, p95 {latency.p95:.2f})"


def _category_header(report: Report) -> tuple[str, ...]:
    return (_("category"), _("answers"), _("overall"), *(line.report_name for line in report.metrics if line.weight))


def _categories(report: Report) -> Iterator[tuple[str, ...]]:
    weighted = [(line.name, line.report_factor) for line in report.metrics if line.weight]
    for line in report.categories:
        yield (
            line.name or NOTHING,
            str(line.answers),
            short(line.judge_only),
            *(_cell(line, *one) for one in weighted),
        )


def _cell(line: CategoryLine, metric: str, factor: float) -> str:
    return short(line.metrics[metric][0], factor) if metric in line.metrics else NOTHING
