"""Two runs compared question by question, and several runs in order with how sure that is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.metric_specs import Bilingual, Direction
from evaluation.core.scales import Scale, ScaleKind
from evaluation.profiles.arithmetic import Label
from review.calibration.drift import Moved, judge_moved
from review.comparisons.values import (
    Differing,
    Side,
    by_question,
    differing_versions,
    groups_of,
    machine_score,
    metric_differs,
    part_values,
    part_weights,
    passing,
    question_scores,
    weight_compared,
)
from review.reports.figure import NO_WIDTH, Figure, Withheld, as_figure, withheld
from review.reports.gate import GateOn
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
    Ranked,
    Ranking,
    WeightSensitivity,
    ranking_of_sums,
    weight_sensitivity,
)

SCORE = "judge_only"  # the score compared; what experts said enters the corrected difference
MOST_CHANGES = 5
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """One metric of both runs. ``paired`` is in the metric's own units, this run minus the baseline, its wins being
    questions on which this run is better; ``None`` without a common question. ``p_family`` is adjusted over everything
    that the comparison tests, ``None`` where the metric is not tested: its overall score does not differ. ``passes``
    counts changes of yes/no metrics. ``differs`` names versions in
    which it is not the same metric. ``judge_moved`` is what of the change is the judge's, where anchors tell. With
    ``labels_missing`` relevant passages without a label count as misses in ``paired``; ``corrected`` goes by experts'
    ratings of passages then."""

    name: str
    title: Bilingual
    scale: Scale
    lower_is_better: bool
    paired: PairedDifference | None
    p_family: float | None
    passes: McNemar | None
    corrected: Figure
    differs: tuple[str, ...]
    judge_moved: Moved | None = None
    labels_missing: bool = False

    @property
    def tested(self) -> bool:
        """Whether the metric has a verdict: only where its overall score differs."""
        return self.p_family is not None

    @property
    def system_moved(self) -> Moved | None:
        """What of the change is left for the system, where anchors tell what is the judge's."""
        if self.judge_moved is None or self.paired is None:
            return None
        return self.judge_moved.left_of(self.paired.value, self.paired.low, self.paired.high)


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """A question with its score in both runs (its share of the parts that apply, 0 to 1)."""

    question_id: str
    question: str
    category: str
    ours: float
    baseline: float

    @property
    def change(self) -> float:
        """This run minus the baseline."""
        return self.ours - self.baseline


@dataclass(frozen=True, slots=True)
class RunDifference:
    """This run minus the baseline, under this run's profile, on common parts and questions.

    ``overall`` is of judge-only scores, ``weight`` the share of the profile's weight its parts have, ``parts`` their
    names; ``p_family`` as for metrics. ``corrected`` is the difference of the corrected overall scores for questions
    like these, or why there is none; ``corrected_this_run`` the same for these answers alone. ``rated_blind`` tells
    whether anybody rated answers of either. ``passes`` counts questions that pass in one run only, for profiles with a
    rule for it. ``worse`` and ``better`` are the largest changes. ``retrieval`` is the difference of the metrics that
    read labels, corrected by a repair that covers both runs. ``margin`` is the largest difference of overall scores
    that does not matter to the reader, ``None`` where it is not stated.
    """

    run_id: int
    baseline_id: int
    differs: Differing
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
    retrieval: RepairedRetrieval | None = None
    margin: float | None = None

    def settled(self) -> RunDifference:
        """The same without what its intervals would be made of at another level."""
        metrics = (dataclasses.replace(one, paired=_settled(one.paired)) for one in self.metrics)
        retrieval = self.retrieval and self.retrieval.settled()
        return dataclasses.replace(self, overall=_settled(self.overall), metrics=tuple(metrics), retrieval=retrieval)


def _settled(paired: PairedDifference | None) -> PairedDifference | None:
    return paired and dataclasses.replace(paired, deviation=None)


def difference(ours: Side, baseline: Side, confidence: float = CONFIDENCE) -> RunDifference:
    """Compare two runs, each figure by itself. Nothing is resampled but signs: the intervals are t on the questions'
    differences."""
    return _tested(_measured(ours, baseline), ours, baseline, _untested(confidence))


