"""Terminal output of commands: tables of reports and comparisons, remarks on judges, and exit codes."""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.translation import gettext as _

from evaluation.connectors.protocol import RETRIEVAL_ONLY
from evaluation.management.output import exit_code, print_pause_reason
from evaluation.messages.explanations import explain_judge_warning
from evaluation.models import Run
from evaluation.profiles.arithmetic import FigureLabel
from review.agreement.run_agreement import cached_agreement
from review.charts.forest import Shape
from review.comparisons.comparison import Comparison
from review.comparisons.difference import MetricDifference, RunDifference, RunOrder
from review.comparisons.values import differing_versions
from review.comparisons.verdict import p_text
from review.management.options import print_gate, warn_undecided_gate
from review.management.profile_tables import profile_sheets
from review.management.sheets import DASH, Sheet, number, write
from review.queues.planning import ReviewPlan, guess_note, next_review, plan_json, plan_sentence
from review.reports.approval_words import approval_reason, approval_state
from review.reports.as_json import summary_json
from review.reports.entries import Entry, Output
from review.reports.figure import Figure, withheld_reason
from review.reports.gate import Gate
from review.reports.inputs import ReportInputs, load_inputs
from review.reports.lines import MetricLine
from review.reports.report import Report, build_report
from review.reports.sections import BY_CATEGORY, COVERAGE, METRICS, OVERALL, RUN, overall_figures, section_facts
from review.reports.verdict import verdict_of
from review.statistics.correction.outcome import Target
from review.statistics.paired_tests.paired import PairedDifference

TERMINAL = Output.TERMINAL


def results_sheets(report: Report) -> Iterator[Sheet]:
    """Yield tables of the run, its overall score, metrics with coverage, and categories.

    Retrieval-only runs have no overall score and no profile tables."""
    header = report.header
    facts = [(str(entry.title), entry.text(value)) for entry, value in section_facts(RUN, report, TERMINAL)]
    yield Sheet(f"{_('Run')} {header.run_id} · {header.name} · {header.state}", (_("item"), _("value")), facts)
    if not _is_retrieval_only(report):
        yield Sheet(_("Overall score"), (_("score"), _("value"), _("95% CI"), "n", _("note")), _overall_rows(report))
    figures, counts = METRICS.entries(TERMINAL), COVERAGE.entries(TERMINAL)
    titles = (str(entry.title) for entry in (*figures, *counts))
    rows = (
        (
            line.report_name,
            *(_metric_text(entry, line) for entry in figures),
            *(entry.text(entry.read(line)) for entry in counts),
        )
        for line in _reported_metrics(report)
    )
    yield Sheet(_("Metrics"), (_("metric"), *titles), rows)
    yield _category_sheet(report)
    if report.approvals:
        approval_rows = (
            (entry.metric, entry.rubric, approval_state(entry), approval_reason(entry)) for entry in report.approvals
        )
        yield Sheet(_("Approvals"), (_("metric"), _("rubric"), _("approval"), _("reason")), approval_rows)
    if not _is_retrieval_only(report):
        yield from profile_sheets(report)


def _is_retrieval_only(report: Report) -> bool:
    return report.provenance.evaluation_type == RETRIEVAL_ONLY


def _reported_metrics(report: Report) -> Iterator[MetricLine]:
    """Return all metrics; for retrieval-only runs those with a value or a failure."""
    retrieval_only = _is_retrieval_only(report)
    return (line for line in report.metrics if not retrieval_only or line.coverage.scored or line.coverage.failed)


def figure_text(figure: Figure, factor: float = 1.0) -> str:
    """Format the value times a factor, with bounds in brackets if results failed; a dash without a value."""
    text = number(None if figure.value is None else figure.value * factor)
    if figure.worst is not None and figure.best is not None:
        text += f" [{figure.worst * factor:.3f}, {figure.best * factor:.3f}]"
    return text


def interval_text(figure: Figure) -> str:
    """Format the interval; a dash without one."""
    return DASH if figure.low is None else f"{figure.low:.3f} – {figure.high:.3f}"


def _overall_rows(report: Report) -> Iterator[tuple[str, ...]]:
    """Yield a figure of some parts first, with its weight; then judge-only, reviewed and corrected."""
    for entry, figure in reversed(overall_figures(report, TERMINAL)):
        title = str(entry.title)
        if entry.mark is Shape.PLAIN:
            name = _("rules only") if report.overall.label is FigureLabel.RULES_ONLY else title
            title = _("%(label)s, weight %(weight).2f") % {"label": name, "weight": report.overall.weight}
        yield _figure_row(title, figure, corrected=entry.mark is Shape.CORRECTED)
    for entry, value in section_facts(OVERALL, report, TERMINAL):
        yield str(entry.title), entry.text(value), DASH, DASH, ""


