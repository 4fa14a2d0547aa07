"""What commands print of runs: tables of a report and of a comparison, remarks
about judges, and the exit code the gate deserves."""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.translation import gettext as _

from evaluation.connectors.protocol import RETRIEVAL_ONLY
from evaluation.management.working import exit_code, say_why_paused
from evaluation.messages.sentences import explain_doubt
from evaluation.models import Run
from evaluation.profiles.arithmetic import Label
from review.agreement.run_agreement import kept_agreement
from review.charts.forest import Shape
from review.comparisons.difference import MetricDifference, Order, RunDifference
from review.comparisons.values import differing_versions
from review.comparisons.verdict import p_text
from review.comparisons.whole import Comparison
from review.management.options import print_gate, warn_of_gate
from review.management.profile_tables import profile_sheets
from review.management.sheets import NOTHING, Sheet, number, write
from review.queues.planning import ReviewPlan, guess_note, next_review, plan_json, plan_sentence
from review.reports.as_json import summary_json
from review.reports.entries import Entry, Output
from review.reports.figure import Figure, why_withheld
from review.reports.gate import Gate
from review.reports.gathering import Gathered, gather
from review.reports.licence_words import licence_reason, licence_state
from review.reports.lines import MetricLine
from review.reports.report import Report, report_of
from review.reports.sections import BY_CATEGORY, COVERAGE, METRICS, OVERALL, RUN, facts_of, figures_of
from review.reports.verdict import verdict_of
from review.statistics.correction.outcome import Target
from review.statistics.paired_tests.paired import PairedDifference

HERE = Output.TERMINAL


def results_sheets(report: Report) -> Iterator[Sheet]:
    """The run, its overall score three ways, metrics with coverage, categories; of passages alone what was measured of
    them, without an overall score and the profile's tables of answers."""
    header = report.header
    about = [(str(one.title), one.text(value)) for one, value in facts_of(RUN, report, HERE)]
    yield Sheet(f"{_('Run')} {header.run_id} · {header.name} · {header.state}", (_("what"), _("value")), about)
    if not _of_passages_alone(report):
        yield Sheet(_("Overall score"), (_("score"), _("value"), _("95% interval"), "n", _("note")), _overall(report))
    figures, counts = METRICS.entries(HERE), COVERAGE.entries(HERE)
    titles = (str(one.title) for one in (*figures, *counts))
    rows = (
        (line.report_name, *(_of_metric(one, line) for one in figures), *(one.text(one.of(line)) for one in counts))
        for line in _measured(report)
    )
    yield Sheet(_("Metrics"), (_("metric"), *titles), rows)
    yield _categories(report)
    if report.licences:
        said = ((one.metric, one.rubric, licence_state(one), licence_reason(one)) for one in report.licences)
        yield Sheet(_("Licences"), (_("metric"), _("rubric"), _("licence"), _("why")), said)
    if not _of_passages_alone(report):
        yield from profile_sheets(report)


def _of_passages_alone(report: Report) -> bool:
    return report.provenance.evaluation_type == RETRIEVAL_ONLY


def _measured(report: Report) -> Iterator[MetricLine]:
    """All metrics; of passages alone those with a value or a failure."""
    alone = _of_passages_alone(report)
    return (line for line in report.metrics if not alone or line.coverage.scored or line.coverage.failed)


def short(figure: Figure, factor: float = 1.0) -> str:
    """The value times a factor, with bounds in brackets where results failed; a dash without one."""
    text = number(None if figure.value is None else figure.value * factor)
    if figure.worst is not None and figure.best is not None:
        text += f" [{figure.worst * factor:.3f}, {figure.best * factor:.3f}]"
    return text


def between(figure: Figure) -> str:
    """The ends of its interval; a dash without one."""
    return NOTHING if figure.low is None else f"{figure.low:.3f} – {figure.high:.3f}"


def _overall(report: Report) -> Iterator[tuple[str, ...]]:
    """A figure of some parts only first, with its weight; then judge-only, reviewed, corrected."""
    for one, figure in reversed(figures_of(report, HERE)):
        title = str(one.title)
        if one.mark is Shape.PLAIN:
            name = _("rules only") if report.overall.label is Label.RULES_ONLY else title
            title = _("%(label)s, weight %(weight).2f") % {"label": name, "weight": report.overall.weight}
        yield _figure_row(title, figure, corrected=one.mark is Shape.CORRECTED)
    for one, value in facts_of(OVERALL, report, HERE):
        yield str(one.title), one.text(value), NOTHING, NOTHING, ""