_OPEN = withheld("open")  # stands for a corrected figure until its confidence is known


def _measured(ours: Side, baseline: Side) -> RunDifference:
    """All that does not depend on the confidence of the corrected figures."""
    profile = ours.basis.profile
    groups = {**groups_of(baseline), **groups_of(ours)}
    mine, theirs = part_values(ours, profile), part_values(baseline, profile)
    names = [name for name in mine if set(mine[name]) & set(theirs.get(name, ()))]
    weights = part_weights(profile, names)
    parts = [PairedPart(mine[name], theirs[name], weights[name]) for name in names]
    differing = differing_versions([baseline.report, ours.report])
    passed = [passing(side, profile) for side in (ours, baseline)]
    changes = _changes(ours, question_scores(ours, profile), question_scores(baseline, profile))
    either = ours.report.retrieval or baseline.report.retrieval
    repaired = repaired_difference(ours.basis.run, baseline.basis.run, either)
    return RunDifference(
        run_id=ours.run_id,
        baseline_id=baseline.run_id,
        differs=differing,
        overall=paired_sum(parts, groups, limit=1.0),
        p_family=None,
        weight=weight_compared(profile, names),
        parts=tuple(names),
        corrected=_OPEN,
        corrected_this_run=_OPEN,
        rated_blind=any(side.basis.correction.rated_blind for side in (ours, baseline)),
        passes=_passes(*passed) if all(passed) else None,
        metrics=_metrics(ours, baseline, groups, differing, repaired),
        worse=tuple(one for one in changes[:MOST_CHANGES] if one.change < 0),
        better=tuple(one for one in reversed(changes[-MOST_CHANGES:]) if one.change > 0),
        retrieval=repaired,
    )


def differences_from_first(sides: Sequence[Side]) -> tuple[tuple[RunDifference, ...], Multiplicity]:
    """The differences of runs from the first of ``sides``, overall scores tested before metrics, with the 5% of error
    held over both, judge-only and corrected. The intervals shown, and so the verdicts, are those of the tests."""
    baseline = sides[0]
    measured = [(_measured(side, baseline), side) for side in sides[1:]]
    branches = [branch for one, ours in measured for branch in _branches(one, ours, baseline)]
    multiplicity, tests = gatekeep(branches)
    pairs = zip(measured, tests[::2], tests[1::2], strict=True)
    return tuple(
        _tested(one, ours, baseline, _Tests(multiplicity.confidence, judge_only, corrected))
        for (one, ours), judge_only, corrected in pairs
    ), multiplicity


def _branches(one: RunDifference, ours: Side, baseline: Side) -> tuple[Branch, Branch]:
    """What is tested of judge-only and of corrected scores. Where no expert rated the answers of runs whose retrieval
    was repaired, nDCG by the repair is the corrected score that leads."""
    gated = one.overall is not None
    alone = {
        metric.name: metric.paired.deviation for metric in one.metrics if metric.paired and metric.paired.deviation
    }
    corrected = {}
    for metric in one.metrics:
        repaired = one.retrieval.figures.get(metric.name) if one.retrieval else None
        parts = _metric_parts(metric.name, ours, baseline)
        if deviation := repaired.deviation if repaired else _corrected_deviation(parts):
            corrected[metric.name] = deviation
    lead = _corrected_deviation(_overall_parts(ours, baseline))
    if lead is None and one.retrieval:
        lead = corrected.pop(GateOn.NDCG, None)
    return Branch(one.overall.deviation if one.overall else None, alone, gated), Branch(lead, corrected, gated)


@dataclass(frozen=True, slots=True)
class _Tests:
    """The tests of one run's judge-only and corrected scores, whose overall intervals have ``confidence``."""

    confidence: float
    judge_only: BranchTests
    corrected: BranchTests


def _untested(confidence: float) -> _Tests:
    """Each figure by itself, at one confidence."""
    return _Tests(confidence, BranchTests(None, {}, confidence), BranchTests(None, {}, confidence))