def _figure_row(name: str, figure: Figure, *, corrected: bool) -> tuple[str, ...]:
    note = withheld_reason(figure) if figure.withheld else ""
    if not note and figure.target == Target.QUESTIONS_LIKE_THESE:
        note = _("questions like these, without judge error")
        if corrected:
            note = _("questions like these, with judge error")
    return name, figure_text(figure), interval_text(figure), str(figure.n), note


def _metric_text(entry: Entry[MetricLine], line: MetricLine) -> str:
    if (latency := line.latency) and entry.mark is Shape.JUDGE:
        return f"{latency.mean:.2f} s (p50 {latency.p50:.2f}, p95 {latency.p95:.2f})"
    return _entry_text(entry, entry.read(line), line.report_factor)


def _entry_text(entry: Entry[Any], value: Any, factor: float = 1.0) -> str:
    return figure_text(value, factor) if isinstance(value, Figure) else entry.text(value)


def _category_sheet(report: Report) -> Sheet:
    """Build the table of categories with weighted metrics; for retrieval-only runs with all measured ones."""
    retrieval_only = _is_retrieval_only(report)
    entries = [entry for entry in BY_CATEGORY.entries(TERMINAL) if not (retrieval_only and entry.name == "judge_only")]
    weighted = [line for line in _reported_metrics(report) if retrieval_only or line.weight]
    header = (_("category"), *(str(entry.title) for entry in entries), *(line.report_name for line in weighted))
    rows = (
        (
            line.name or DASH,
            *(_entry_text(entry, entry.read(line)) for entry in entries),
            *(
                figure_text(line.metrics[metric.name][0], metric.report_factor) if metric.name in line.metrics else DASH
                for metric in weighted
            ),
        )
        for line in report.categories
    )
    return Sheet(_("Categories"), header, rows)


def comparison_sheets(comparison: Comparison) -> Iterator[Sheet]:
    """Yield scores side by side, differing versions, the tests, and the ranking."""
    reports = comparison.reports
    yield _side_by_side(reports)
    yield from system_sheets(reports)
    if differing := differing_versions(reports):
        rows = [(kind, *values) for kind, values in differing.items()]
        header = (_("item"), *(f"{_('run')} {r.header.run_id}" for r in reports))
        yield Sheet(_("Different, so not directly comparable"), header, rows, numbers_from=9)
    for run_difference in comparison.differences:
        yield _difference_sheet(run_difference)
    if comparison.order is not None:
        yield from _order_sheets(comparison.order)


def _side_by_side(reports: Sequence[Report]) -> Sheet:
    names = list(dict.fromkeys(line.name for report in reports for line in report.metrics))
    headers, scores = [report.header for report in reports], [report.overall for report in reports]
    by_run = [{line.name: line for line in report.metrics} for report in reports]
    rows = [
        (_("system"), *(header.system for header in headers)),
        (_("questions"), *(header.question_set for header in headers)),
        (_("profile"), *(header.profile for header in headers)),
        (_("state"), *(header.state for header in headers)),
        (_("overall, judge only"), *(figure_text(overall.judge_only) for overall in scores)),
        (_("overall, reviewed"), *(figure_text(overall.reviewed) for overall in scores)),
        (_("overall, corrected"), *(figure_text(overall.corrected) for overall in scores)),
        *((name, *(figure_text(run[name].judge_only) if name in run else DASH for run in by_run)) for name in names),
    ]
    return Sheet(_("Comparison"), ("", *(f"{_('run')} {r.header.run_id}" for r in reports)), rows)


def _difference_sheet(run_difference: RunDifference) -> Sheet:
    title = _("Run %(run)s minus run %(baseline)s, judge-only scores on the same questions") % {
        "run": run_difference.run_id,
        "baseline": run_difference.baseline_id,
    }
    header = (
        *(_("figure"), _("difference"), _("interval"), "p", _("adjusted p"), _("better"), _("worse"), _("equal")),
        *(_("detectable"), _("gained / lost"), _("corrected difference"), _("flags")),
    )
    overall = (
        _("overall"),
        *_paired_cells(run_difference.overall, run_difference.p_family),
        *_change_cells(run_difference),
    )
    rows = [
        overall,
        *(
            (metric.name, *_paired_cells(metric.paired, metric.p_family), *_change_cells(metric))
            for metric in run_difference.metrics
        ),
    ]
    return Sheet(title, header, rows)


def _change_cells(difference: RunDifference | MetricDifference) -> tuple[str, str, str]:
    passes = difference.passes
    gained = f"{passes.gained} / {passes.lost} (p {p_text(passes.p_value)})" if passes else DASH
    return gained, _corrected_text(difference.corrected), ", ".join(difference.differs)


def _paired_cells(paired: PairedDifference | None, p_family: float | None) -> tuple[str, ...]:
    if paired is None:
        return (DASH,) * 8
    interval = DASH if paired.low is None else f"{paired.low:+.3f} – {paired.high:+.3f}"
    return (
        *(f"{paired.value:+.3f}", interval, p_text(paired.p_value), p_text(p_family)),
        *(str(paired.wins), str(paired.losses), str(paired.ties), number(paired.detectable)),
    )


