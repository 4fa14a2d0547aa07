"""Differences between two runs question by question, and a ranking of several runs with its uncertainty."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluation.core.metric_specs import Bilingual, Direction
from evaluation.core.scales import Scale, ScaleKind
from evaluation.models import Answer
from evaluation.profiles.arithmetic import FigureLabel
from review.calibration.drift import JudgeShift, judge_shifts
from review.comparisons.values import (
    DifferingVersions,
    Side,
    by_question,
    compared_weight,
    differing_versions,
    machine_score,
    metric_differences,
    part_values,
    part_weights,
    passing_shares,
    question_groups,
    question_scores,
)
from review.releases.selectors import (
    ReleaseDifference,
    Releases,
    describe_difference,
    difference_figure,
    pair_releases,
)
from review.reports.figure import MIN_WIDTH, Figure, Withheld, to_figure, withheld
from review.reports.gate import GateScore
from review.reports.lines import MetricLine
from review.reports.retrieval import RepairedRetrieval, reads_labels, repaired_difference
from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import Deviation, Target
from review.statistics.paired_tests.gatekeeping import Branch, BranchTests, Multiplicity, gatekeep
from review.statistics.paired_tests.paired import (
    McNemar,
    PairedDifference,
    PairedPart,
    corrected_deviation,
    corrected_difference,
    mcnemar,
    paired_difference,
    paired_sum,
)
from review.statistics.paired_tests.ranking import (
    RankedRun,
    RunRanking,
    WeightSensitivity,
    rank_weighted_runs,
    weight_sensitivity,
)

# The compared score. Expert ratings enter the corrected difference only.
COMPARED_SCORE = "judge_only"
MAX_CHANGES = 5
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """Difference of one metric between two runs.

    ``paired`` is this run minus the baseline in the metric's units; its wins are questions on which this run is better.
    It is ``None`` without a common question. ``p_family`` is adjusted over all tests of the comparison, and ``None`` if
    the metric is not tested. ``passes`` counts changes of yes/no metrics. ``differs`` names versions by which the
    metric differs. ``judge_shift`` is the judge's part of the change, from anchors. With ``labels_missing``, relevant
    passages without a label count as misses in ``paired``, and ``corrected`` comes from expert ratings of passages."""

    name: str
    title: Bilingual
    scale: Scale
    direction: Direction
    paired: PairedDifference | None
    p_family: float | None
    passes: McNemar | None
    corrected: Figure
    differs: tuple[str, ...]
    judge_shift: JudgeShift | None = None
    labels_missing: bool = False

    @property
    def tested(self) -> bool:
        """Return whether the metric was tested, which requires a difference of the overall score."""
        return self.p_family is not None

    @property
    def system_shift(self) -> JudgeShift | None:
        """Part of the change that remains for the system after the judge's shift."""
        if self.judge_shift is None or self.paired is None:
            return None
        return self.judge_shift.system_change(self.paired.value, self.paired.low, self.paired.high)


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """A question with its score in both runs, from 0 to 1 over the parts that apply."""

    question_id: str
    question: str
    category: str
    current: float
    baseline: float

    @property
    def change(self) -> float:
        """This run minus the baseline."""
        return self.current - self.baseline


class ScoreChange(NamedTuple):
    """Score of a question in both runs, from 0 to 1 over the parts that apply, and whether its answers differ."""

    question_id: str
    current: float
    baseline: float
    text_differs: bool

    @property
    def change(self) -> float:
        """This run minus the baseline; 0 for a difference of rounding."""
        change = self.current - self.baseline
        return 0.0 if abs(change) <= MIN_WIDTH else change


