"""Put a run through a quality gate: passed, failed or undecided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluation.core.errors import Refused
from evaluation.core.metric_specs import JUDGED
from evaluation.models import Run
from review.calibration.licences import LicenceState
from review.comparisons.difference import CONFIDENCE, RunDifference, difference
from review.comparisons.values import SERVED, Side, by_question, groups_of, sides
from review.comparisons.verdict import half_width, labels_missing, settle_corrected
from review.reports.figure import Figure, withheld
from review.reports.gate import Check, Gate, GateAsked, GateOn, Rule
from review.reports.report import Report
from review.reports.retrieval import UNRATED, CorrectedRetrieval, RepairedRetrieval, reads_labels, repaired_retrieval
from review.reports.scores import score_side
from review.statistics.agreement.bootstrap import clopper_pearson
from review.statistics.correction.outcome import Target
from review.statistics.paired_tests.gate import (
    GateVerdict,
    Settling,
    fail_under,
    lies_within,
    max_drop,
    settle_by_labels,
    settle_by_questions,
    settle_pass_rate,
)
from review.statistics.paired_tests.paired import PairedDifference, paired_difference

PARTLY, PASSAGES = "partly_corrected", "more_passages"


def checked(asked: GateAsked) -> GateAsked:
    """The same, if it makes sense.

    :raises Refused: ``gate_needs_baseline``, ``gate_needs_drop``, ``gate_no_drop`` or ``margin_needs_drop``.
    """
    if asked.gate_on == GateOn.PASS_RATE and asked.max_drop is not None:
        raise Refused("gate_no_drop")
    if asked.max_drop is not None and asked.baseline is None:
        raise Refused("gate_needs_baseline")
    if asked.baseline is not None and asked.max_drop is None:
        raise Refused("gate_needs_drop")
    if asked.margin is not None and asked.max_drop is None:
        raise Refused("margin_needs_drop")
    return asked


def gate_of(run: Run, asked: GateAsked) -> Gate | None:
    """The gate of a run as it stands now; ``None`` where nothing was asked. An incomplete run fails with its reason.

    :raises Refused: as :func:`checked` does.
    """
    if not checked(asked).anything:
        return None
    return gates_of(sides(asked.runs(run)), asked)[run.pk]


def asked_of(runs: Sequence[Run], asked: GateAsked) -> GateAsked:
    """What is asked of runs measured against the first of them, or of one that stands alone. ``asked.baseline`` is not
    read.

    :raises Refused: ``gate_needs_baseline`` for a drop of a run that stands alone, else as :func:`checked` does.
    """
    return checked(asked.model_copy(update={"baseline": None if asked.max_drop is None or len(runs) == 1 else runs[0]}))


def gates_of(chosen: Sequence[Side], asked: GateAsked) -> dict[int, Gate]:
    """The gate of each compared run by its id, measured against the first, each by itself; of a run alone, where it is
    alone. Empty where nothing was asked.

    :raises Refused: as :func:`asked_of` does.
    """
    if not asked_of([side.basis.run for side in chosen], asked).anything:
        return {}
    first, *others = chosen
    if not others:
        return {first.run_id: gate_between(first, None, asked)}
    return {
        side.run_id: gate_between(
            side, None if asked.max_drop is None else difference(side, first, asked.confidence), asked
        )
        for side in others
    }


def gate_between(ours: Side, compared: RunDifference | None, asked: GateAsked) -> Gate:
    """The gate of a run whose figures are at hand; ``compared`` is what it is measured against the baseline."""
    on = _on(asked, ours, compared)
    checks = []
    if asked.fail_under is not None:
        check = (_metric_least if on.is_metric else _least)(ours, on, asked.fail_under, asked.confidence)
        checks.append(_without_misses(check, on, ours, ours.report.retrieval))
    if compared is not None and asked.max_drop is not None:
        if on.is_metric:
            checks.append(_metric_drop(compared, on, asked.max_drop, asked.confidence))
        else:
            check = _drop(compared, on, asked.max_drop, across_models=asked.across_models)
            checks.append(_without_misses(check, on, ours, compared.retrieval))
        checks[-1] = _alike(checks[-1], asked.margin)
    complete = ours.basis.run.state == Run.State.COMPLETED
    return Gate(
        on=on,
        allow_undecided=asked.allow_undecided,
        baseline_id=None if compared is None else compared.baseline_id,
        checks=tuple(checks),
        incomplete="" if complete else ours.basis.run.reason or "not_finished",
        looks=asked.looks,
        unlicensed=unlicensed(ours.report) if asked.require_licence else (),
    )


def _alike(check: Check, margin: float | None) -> Check:
    """The check with what the interval says by the margin; nothing where the interval is of no use."""
    if margin is None or check.reason or check.low is None or check.high is None:
        return check
    return replace(check, alike_within=margin) if lies_within(check.low, check.high, margin) else check


def unlicensed(report: Report) -> tuple[str, ...]:
    """The judged metrics of the run without a proof that holds; all of them where the offline baseline judges."""
    held = {one.metric for one in report.licences if one.state is LicenceState.LICENSED}
    return tuple(line.name for line in report.metrics if line.kind in JUDGED and line.name not in held)


def _on(asked: GateAsked, ours: Side, compared: RunDifference | None) -> GateOn:
    """The corrected score by default as soon as there is a blind rating of this run or of what it is compared with:
    judge-only would then leave out what is known of the judge."""
    if asked.gate_on:
        return GateOn(asked.gate_on)
    rated = ours.basis.correction.rated_blind or (compared is not None and compared.rated_blind)
    return GateOn.CORRECTED if rated else GateOn.JUDGE_ONLY


def _least(side: Side, on: GateOn, limit: float, confidence: float) -> Check:
    if on is GateOn.PASS_RATE:
        return _passing(side, limit, confidence)
    overall = side.report.overall
    figure = overall.corrected if on is GateOn.CORRECTED else overall.judge_only
    if figure.low is not None and confidence != CONFIDENCE:
        figure = _at(side, on, confidence)
    if figure.value is None:
        settling = labels_missing(figure) if on is GateOn.CORRECTED else None
        return Check(Rule.FAIL_UNDER, limit, None, None, None, GateVerdict.UNDECIDED, figure.withheld, settling)
    if figure.low is None or figure.high is None:
        return Check(Rule.FAIL_UNDER, limit, figure.value, None, None, GateVerdict.UNDECIDED, figure.no_interval)
    if figure.partly_corrected:
        return Check(Rule.FAIL_UNDER, limit, figure.value, figure.low, figure.high, GateVerdict.UNDECIDED, PARTLY)
    verdict = fail_under(figure.low, figure.high, limit)
    settling = None
    if verdict is GateVerdict.UNDECIDED:
        settling = _settling(figure, overall.corrected_this_run, on, abs(figure.value - limit), _groups(side))
    return Check(Rule.FAIL_UNDER, limit, figure.value, figure.low, figure.high, verdict, settling=settling)


def _without_misses(
    check: Check, on: GateOn, ours: Side, missing: CorrectedRetrieval | RepairedRetrieval | None
) -> Check:
    """Nothing can be told by a score that counts relevant passages as misses which only lack a label."""
    profile = ours.basis.profile
    if (
        on.is_metric
        or not missing
        or not any(map(reads_labels, {*(one.metric for one in profile.parts), *profile.passing}))
    ):
        return check
    return replace(check, verdict=GateVerdict.UNDECIDED, reason=UNRATED, settling=None)


def _metric_least(side: Side, on: GateOn, limit: float, confidence: float) -> Check:
    """A metric of retrieval, corrected where labels are missing, else as computed."""
    metric, repaired = side.basis.sides.machine.metrics.get(on), repaired_retrieval(side.basis.run)
    mine = by_question(metric.numbers) if metric else {}
    paired = paired_difference(mine, dict.fromkeys(mine, 0.0), groups_of(side), limit=1.0, confidence=confidence)
    return _metric_check(Rule.FAIL_UNDER, limit, paired, repaired.of(on, confidence) if repaired else None)


def _metric_drop(compared: RunDifference, on: GateOn, drop: float, confidence: float) -> Check:
    paired = next((one.paired for one in compared.metrics if one.name == on), None)
    repaired = compared.retrieval.of(on, confidence) if compared.retrieval else None
    return _metric_check(Rule.MAX_DROP, drop, paired and paired.at(confidence), repaired)


def _metric_check(rule: Rule, limit: float, paired: PairedDifference | None, repaired: Figure | None) -> Check:
    alone = paired.value if paired and repaired else None
    figure = repaired or (
        Figure(paired.value, paired.low, paired.high, no_interval="" if paired.low is not None else "no_variation")
        if paired
        else withheld("no_values")
    )
    if figure.low is None or figure.high is None:
        why = figure.withheld or figure.no_interval
        return Check(rule, limit, figure.value, None, None, GateVerdict.UNDECIDED, why, labels_alone=alone)
    verdict = (fail_under if rule is Rule.FAIL_UNDER else max_drop)(figure.low, figure.high, limit)
    settling = None
    if verdict is GateVerdict.UNDECIDED and paired and not repaired:
        distance = abs(paired.value - (limit if rule is Rule.FAIL_UNDER else -limit))
        settling = settle_by_questions(paired.groups, half_width(figure), distance)
    reason = PASSAGES if verdict is GateVerdict.UNDECIDED and repaired else ""
    return Check(rule, limit, figure.value, figure.low, figure.high, verdict, reason, settling, alone)


def _passing(side: Side, limit: float, confidence: float) -> Check:
    """The share of answers that pass by the profile's own rule, as judged, by its exact interval."""
    passing = side.report.by_profile.passing
    if passing is None or passing.rate is None:
        return Check(Rule.FAIL_UNDER, limit, None, None, None, GateVerdict.UNDECIDED, "no_values")
    answers = passing.passed + passing.failed
    low, high = clopper_pearson(passing.rate, answers, confidence)
    verdict, settling = fail_under(low, high, limit), None
    if verdict is GateVerdict.UNDECIDED:
        settling = settle_pass_rate(passing.rate, answers, limit, confidence)
    return Check(Rule.FAIL_UNDER, limit, passing.rate, low, high, verdict, settling=settling)


