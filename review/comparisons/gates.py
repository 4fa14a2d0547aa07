"""Quality gates of runs: passed, failed or undecided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.models import Run
from review.calibration.approvals import ApprovalState
from review.comparisons.difference import CONFIDENCE, RunDifference, difference
from review.comparisons.signals import gate_computed
from review.comparisons.values import SERVED_MODEL, Side, by_question, load_sides, question_groups
from review.comparisons.verdict import half_width, labels_missing, settle_corrected
from review.evidence.seals import LabelForm, label_form
from review.reports.figure import UNPLANNED_ROUND, Figure, withheld
from review.reports.gate import Gate, GateCheck, GateRequest, GateRule, GateScore
from review.reports.report import Report
from review.reports.retrieval import UNRATED, CorrectedRetrieval, RepairedRetrieval, reads_labels, repaired_retrieval
from review.reports.scores import score_side
from review.standing.selectors import release_findings
from review.statistics.agreement.bootstrap import clopper_pearson
from review.statistics.correction.outcome import Target
from review.statistics.paired_tests.gate import (
    GateVerdict,
    SampleRequirement,
    answers_to_decide,
    fail_under,
    gate_confidence,
    is_within_margin,
    labels_to_decide,
    max_drop,
    questions_to_decide,
)
from review.statistics.paired_tests.paired import PairedDifference, paired_difference

PARTLY_CORRECTED, MORE_PASSAGES, DRIFTED = "partly_corrected", "more_passages", "drifted"


def check_request(request: GateRequest) -> GateRequest:
    """Return the request if its options are consistent.

    :raises DomainError: ``gate_needs_baseline``, ``gate_needs_drop``, ``gate_no_drop`` or ``margin_needs_drop``."""
    if request.gate_on == GateScore.PASS_RATE and request.max_drop is not None:
        raise DomainError("gate_no_drop")
    if request.max_drop is not None and request.baseline is None:
        raise DomainError("gate_needs_baseline")
    if request.baseline is not None and request.max_drop is None:
        raise DomainError("gate_needs_drop")
    if request.margin is not None and request.max_drop is None:
        raise DomainError("margin_needs_drop")
    return request


def run_gate(run: Run, request: GateRequest) -> Gate | None:
    """Compute the current gate of a run; ``None`` without a request. An incomplete run fails with its reason.

    :raises DomainError: see :func:`check_request`."""
    if not check_request(request).is_set:
        return None
    return run_gates(load_sides(request.runs(run)), request)[run.pk]


def request_for_runs(runs: Sequence[Run], request: GateRequest) -> GateRequest:
    """Return the request for runs measured against the first of them, or for a single run.

    ``request.baseline`` is ignored.

    :raises DomainError: ``gate_needs_baseline`` for a drop of a single run; see :func:`check_request`."""
    return check_request(
        request.model_copy(update={"baseline": None if request.max_drop is None or len(runs) == 1 else runs[0]})
    )


def run_gates(compared_sides: Sequence[Side], request: GateRequest) -> dict[int, Gate]:
    """Compute the gate of each compared run against the first one, or of a single run. Empty without a request.

    :raises DomainError: see :func:`request_for_runs`."""
    if not request_for_runs([side.basis.run for side in compared_sides], request).is_set:
        return {}
    first, *others = compared_sides
    # Receivers pass a gate on to people who may not see sealed labels.
    is_open_form = all(label_form(side.basis.run.project_id) is LabelForm.OPEN for side in compared_sides)
    gates = {}
    for side in others or [first]:
        drop = difference(side, first, request.confidence) if others and request.max_drop is not None else None
        gates[side.run_id] = gate = gate_between(side, drop, request)
        if is_open_form:
            gate_computed.send_robust(sender=None, run=side.basis.run, gate=gate)
    return gates


def gate_between(current: Side, run_difference: RunDifference | None, request: GateRequest) -> Gate:
    """Compute the gate of a loaded run; ``run_difference`` is its difference from the baseline, if any."""
    gate_on = _choose_score(request, current, run_difference)
    looks = request.looks * (_planned_looks(current, run_difference) if gate_on is GateScore.CORRECTED else 1)
    checks = []
    if request.fail_under is not None:
        check = (_check_metric_minimum if gate_on.is_metric else _check_minimum)(
            current, gate_on, request.fail_under, gate_confidence(looks)
        )
        checks.append(_undecided_if_unlabelled(check, gate_on, current, current.report.retrieval))
        checks[-1] = _with_release_findings(checks[-1], gate_on, current, gate_confidence(looks))
    if run_difference is not None and request.max_drop is not None:
        if gate_on.is_metric:
            checks.append(_check_metric_drop(run_difference, gate_on, request.max_drop, request.confidence))
        else:
            check = _check_drop(run_difference, gate_on, request.max_drop, across_models=request.across_models)
            checks.append(_undecided_if_unlabelled(check, gate_on, current, run_difference.retrieval))
            checks[-1] = _with_release_findings(checks[-1], gate_on, current, gate_confidence(looks))
        checks[-1] = _with_margin(checks[-1], request.margin)
    complete = current.basis.run.state == Run.State.COMPLETED
    return Gate(
        on=gate_on,
        allow_undecided=request.allow_undecided,
        baseline_id=None if run_difference is None else run_difference.baseline_id,
        checks=tuple(checks),
        incomplete="" if complete else current.basis.run.reason or "not_finished",
        looks=looks,
        unapproved=unapproved_metrics(current.report) if request.require_approval else (),
    )


def _planned_looks(current: Side, run_difference: RunDifference | None) -> int:
    """Return the planned number of looks at the ratings behind a check of corrected scores."""
    compared = [current.report.overall.corrected, *([run_difference.leading] if run_difference else [])]
    return max(figure.looks for figure in compared)


def _unusable_reason(figure: Figure) -> str:
    """Return why a corrected figure with an interval allows no verdict; empty if it does."""
    if figure.partly_corrected:
        return PARTLY_CORRECTED
    return "" if figure.is_planned else UNPLANNED_ROUND


def _with_release_findings(check: GateCheck, gate_on: GateScore, current: Side, confidence: float) -> GateCheck:
    """Apply what earlier releases show to a corrected score: it is undecided if experts rate differently today than in
    the ratings it keeps, and rests on never-rated questions if the system was tuned to the ratings."""
    if gate_on is not GateScore.CORRECTED or check.reason or check.value is None:
        return check
    findings = release_findings(current.basis, confidence)
    if findings.drifted:
        return replace(check, verdict=GateVerdict.UNDECIDED, reason=DRIFTED, settling=None)
    figure = findings.despite_tuning
    if figure is None or check.rule is GateRule.MAX_DROP:
        return check
    if figure.value is None or figure.low is None or figure.high is None:
        return replace(check, verdict=GateVerdict.UNDECIDED, reason=figure.withheld, settling=None)
    verdict = fail_under(figure.low, figure.high, check.limit)
    return replace(check, value=figure.value, low=figure.low, high=figure.high, verdict=verdict, settling=None)


def _with_margin(check: GateCheck, margin: float | None) -> GateCheck:
    """Note on the check that its interval lies within the margin."""
    if margin is None or check.reason or check.low is None or check.high is None:
        return check
    return replace(check, alike_within=margin) if is_within_margin(check.low, check.high, margin) else check


def unapproved_metrics(report: Report) -> tuple[str, ...]:
    """Return the judged metrics without a valid approval; all of them for the offline baseline judge."""
    approved = {approval.metric for approval in report.approvals if approval.state is ApprovalState.APPROVED}
    return tuple(line.name for line in report.metrics if line.kind in JUDGED_KINDS and line.name not in approved)


def _choose_score(request: GateRequest, current: Side, run_difference: RunDifference | None) -> GateScore:
    """Return the requested score, by default the corrected one once the run or its baseline has blind ratings.

    The judge-only score would ignore what is known of the judge."""
    if request.gate_on:
        return GateScore(request.gate_on)
    rated = current.basis.correction.rated_blind or (run_difference is not None and run_difference.rated_blind)
    return GateScore.CORRECTED if rated else GateScore.JUDGE_ONLY


def _check_minimum(side: Side, gate_on: GateScore, limit: float, confidence: float) -> GateCheck:
    if gate_on is GateScore.PASS_RATE:
        return _check_pass_rate(side, limit, confidence)
    overall = side.report.overall
    figure = overall.corrected if gate_on is GateScore.CORRECTED else overall.judge_only
    if figure.low is not None and confidence != CONFIDENCE:
        figure = _figure_at(side, gate_on, confidence)
    if figure.value is None:
        settling = labels_missing(figure) if gate_on is GateScore.CORRECTED else None
        return GateCheck(GateRule.FAIL_UNDER, limit, None, None, None, GateVerdict.UNDECIDED, figure.withheld, settling)
    if figure.low is None or figure.high is None:
        return GateCheck(
            GateRule.FAIL_UNDER, limit, figure.value, None, None, GateVerdict.UNDECIDED, figure.no_interval
        )
    if reason := _unusable_reason(figure):
        return GateCheck(
            GateRule.FAIL_UNDER, limit, figure.value, figure.low, figure.high, GateVerdict.UNDECIDED, reason
        )
    verdict = fail_under(figure.low, figure.high, limit)
    settling = None
    if verdict is GateVerdict.UNDECIDED:
        settling = _required_evidence(
            figure, overall.corrected_this_run, gate_on, abs(figure.value - limit), _groups(side)
        )
    return GateCheck(GateRule.FAIL_UNDER, limit, figure.value, figure.low, figure.high, verdict, settling=settling)


def _undecided_if_unlabelled(
    check: GateCheck, gate_on: GateScore, current: Side, missing: CorrectedRetrieval | RepairedRetrieval | None
) -> GateCheck:
    """Make a check undecided if its score counts unlabelled relevant passages as misses."""
    profile = current.basis.profile
    if (
        gate_on.is_metric
        or not missing
        or not any(map(reads_labels, {*(part.metric for part in profile.parts), *profile.passing}))
    ):
        return check
    return replace(check, verdict=GateVerdict.UNDECIDED, reason=UNRATED, settling=None)


def _check_metric_minimum(side: Side, gate_on: GateScore, limit: float, confidence: float) -> GateCheck:
    """Check a retrieval metric, corrected if labels are missing."""
    metric, repaired = side.basis.sides.machine.metrics.get(gate_on), repaired_retrieval(side.basis.run)
    question_values = by_question(metric.numbers) if metric else {}
    paired = paired_difference(
        question_values, dict.fromkeys(question_values, 0.0), question_groups(side), limit=1.0, confidence=confidence
    )
    return _build_metric_check(
        GateRule.FAIL_UNDER, limit, paired, repaired.figure(gate_on, confidence) if repaired else None
    )


def _check_metric_drop(run_difference: RunDifference, gate_on: GateScore, drop: float, confidence: float) -> GateCheck:
    paired = next((metric.paired for metric in run_difference.metrics if metric.name == gate_on), None)
    repaired = run_difference.retrieval.figure(gate_on, confidence) if run_difference.retrieval else None
    return _build_metric_check(GateRule.MAX_DROP, drop, paired and paired.with_confidence(confidence), repaired)


def _build_metric_check(
    rule: GateRule, limit: float, paired: PairedDifference | None, repaired: Figure | None
) -> GateCheck:
    uncorrected = paired.value if paired and repaired else None
    figure = repaired or (
        Figure(paired.value, paired.low, paired.high, no_interval="" if paired.low is not None else "no_variation")
        if paired
        else withheld("no_values")
    )
    if figure.low is None or figure.high is None:
        withheld_reason = figure.withheld or figure.no_interval
        return GateCheck(
            rule, limit, figure.value, None, None, GateVerdict.UNDECIDED, withheld_reason, labels_alone=uncorrected
        )
    verdict = (fail_under if rule is GateRule.FAIL_UNDER else max_drop)(figure.low, figure.high, limit)
    settling = None
    if verdict is GateVerdict.UNDECIDED and paired and not repaired:
        distance = abs(paired.value - (limit if rule is GateRule.FAIL_UNDER else -limit))
        settling = questions_to_decide(paired.groups, half_width(figure), distance)
    reason = MORE_PASSAGES if verdict is GateVerdict.UNDECIDED and repaired else ""
    return GateCheck(rule, limit, figure.value, figure.low, figure.high, verdict, reason, settling, uncorrected)


def _check_pass_rate(side: Side, limit: float, confidence: float) -> GateCheck:
    """Check the share of answers that pass the profile's rule, as judged, by its exact interval."""
    passing = side.report.by_profile.passing
    if passing is None or passing.rate is None:
        return GateCheck(GateRule.FAIL_UNDER, limit, None, None, None, GateVerdict.UNDECIDED, "no_values")
    answers = passing.passed + passing.failed
    low, high = clopper_pearson(passing.rate, answers, confidence)
    verdict, settling = fail_under(low, high, limit), None
    if verdict is GateVerdict.UNDECIDED:
        settling = answers_to_decide(passing.rate, answers, limit, confidence)
    return GateCheck(GateRule.FAIL_UNDER, limit, passing.rate, low, high, verdict, settling=settling)