@dataclass(frozen=True, slots=True)
class RunDifference:
    """This run minus the baseline, under this run's profile, on common parts and questions.

    ``overall`` compares judge-only scores over ``parts``, which hold the share ``weight`` of the profile's weight.
    ``p_family`` is as for metrics. ``corrected`` is the difference of corrected overall scores for questions like
    these, or why there is none; ``corrected_this_run`` is the same for these answers alone. ``rated_blind`` tells
    whether either run has blind ratings. ``passes`` counts questions that pass in one run only, for profiles with a
    pass rule. ``worse`` and ``better`` are the largest changes, ``changes`` all common questions, the largest loss
    first. ``retrieval`` holds label-based metrics corrected by a repair of both runs. ``margin`` is the largest
    difference of overall scores that does not matter, ``None`` if not stated. ``release`` is the difference from
    ratings of changed answers, ``None`` unless both runs answered the same version of a question set.
    ``equal_answers`` tells whether both runs score the same answers to all questions."""

    run_id: int
    baseline_id: int
    differs: DifferingVersions
    overall: PairedDifference | None
    p_family: float | None
    weight: float
    parts: tuple[str, ...]
    corrected: Figure
    corrected_this_run: Figure
    rated_blind: bool
    passes: McNemar | None
    metrics: tuple[MetricDifference, ...]
    worse: tuple[QuestionChange, ...]
    better: tuple[QuestionChange, ...]
    changes: tuple[ScoreChange, ...] = ()
    retrieval: RepairedRetrieval | None = None
    margin: float | None = None
    release: ReleaseDifference | None = None
    equal_answers: bool = False

    @property
    def release_leads(self) -> bool:
        """Return whether the verdict rests on ratings of changed answers: unless some of its parts are unrated, and
        other ratings cover them."""
        if self.release is None or not self.release.decides:
            return False
        covered_otherwise = self.corrected.low is not None and not self.corrected.partly_corrected
        return not (self.release.figure.partly_corrected and covered_otherwise)

    @property
    def leading(self) -> Figure:
        """Corrected difference that the verdict rests on: for exactly these questions, or for questions like these."""
        return self.release.figure if self.release and self.release_leads else self.corrected

    def without_intervals(self) -> RunDifference:
        """Return a copy without the deviations needed to recompute intervals."""
        metrics = (dataclasses.replace(metric, paired=_without_deviation(metric.paired)) for metric in self.metrics)
        retrieval = self.retrieval and self.retrieval.without_intervals()
        return dataclasses.replace(
            self, overall=_without_deviation(self.overall), metrics=tuple(metrics), retrieval=retrieval
        )


def _without_deviation(paired: PairedDifference | None) -> PairedDifference | None:
    return paired and dataclasses.replace(paired, deviation=None)


def difference(current: Side, baseline: Side, confidence: float = CONFIDENCE) -> RunDifference:
    """Compare two runs, each figure at the given confidence. Intervals are t intervals of the questions'
    differences."""
    releases = pair_releases(current.basis, baseline.basis)
    return _apply_tests(_compare_sides(current, baseline), current, baseline, _separate_tests(confidence), releases)


# Placeholder of a corrected figure until its confidence is known.
_PENDING = withheld("open")


def _compare_sides(current: Side, baseline: Side) -> RunDifference:
    """Compute everything that does not depend on the confidence of the corrected figures."""
    profile = current.basis.profile
    groups = {**question_groups(baseline), **question_groups(current)}
    current_values, baseline_values = part_values(current, profile), part_values(baseline, profile)
    names = [name for name in current_values if set(current_values[name]) & set(baseline_values.get(name, ()))]
    weights = part_weights(profile, names)
    parts = [PairedPart(current_values[name], baseline_values[name], weights[name]) for name in names]
    differing = differing_versions([baseline.report, current.report])
    pass_shares = [passing_shares(side, profile) for side in (current, baseline)]
    changes = _question_changes(current, question_scores(current, profile), question_scores(baseline, profile))
    retrieval = current.report.retrieval or baseline.report.retrieval
    repaired = repaired_difference(current.basis.run, baseline.basis.run, retrieval)
    return RunDifference(
        run_id=current.run_id,
        baseline_id=baseline.run_id,
        differs=differing,
        overall=paired_sum(parts, groups, limit=1.0),
        p_family=None,
        weight=compared_weight(profile, names),
        parts=tuple(names),
        corrected=_PENDING,
        corrected_this_run=_PENDING,
        rated_blind=any(side.basis.correction.rated_blind for side in (current, baseline)),
        passes=_pass_changes(*pass_shares) if all(pass_shares) else None,
        metrics=_metric_differences(current, baseline, groups, differing, repaired),
        worse=tuple(change for change in changes[:MAX_CHANGES] if change.change < 0),
        better=tuple(change for change in reversed(changes[-MAX_CHANGES:]) if change.change > 0),
        changes=_score_changes(changes, current, baseline),
        retrieval=repaired,
    )