def _tested(one: RunDifference, ours: Side, baseline: Side, tests: _Tests) -> RunDifference:
    pair = _overall_parts(ours, baseline)
    leading = GateOn.NDCG if _corrected_deviation(pair) is None else ""

    def corrected(metric: MetricDifference) -> Figure:
        """By ratings of passages where it reads labels that are not complete, else by ratings of answers."""
        confidence = tests.corrected.metric_confidence
        if one.retrieval and metric.labels_missing:
            return one.retrieval.of(metric.name, tests.confidence if metric.name == leading else confidence)
        return _corrected(_metric_parts(metric.name, ours, baseline), confidence=confidence)

    metrics = (
        dataclasses.replace(
            metric,
            paired=metric.paired and metric.paired.at(tests.judge_only.metric_confidence),
            p_family=tests.judge_only.metric_p.get(metric.name),
            corrected=corrected(metric),
        )
        for metric in one.metrics
    )
    confidence = tests.confidence
    return dataclasses.replace(
        one,
        overall=one.overall and one.overall.at(confidence),
        p_family=tests.judge_only.overall_p,
        corrected=_corrected(pair, confidence=confidence),
        corrected_this_run=_corrected(pair, Target.THIS_RUN, confidence),
        metrics=tuple(metrics),
    )


def _metrics(
    ours: Side, baseline: Side, groups: Mapping[str, str], differing: Differing, repaired: RepairedRetrieval | None
) -> tuple[MetricDifference, ...]:
    mine, theirs = (side.basis.sides.machine.metrics for side in (ours, baseline))
    lines = [one for one in ours.report.metrics if one.name in mine and one.name in theirs and not one.scale.labels]
    moved = judge_moved(ours.basis.run, baseline.basis.run)
    return tuple(
        dataclasses.replace(
            _metric(line, ours, baseline, groups, differing, repaired), judge_moved=moved.get(line.metric_id)
        )
        for line in lines
    )


def _metric(
    line: MetricLine,
    ours: Side,
    baseline: Side,
    groups: Mapping[str, str],
    differing: Differing,
    repaired: RepairedRetrieval | None,
) -> MetricDifference:
    mine = by_question(ours.basis.sides.machine.metrics[line.name].numbers)
    theirs = by_question(baseline.basis.sides.machine.metrics[line.name].numbers)
    lower = ours.basis.said.metrics[line.metric_id].direction == Direction.LOWER
    paired = paired_difference(mine, theirs, groups, limit=line.scale.width)
    if paired and lower:
        paired = dataclasses.replace(paired, wins=paired.losses, losses=paired.wins)
    return MetricDifference(
        name=line.name,
        title=line.title,
        scale=line.scale,
        lower_is_better=lower,
        paired=paired,
        p_family=None,
        passes=_passes(mine, theirs) if line.scale.kind is ScaleKind.YES_NO else None,
        corrected=_OPEN,
        differs=metric_differs(ours, baseline, line.name, differing),
        labels_missing=repaired is not None and reads_labels(line.name),
    )


def _passes(ours: Mapping[str, float], baseline: Mapping[str, float]) -> McNemar:
    """Questions passed in one run and not in the other; several answers to a question pass by majority, and a question
    whose answers are split evenly is left out."""
    clear = [key for key in ours if key in baseline and ours[key] != 0.5 and baseline[key] != 0.5]
    gained = sum(ours[key] > 0.5 > baseline[key] for key in clear)
    return mcnemar(gained, sum(ours[key] < 0.5 < baseline[key] for key in clear))


_Parts = list[Component] | Figure  # what a corrected figure is the sum of, or why there is none
_Pair = tuple[_Parts, _Parts]


def _metric_parts(name: str, ours: Side, baseline: Side) -> _Pair:
    found: list[_Parts] = []
    for side in (ours, baseline):
        line = next((one for one in side.report.metrics if one.name == name), None)
        metric = side.basis.said.metrics.get(line.metric_id) if line else None
        component = side.basis.correction.metric_component(metric) if metric else None
        found.append([component] if component else [])
    return found[0], found[1]


def _overall_parts(ours: Side, baseline: Side) -> _Pair:
    profile = ours.basis.profile
    found: list[_Parts] = []
    for side in (ours, baseline):
        score = machine_score(side, profile)
        named = score.outcome.label is Label.OVERALL_SCORE
        why = score.outcome.reason or str(score.outcome.label)
        found.append(side.basis.correction.components(profile, score) if named else withheld(why))
    pair = found[0], found[1]
    return (withheld(Withheld.CARRIED), pair[1]) if _unrated(pair) and _rated_as_equal(ours, baseline) else pair