def _figure_row(name: str, figure: Figure, *, corrected: bool) -> tuple[str, ...]:
    note = why_withheld(figure) if figure.withheld else ""
    if not note and figure.target == Target.QUESTIONS_LIKE_THESE:
        note = _("questions like these, without judge error")
        if corrected:
            note = _("questions like these, with judge error")
    return name, short(figure), between(figure), str(figure.n), note


def _of_metric(one: Entry[MetricLine], line: MetricLine) -> str:
    if (took := line.latency) and one.mark is Shape.JUDGE:
        return f"{took.mean:.2f} s (p50 {took.p50:.2f}, p95 {took.p95:.2f})"
    return _text(one, one.of(line), line.report_factor)


def _text(one: Entry[Any], value: Any, factor: float = 1.0) -> str:
    return short(value, factor) if isinstance(value, Figure) else one.text(value)


def _categories(report: Report) -> Sheet:
    """The categories by what is said of each, then by the metrics that have a weight; of passages alone by those that
    were measured."""
    alone = _of_passages_alone(report)
    entries = [one for one in BY_CATEGORY.entries(HERE) if not (alone and one.name == "judge_only")]
    weighted = [line for line in _measured(report) if alone or line.weight]
    header = (_("category"), *(str(one.title) for one in entries), *(line.report_name for line in weighted))
    rows = (
        (
            line.name or NOTHING,
            *(_text(one, one.of(line)) for one in entries),
            *(
                short(line.metrics[metric.name][0], metric.report_factor) if metric.name in line.metrics else NOTHING
                for metric in weighted
            ),
        )
        for line in report.categories
    )
    return Sheet(_("Categories"), header, rows)


def comparison_sheets(found: Comparison) -> Iterator[Sheet]:
    """Overall scores and metric means side by side, what differs, then the tests, then the ranking."""
    reports = found.reports
    yield _side_by_side(reports)
    yield from systems_sheets(reports)
    if differing := differing_versions(reports):
        rows = [(kind, *values) for kind, values in differing.items()]
        header = (_("what"), *(f"{_('run')} {r.header.run_id}" for r in reports))
        yield Sheet(_("Not the same, so not comparable as it stands"), header, rows, numbers_from=9)
    for one in found.differences:
        yield _difference(one)
    if found.order is not None:
        yield from _order(found.order)


def _side_by_side(reports: Sequence[Report]) -> Sheet:
    names = list(dict.fromkeys(line.name for report in reports for line in report.metrics))
    headers, scores = [report.header for report in reports], [report.overall for report in reports]
    by_run = [{line.name: line for line in report.metrics} for report in reports]
    rows = [
        (_("system"), *(one.system for one in headers)),
        (_("questions"), *(one.question_set for one in headers)),
        (_("profile"), *(one.profile for one in headers)),
        (_("state"), *(one.state for one in headers)),
        (_("overall, judge only"), *(short(one.judge_only) for one in scores)),
        (_("overall, reviewed"), *(short(one.reviewed) for one in scores)),
        (_("overall, corrected"), *(short(one.corrected) for one in scores)),
        *((name, *(short(run[name].judge_only) if name in run else NOTHING for run in by_run)) for name in names),
    ]
    return Sheet(_("Comparison"), ("", *(f"{_('run')} {r.header.run_id}" for r in reports)), rows)


def _difference(one: RunDifference) -> Sheet:
    title = _("Run %(run)s minus run %(baseline)s, judge-only scores of the same questions") % {
        "run": one.run_id,
        "baseline": one.baseline_id,
    }
    header = (
        *(_("figure"), _("difference"), _("interval"), "p", _("p, over all"), _("better"), _("worse"), _("equal")),
        *(_("detectable"), _("gained / lost"), _("corrected difference"), _("flags")),
    )
    overall = (_("overall"), *_paired(one.overall, one.p_family), *_also(one))
    rows = [overall, *((each.name, *_paired(each.paired, each.p_family), *_also(each)) for each in one.metrics)]
    return Sheet(title, header, rows)


def _also(one: RunDifference | MetricDifference) -> tuple[str, str, str]:
    passes = one.passes
    gained = f"{passes.gained} / {passes.lost} (p {p_text(passes.p_value)})" if passes else NOTHING
    return gained, _corrected(one.corrected), ", ".join(one.differs)


def _paired(one: PairedDifference | None, p_family: float | None) -> tuple[str, ...]:
    if one is None:
        return (NOTHING,) * 8
    interval = NOTHING if one.low is None else f"{one.low:+.3f} – {one.high:+.3f}"
    return (
        *(f"{one.value:+.3f}", interval, p_text(one.p_value), p_text(p_family)),
        *(str(one.wins), str(one.losses), str(one.ties), number(one.detectable)),
    )