def differences_from_first(sides: Sequence[Side]) -> tuple[tuple[RunDifference, ...], Multiplicity]:
    """Compare each run with the first of ``sides``, testing overall scores before metrics.

    The family-wise error of 5% covers judge-only and corrected scores. Intervals and verdicts are those of the tests.
    """
    baseline = sides[0]
    compared_sides = [
        (_compare_sides(side, baseline), side, pair_releases(side.basis, baseline.basis)) for side in sides[1:]
    ]
    branches = [
        branch
        for run_difference, current, _releases in compared_sides
        for branch in _branches(run_difference, current, baseline)
    ]
    # Where a release difference leads, it takes the place of the test of corrected scores.
    others = sum(
        releases is not None and branch.overall is None and difference_figure(releases, CONFIDENCE).has_width
        for (_, _, releases), branch in zip(compared_sides, branches[1::2], strict=True)
    )
    multiplicity, tests = gatekeep(branches, others=others)
    pairs = zip(compared_sides, tests[::2], tests[1::2], strict=True)
    return tuple(
        _apply_tests(
            run_difference, current, baseline, _Tests(multiplicity.confidence, judge_only, corrected), releases
        )
        for (run_difference, current, releases), judge_only, corrected in pairs
    ), multiplicity


def _branches(run_difference: RunDifference, current: Side, baseline: Side) -> tuple[Branch, Branch]:
    """Return the tests of judge-only and of corrected scores.

    Without ratings of answers, the repaired nDCG is the leading corrected score."""
    gated = run_difference.overall is not None
    judge_only = {
        metric.name: metric.paired.deviation
        for metric in run_difference.metrics
        if metric.paired and metric.paired.deviation
    }
    corrected = {}
    for metric in run_difference.metrics:
        repaired = run_difference.retrieval.figures.get(metric.name) if run_difference.retrieval else None
        parts = _metric_parts(metric.name, current, baseline)
        if deviation := repaired.deviation if repaired else _corrected_deviation(parts):
            corrected[metric.name] = deviation
    pair = _overall_parts(current, baseline)
    lead = _corrected_deviation(pair)
    if lead is None and run_difference.retrieval:
        lead = corrected.pop(GateScore.NDCG, None)
    return Branch(run_difference.overall.deviation if run_difference.overall else None, judge_only, gated), Branch(
        lead, corrected, gated, _planned_looks(pair)
    )


@dataclass(frozen=True, slots=True)
class _Tests:
    """Tests of one run's judge-only and corrected scores. ``confidence`` is that of the overall intervals, before the
    error of corrected scores is shared over the planned looks at their ratings."""

    confidence: float
    judge_only: BranchTests
    corrected: BranchTests

    def corrected_confidence(self, looks: int) -> float:
        return 1.0 - (1.0 - self.confidence) / looks


def _separate_tests(confidence: float) -> _Tests:
    """Return a placeholder without tests: each figure at one confidence."""
    return _Tests(confidence, BranchTests(None, {}, confidence), BranchTests(None, {}, confidence))


def _apply_tests(
    run_difference: RunDifference, current: Side, baseline: Side, tests: _Tests, releases: Releases | None
) -> RunDifference:
    pair = _overall_parts(current, baseline)
    leading = GateScore.NDCG if _corrected_deviation(pair) is None else ""

    def corrected(metric: MetricDifference) -> Figure:
        """Correct by ratings of passages if the metric reads incomplete labels, otherwise by ratings of answers."""
        confidence = tests.corrected.metric_confidence
        if run_difference.retrieval and metric.labels_missing:
            return run_difference.retrieval.figure(
                metric.name, tests.confidence if metric.name == leading else confidence
            )
        return _corrected(_metric_parts(metric.name, current, baseline), confidence=confidence)

    metrics = (
        dataclasses.replace(
            metric,
            paired=metric.paired and metric.paired.with_confidence(tests.judge_only.metric_confidence),
            p_family=tests.judge_only.metric_p.get(metric.name),
            corrected=corrected(metric),
        )
        for metric in run_difference.metrics
    )
    confidence = tests.corrected_confidence(_planned_looks(pair))
    release = None if releases is None else describe_difference(releases, tests.confidence)
    return dataclasses.replace(
        run_difference,
        overall=run_difference.overall and run_difference.overall.with_confidence(tests.confidence),
        p_family=tests.judge_only.overall_p,
        corrected=_corrected(pair, confidence=confidence),
        corrected_this_run=_corrected(pair, Target.THIS_RUN, confidence),
        metrics=tuple(metrics),
        release=release,
        equal_answers=release.changed == 0 if release else _is_same_answer_set(current, baseline),
    )


def _is_same_answer_set(current: Side, baseline: Side) -> bool:
    return current.basis.run.answer_set_id == baseline.basis.run.answer_set_id