def _rated_as_equal(*sides: Side) -> bool:
    """Whether a run has metrics of which experts rated equal answers of earlier answer sets alone."""
    return any(side.basis.correction.carried_alone(line.name) for side in sides for line in side.report.metrics)


def _unrated(pair: _Pair) -> Withheld | None:
    """Why the parts of two runs cannot be compared as experts see them; ``None`` where the same were rated in both, or
    there are no parts."""
    rated = [{one.name for one in parts if one.labels} for parts in pair if not isinstance(parts, Figure)]
    if len(rated) < 2:
        return None
    ours, baseline = rated
    if not ours and not baseline:
        return Withheld.NOT_REVIEWED
    return None if ours == baseline else Withheld.NOT_BOTH_RATED


def _corrected(pair: _Pair, target: Target = Target.QUESTIONS_LIKE_THESE, confidence: float = CONFIDENCE) -> Figure:
    """The corrected difference, only where the same parts were rated in both: elsewhere it would compare experts with
    a judge."""
    ours, baseline = pair
    if isinstance(ours, Figure):
        return ours
    if isinstance(baseline, Figure):
        return baseline
    if reason := _unrated(pair):
        return withheld(reason)
    figure = as_figure(corrected_difference(ours, baseline, target, confidence))
    if figure.low is None or figure.high is None or figure.high - figure.low > NO_WIDTH:
        return figure
    return dataclasses.replace(figure, low=None, high=None, no_interval="no_variation")


def _corrected_deviation(pair: _Pair) -> Deviation | None:
    """By group, of a corrected difference that is shown."""
    ours, baseline = pair
    if isinstance(ours, Figure) or isinstance(baseline, Figure) or _corrected(pair).low is None:
        return None
    return corrected_deviation(ours, baseline)


def _changes(side: Side, ours: Mapping[str, float], baseline: Mapping[str, float]) -> list[QuestionChange]:
    """The questions of both runs by their change, the largest loss first."""
    asked = {answer.question_id: answer for answer in side.basis.said.answers.values()}
    found = [
        QuestionChange(key, asked[key].question, asked[key].category, ours[key], baseline[key])
        for key in ours
        if key in baseline
    ]
    return sorted(found, key=lambda one: (one.change, one.question_id))


@dataclass(frozen=True, slots=True)
class Order:
    """The runs by judge-only score over the parts and questions that all of them have, under the newest run's profile.
    ``parts`` are the weights in use; ``sensitivity`` is ``None`` where there is nothing to weigh."""

    profile: str
    parts: Mapping[str, float]
    ranking: Ranking
    sensitivity: WeightSensitivity | None

    @property
    def ranked(self) -> tuple[Ranked, ...]:
        """The rows of the ranking, best first; none for two runs, whose difference says more."""
        return self.ranking.order if len(self.ranking.order) > 2 else ()


def order(sides: Sequence[Side], *, seed: int = 0) -> Order | None:
    """The order of at least two runs; ``None`` for fewer, or where they have no question of any part in common."""
    if len(sides) < 2:
        return None
    newest = max(sides, key=lambda side: side.run_id)
    profile = newest.basis.profile
    values = {str(side.run_id): part_values(side, profile) for side in sides}
    common = _common(values)
    if not common:
        return None
    weights = part_weights(profile, common)
    groups = {key: group for side in sides for key, group in groups_of(side).items()}
    means = {
        run: {name: math.fsum(of[name][key] for key in common[name]) / len(common[name]) for name in weights}
        for run, of in values.items()
    }
    return Order(
        profile=newest.report.header.profile,
        parts=weights,
        ranking=ranking_of_sums(values, weights, groups, seed=seed),
        sensitivity=weight_sensitivity(means, weights, seed=seed),
    )


def _common(values: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, list[str]]:
    """Part -> the questions that every run has it of; parts without one are left out."""
    names = set.intersection(*(set(of) for of in values.values()))
    found = {}
    for name in sorted(names):
        keys = set.intersection(*(set(of[name]) for of in values.values()))
        if keys:
            found[name] = sorted(keys)
    return found