def _corrected_text(figure: Figure) -> str:
    if figure.value is None:
        return withheld_reason(figure)
    return f"{figure.value:+.3f}" + ("" if figure.low is None else f" ({figure.low:+.3f} – {figure.high:+.3f})")


def _order_sheets(run_order: RunOrder) -> Iterator[Sheet]:
    if run_order.ranked:
        rows = [(row.run, number(row.mean), "{} – {}".format(*row.places)) for row in run_order.ranked]
        title = _("Ranking over %(count)s common questions") % {"count": run_order.ranking.questions}
        yield Sheet(title, (_("run"), _("score"), _("possible ranks")), rows)
    if run_order.sensitivity is None:
        return
    title = _("Ranking holds in %(share)s of cases when each weight is halved to doubled") % {
        "share": number(run_order.sensitivity.holds, 2)
    }
    turns = [
        (f"{turn.ahead} > {turn.behind}", turn.part, number(turn.weight), number(turn.at))
        for turn in run_order.sensitivity.turns
    ]
    yield Sheet(title, (_("order"), _("part"), _("weight"), _("weight that flips it")), turns, numbers_from=2)


def system_sheets(reports: Sequence[Report]) -> Iterator[Sheet]:
    """Yield a table for each class metric, then the spread of the overall score."""
    names = dict.fromkeys(table.name for report in reports for table in report.by_profile.classes)
    for name in names:
        yield _class_sheet(name, reports)
    spread = [row for report in reports for row in _spread_rows(report)]
    if spread:
        header = (_("run"), _("system"), _("category"), "n", _("mean"), _("lowest"), _("highest"))
        yield Sheet(_("Overall score by system and category"), header, spread, numbers_from=3)


def _class_sheet(name: str, reports: Sequence[Report]) -> Sheet:
    tables = [(report, table) for report in reports for table in report.by_profile.classes if table.name == name]
    labels = list(dict.fromkeys(label for _report, table in tables for label in table.labels))
    rows = []
    for report, table in tables:
        shares = {class_share.label: class_share for class_share in table.total}
        cells = (
            f"{class_share.count} ({class_share.share:.0%}, {class_share.low:.0%} – {class_share.high:.0%})"
            if (class_share := shares.get(label))
            else "0"
            for label in labels
        )
        rows.append((str(report.header.run_id), report.header.system, *cells))
    title = _("%(metric)s by system: answers, share, 95%% CI") % {"metric": name}
    return Sheet(title, (_("run"), _("system"), *labels), rows, numbers_from=2)


def _spread_rows(report: Report) -> Iterator[tuple[str, ...]]:
    for row in report.by_profile.spread:
        figures = (f"{value:.3f}" for value in (row.mean, row.lowest, row.highest))
        name = row.category or _("all")
        yield (str(report.header.run_id), report.header.system, name, str(row.n), *figures)


def judge_remarks(report: Report) -> Iterator[str]:
    """Yield a line for each preflight and each doubt."""
    for preflight in report.provenance.preflights:
        words = {True: "yes", False: "no", None: "unknown"}
        yield (
            f"preflight {preflight.judge}: reply format {preflight.response_format}, "
            f"answered by {preflight.model_returned}, "
            f"tokens {words[preflight.usage]}, log probabilities {words[preflight.logprobs]}, {preflight.calls} call(s)"
        )
    for doubt in report.doubts:
        yield f"warning: {explain_judge_warning(doubt.code, doubt.params)}"


def print_plan(command: BaseCommand, plan: ReviewPlan | None) -> None:
    """Print the expected gain of further review, if known."""
    if plan:
        command.stdout.write(" ".join(part for part in (plan_sentence(plan), guess_note(plan)) if part))


def show_results(
    command: BaseCommand, run: Run, gate: Gate | None, form: str, basis: ReportInputs | None = None
) -> None:
    """Print the gate and the figures, then exit.

    Exit codes: 0; 100 for a gate that is not passed or a run that lacks results; 1 for a run that is paused, cancelled
    or unfinished. ``basis`` avoids loading the run's data again."""
    basis = basis or load_inputs(run)
    plan = next_review(basis)
    report = dataclasses.replace(
        build_report(basis), gate=gate.to_dict() if gate else None, next_review=plan_json(plan)
    )
    if form == "json":
        report = dataclasses.replace(report, agreement=cached_agreement(run))
        command.stdout.write(json.dumps(summary_json(report), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        if gate is not None:
            print_gate(command, gate)
        for line in (*verdict_of(report).sentences, ""):
            command.stdout.write(line)
        write(command.stdout, results_sheets(report))
        for line in judge_remarks(report):
            command.stdout.write(line)
        if note := guess_note(plan):
            command.stdout.write(note)
    if gate is not None:
        warn_undecided_gate(command, gate)
    print_pause_reason(command, run)
    code = exit_code(run.state) or (gate.exit_code if gate is not None else 0)
    if code:
        sys.exit(code)