def _metric_differences(
    current: Side,
    baseline: Side,
    groups: Mapping[str, str],
    differing: DifferingVersions,
    repaired: RepairedRetrieval | None,
) -> tuple[MetricDifference, ...]:
    current_metrics, baseline_metrics = (side.basis.sides.machine.metrics for side in (current, baseline))
    lines = [
        metric_line
        for metric_line in current.report.metrics
        if metric_line.name in current_metrics and metric_line.name in baseline_metrics and not metric_line.scale.labels
    ]
    shifts = judge_shifts(current.basis.run, baseline.basis.run)
    return tuple(
        dataclasses.replace(
            _metric_difference(line, current, baseline, groups, differing, repaired),
            judge_shift=shifts.get(line.metric_id),
        )
        for line in lines
    )


def _metric_difference(
    line: MetricLine,
    current: Side,
    baseline: Side,
    groups: Mapping[str, str],
    differing: DifferingVersions,
    repaired: RepairedRetrieval | None,
) -> MetricDifference:
    current_values = by_question(current.basis.sides.machine.metrics[line.name].numbers)
    baseline_values = by_question(baseline.basis.sides.machine.metrics[line.name].numbers)
    direction = Direction(current.basis.evidence.metrics[line.metric_id].direction)
    paired = paired_difference(current_values, baseline_values, groups, limit=line.scale.width)
    if paired and direction is Direction.LOWER:
        paired = dataclasses.replace(paired, wins=paired.losses, losses=paired.wins)
    return MetricDifference(
        name=line.name,
        title=line.title,
        scale=line.scale,
        direction=direction,
        paired=paired,
        p_family=None,
        passes=_pass_changes(current_values, baseline_values) if line.scale.kind is ScaleKind.YES_NO else None,
        corrected=_PENDING,
        differs=metric_differences(current, baseline, line.name, differing),
        labels_missing=repaired is not None and reads_labels(line.name),
    )


def _pass_changes(current: Mapping[str, float], baseline: Mapping[str, float]) -> McNemar:
    """Test for questions passed in one run only.

    Several answers to a question pass by majority; questions with a tie are left out."""
    decided = [key for key in current if key in baseline and current[key] != 0.5 and baseline[key] != 0.5]
    gained = sum(current[key] > 0.5 > baseline[key] for key in decided)
    return mcnemar(gained, sum(current[key] < 0.5 < baseline[key] for key in decided))


# Components whose sum is a corrected figure, or a figure that says why there is none.
_Parts = list[Component] | Figure
_Pair = tuple[_Parts, _Parts]


def _metric_parts(name: str, current: Side, baseline: Side) -> _Pair:
    parts: list[_Parts] = []
    for side in (current, baseline):
        line = next((metric_line for metric_line in side.report.metrics if metric_line.name == name), None)
        metric = side.basis.evidence.metrics.get(line.metric_id) if line else None
        component = side.basis.correction.metric_component(metric) if metric else None
        parts.append([component] if component else [])
    return parts[0], parts[1]


def _overall_parts(current: Side, baseline: Side) -> _Pair:
    profile = current.basis.profile
    parts: list[_Parts] = []
    for side in (current, baseline):
        score = machine_score(side, profile)
        is_overall = score.outcome.label is FigureLabel.OVERALL_SCORE
        reason = score.outcome.reason or str(score.outcome.label)
        parts.append(side.basis.correction.components(profile, score) if is_overall else withheld(reason))
    pair = parts[0], parts[1]
    return (
        (withheld(Withheld.CARRIED), pair[1])
        if _why_not_comparable(pair) and _has_carried_ratings(current, baseline)
        else pair
    )


def _planned_looks(pair: _Pair) -> int:
    """Return the planned number of looks at the ratings behind a corrected difference."""
    components = [component for parts in pair if not isinstance(parts, Figure) for component in parts]
    return max((component.looks for component in components), default=1)


def _has_carried_ratings(*sides: Side) -> bool:
    """Return whether a metric's ratings all come from equal answers of earlier answer sets."""
    return any(side.basis.correction.is_only_carried(line.name) for side in sides for line in side.report.metrics)


def _why_not_comparable(pair: _Pair) -> Withheld | None:
    """Return why the corrected parts of two runs are not comparable; ``None`` if the same parts are rated, or none
    exist."""
    rated_names = [
        {component.name for component in parts if component.labels} for parts in pair if not isinstance(parts, Figure)
    ]
    if len(rated_names) < 2:
        return None
    current, baseline = rated_names
    if not current and not baseline:
        return Withheld.NOT_REVIEWED
    return None if current == baseline else Withheld.NOT_BOTH_RATED