def _figure_at(side: Side, gate_on: GateScore, confidence: float) -> Figure:
    """Return the overall score with its interval at a confidence other than the reports'."""
    basis = side.basis
    if gate_on is GateScore.JUDGE_ONLY:
        return score_side(basis.profile, basis.sides.machine, confidence=confidence).figure
    return basis.correction.overall(basis.profile, basis.machine, Target.QUESTIONS_LIKE_THESE, confidence=confidence)


def _required_evidence(
    wide: Figure, narrow: Figure, gate_on: GateScore, distance: float, groups: int
) -> SampleRequirement | None:
    half = half_width(wide)
    if gate_on is GateScore.JUDGE_ONLY:
        return questions_to_decide(groups, half, distance)
    return labels_to_decide(int(wide.extra["labels"]), wide.n, groups, half_width(narrow), half, distance)


def _groups(side: Side) -> int:
    return len({answer.group for answer in side.basis.evidence.answers.values()})


def _check_drop(run_difference: RunDifference, gate_on: GateScore, drop: float, *, across_models: bool) -> GateCheck:
    rule, paired, target = GateRule.MAX_DROP, run_difference.overall, str(Target.QUESTIONS_LIKE_THESE)
    figure = run_difference.leading
    if gate_on is GateScore.CORRECTED:
        target = figure.target or target
        value, low, high, withheld_reason = figure.value, figure.low, figure.high, figure.withheld or figure.no_interval
    else:
        value, low, high = (paired.value, paired.low, paired.high) if paired else (None, None, None)
        withheld_reason = "no_values" if paired is None else "no_variation"
    if value == 0.0 and low is None and run_difference.equal_answers:
        # Equal answers with equal values differ by exactly 0 on these questions.
        low, high, target = 0.0, 0.0, str(Target.THIS_RUN)
    if value is None or low is None or high is None:
        settling = labels_missing(figure) if gate_on is GateScore.CORRECTED and value is None else None
        return GateCheck(rule, drop, value, None, None, GateVerdict.UNDECIDED, withheld_reason, settling)
    if gate_on is GateScore.CORRECTED and (reason := _unusable_reason(figure)):
        return GateCheck(rule, drop, value, low, high, GateVerdict.UNDECIDED, reason, target=target)
    if gate_on is GateScore.JUDGE_ONLY and SERVED_MODEL in run_difference.differs and not across_models:
        return GateCheck(rule, drop, value, low, high, GateVerdict.UNDECIDED, SERVED_MODEL)
    verdict = max_drop(low, high, drop)
    settling = None
    if verdict is GateVerdict.UNDECIDED and gate_on is GateScore.CORRECTED:
        settling = settle_corrected(run_difference, abs(value + drop))
    elif verdict is GateVerdict.UNDECIDED:
        settling = questions_to_decide(paired.groups if paired else 0, (high - low) / 2.0, abs(value + drop))
    return GateCheck(rule, drop, value, low, high, verdict, settling=settling, target=target)