def _at(side: Side, on: GateOn, confidence: float) -> Figure:
    """The overall score, which there is, with its interval at another confidence than reports have."""
    basis = side.basis
    if on is GateOn.JUDGE_ONLY:
        return score_side(basis.profile, basis.sides.machine, confidence=confidence).figure
    return basis.correction.overall(basis.profile, basis.machine, Target.QUESTIONS_LIKE_THESE, confidence=confidence)


def _settling(wide: Figure, narrow: Figure, on: GateOn, distance: float, groups: int) -> Settling | None:
    half = half_width(wide)
    if on is GateOn.JUDGE_ONLY:
        return settle_by_questions(groups, half, distance)
    return settle_by_labels(int(wide.extra["labels"]), wide.n, groups, half_width(narrow), half, distance)


def _groups(side: Side) -> int:
    return len({answer.group for answer in side.basis.said.answers.values()})


def _drop(compared: RunDifference, on: GateOn, drop: float, *, across_models: bool) -> Check:
    rule, paired = Rule.MAX_DROP, compared.overall
    if on is GateOn.CORRECTED:
        figure = compared.corrected
        value, low, high, why = figure.value, figure.low, figure.high, figure.withheld or figure.no_interval
    else:
        value, low, high = (paired.value, paired.low, paired.high) if paired else (None, None, None)
        why = "no_values" if paired is None else "no_variation"
    if value is None or low is None or high is None:
        settling = labels_missing(compared.corrected) if on is GateOn.CORRECTED and value is None else None
        return Check(rule, drop, value, None, None, GateVerdict.UNDECIDED, why, settling)
    if on is GateOn.CORRECTED and compared.corrected.partly_corrected:
        return Check(rule, drop, value, low, high, GateVerdict.UNDECIDED, PARTLY)
    if on is GateOn.JUDGE_ONLY and SERVED in compared.differs and not across_models:
        return Check(rule, drop, value, low, high, GateVerdict.UNDECIDED, SERVED)
    verdict = max_drop(low, high, drop)
    settling = None
    if verdict is GateVerdict.UNDECIDED and on is GateOn.CORRECTED:
        settling = settle_corrected(compared, abs(value + drop))
    elif verdict is GateVerdict.UNDECIDED:
        settling = settle_by_questions(paired.groups if paired else 0, (high - low) / 2.0, abs(value + drop))
    return Check(rule, drop, value, low, high, verdict, settling=settling)