def _corrected(pair: _Pair, target: Target = Target.QUESTIONS_LIKE_THESE, confidence: float = CONFIDENCE) -> Figure:
    """Return the corrected difference if the same parts are rated in both runs.

    Otherwise it would compare experts with a judge."""
    current, baseline = pair
    if isinstance(current, Figure):
        return current
    if isinstance(baseline, Figure):
        return baseline
    if reason := _why_not_comparable(pair):
        return withheld(reason)
    figure = to_figure(corrected_difference(current, baseline, target, confidence))
    if figure.low is None or figure.high is None or figure.high - figure.low > MIN_WIDTH:
        return figure
    return dataclasses.replace(figure, low=None, high=None, no_interval="no_variation")


def _corrected_deviation(pair: _Pair) -> Deviation | None:
    """Return the deviation by group of a corrected difference, if it has an interval."""
    current, baseline = pair
    if isinstance(current, Figure) or isinstance(baseline, Figure) or _corrected(pair).low is None:
        return None
    return corrected_deviation(current, baseline)


def _question_changes(side: Side, current: Mapping[str, float], baseline: Mapping[str, float]) -> list[QuestionChange]:
    """Return the common questions by their change, the largest loss first."""
    answers = {answer.question_id: answer for answer in side.basis.evidence.answers.values()}
    changes = [
        QuestionChange(key, answers[key].question, answers[key].category, current[key], baseline[key])
        for key in current
        if key in baseline
    ]
    return sorted(changes, key=lambda change: (change.change, change.question_id))


def _score_changes(changes: Sequence[QuestionChange], *sides: Side) -> tuple[ScoreChange, ...]:
    """Return the scores of all changes, and whether the texts differ. Two queries."""
    texts, other_texts = (_text_hashes(side) for side in sides)
    return tuple(
        ScoreChange(
            change.question_id,
            change.current,
            change.baseline,
            texts.get(change.question_id) != other_texts.get(change.question_id),
        )
        for change in changes
    )


def _text_hashes(side: Side) -> dict[str, dict[int, str]]:
    """Return the hash of each answer's text by question and sample. One query."""
    answers = side.basis.evidence.answers
    hashes: dict[str, dict[int, str]] = {}
    rows = Answer.objects.filter(answer_set_id=side.basis.run.answer_set_id).values_list("pk", "text_hash")
    for pk, text_hash in rows.iterator():
        if answer := answers.get(pk):
            hashes.setdefault(answer.question_id, {})[answer.sample] = text_hash
    return hashes


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Ranking of runs by judge-only score over common parts and questions, under the newest run's profile.

    ``parts`` are the weights in use; ``sensitivity`` is ``None`` if there is nothing to weigh."""

    profile: str
    parts: Mapping[str, float]
    ranking: RunRanking
    sensitivity: WeightSensitivity | None

    @property
    def ranked(self) -> tuple[RankedRun, ...]:
        """Rows of the ranking, best first; empty for two runs, whose difference is more informative."""
        return self.ranking.order if len(self.ranking.order) > 2 else ()


def rank_runs(sides: Sequence[Side], *, seed: int = 0) -> RunOrder | None:
    """Rank at least two runs; ``None`` for fewer, or without a common question of any part."""
    if len(sides) < 2:
        return None
    newest = max(sides, key=lambda side: side.run_id)
    profile = newest.basis.profile
    values = {str(side.run_id): part_values(side, profile) for side in sides}
    common = _common_questions(values)
    if not common:
        return None
    weights = part_weights(profile, common)
    groups = {key: group for side in sides for key, group in question_groups(side).items()}
    means = {
        run: {name: math.fsum(run_values[name][key] for key in common[name]) / len(common[name]) for name in weights}
        for run, run_values in values.items()
    }
    return RunOrder(
        profile=newest.report.header.profile,
        parts=weights,
        ranking=rank_weighted_runs(values, weights, groups, seed=seed),
        sensitivity=weight_sensitivity(means, weights, seed=seed),
    )


def _common_questions(values: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, list[str]]:
    """Return the common questions by part, without parts that have none."""
    names = set.intersection(*(set(run_values) for run_values in values.values()))
    common = {}
    for name in sorted(names):
        keys = set.intersection(*(set(run_values[name]) for run_values in values.values()))
        if keys:
            common[name] = sorted(keys)
    return common