def _corrected(figure: Figure) -> str:
    if figure.value is None:
        return why_withheld(figure)
    return f"{figure.value:+.3f}" + ("" if figure.low is None else f" ({figure.low:+.3f} – {figure.high:+.3f})")


def _order(found: Order) -> Iterator[Sheet]:
    if found.ranked:
        rows = [(row.run, number(row.mean), "{} – {}".format(*row.places)) for row in found.ranked]
        title = _("Ranking over %(count)s common questions") % {"count": found.ranking.questions}
        yield Sheet(title, (_("run"), _("score"), _("possible ranks")), rows)
    if found.sensitivity is None:
        return
    title = _("Under other weights near the profile's the order holds in %(share)s of the cases") % {
        "share": number(found.sensitivity.holds, 2)
    }
    turns = [
        (f"{turn.ahead} > {turn.behind}", turn.part, number(turn.weight), number(turn.at))
        for turn in found.sensitivity.turns
    ]
    yield Sheet(title, (_("order"), _("part"), _("its weight"), _("weight that turns it")), turns, numbers_from=2)


def systems_sheets(reports: Sequence[Report]) -> Iterator[Sheet]:
    """One table per class metric, then the spread of the overall score; nothing where the profile has neither."""
    names = dict.fromkeys(table.name for report in reports for table in report.by_profile.classes)
    for name in names:
        yield _classes(name, reports)
    spread = [row for report in reports for row in _spread(report)]
    if spread:
        header = (_("run"), _("system"), _("category"), "n", _("mean"), _("lowest"), _("highest"))
        yield Sheet(_("Overall score by system and category"), header, spread, numbers_from=3)


def _classes(name: str, reports: Sequence[Report]) -> Sheet:
    tables = [(report, table) for report in reports for table in report.by_profile.classes if table.name == name]
    labels = list(dict.fromkeys(label for _report, table in tables for label in table.labels))
    rows = []
    for report, table in tables:
        shares = {one.label: one for one in table.total}
        cells = (
            f"{one.count} ({one.share:.0%}, {one.low:.0%} – {one.high:.0%})" if (one := shares.get(label)) else "0"
            for label in labels
        )
        rows.append((str(report.header.run_id), report.header.system, *cells))
    title = _("%(metric)s by system: answers, share, 95%% interval") % {"metric": name}
    return Sheet(title, (_("run"), _("system"), *labels), rows, numbers_from=2)


def _spread(report: Report) -> Iterator[tuple[str, ...]]:
    for one in report.by_profile.spread:
        figures = (f"{value:.3f}" for value in (one.mean, one.lowest, one.highest))
        name = one.category or _("all")
        yield (str(report.header.run_id), report.header.system, name, str(one.n), *figures)


def about_judges(report: Report) -> Iterator[str]:
    """A line for each preflight and each doubt."""
    for one in report.provenance.preflights:
        told = {True: "yes", False: "no", None: "unknown"}
        yield (
            f"preflight {one.judge}: asked by {one.rung}, answered by {one.model_returned}, "
            f"tokens {told[one.usage]}, log probabilities {told[one.logprobs]}, {one.calls} call(s)"
        )
    for doubt in report.doubts:
        yield f"warning: {explain_doubt(doubt.code, doubt.params)}"


def print_plan(command: BaseCommand, plan: ReviewPlan | None) -> None:
    """What reviewing more would bring, where that can be told."""
    if plan:
        command.stdout.write(" ".join(part for part in (plan_sentence(plan), guess_note(plan)) if part))


def show_results(command: BaseCommand, run: Run, gate: Gate | None, form: str, basis: Gathered | None = None) -> None:
    """The gate first, then the figures; exit 0, 100 for a gate that is not passed or a run that lacks results, 1 for a
    run that is paused, cancelled or still at work. ``basis`` is what is gathered of it, where that is at hand."""
    basis = basis or gather(run)
    plan = next_review(basis)
    report = dataclasses.replace(report_of(basis), gate=gate.to_dict() if gate else None, next_review=plan_json(plan))
    if form == "json":
        report = dataclasses.replace(report, agreement=kept_agreement(run))
        command.stdout.write(json.dumps(summary_json(report), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        if gate is not None:
            print_gate(command, gate)
        for line in (*verdict_of(report).sentences, ""):
            command.stdout.write(line)
        write(command.stdout, results_sheets(report))
        for line in about_judges(report):
            command.stdout.write(line)
        if note := guess_note(plan):
            command.stdout.write(note)
    if gate is not None:
        warn_of_gate(command, gate)
    say_why_paused(command, run)
    code = exit_code(run.state) or (gate.exit_code if gate is not None else 0)
    if code:
        sys.exit(code)
