"""Evidence on a run's answers, and the effective value: a decision, else the experts, else the judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property, partial
from typing import NamedTuple, Protocol, TypeVar

from evaluation.core.metric_specs import MetricKind
from evaluation.core.samples import Status
from evaluation.core.scales import ScaleKind
from evaluation.models import MetricDefinition, Run
from review.evidence.answers import RunAnswer, excluded_answers, run_answers
from review.evidence.carried import CarriedRatings, RatingOrigin, carried_ratings
from review.evidence.experts import ExpertRating, agreement_ratings, effective_ratings, ratings_of, read_ratings
from review.evidence.sampling import Samples, load_samples
from review.evidence.scorers import AnswerMetricKey, JudgedValue, Scorer, load_scorers, majority, run_scores
from review.evidence.seals import sealed_answers
from review.models import Override
from review.statistics.agreement.statistic import Indices, factorize


class _HasKind(Protocol):
    @property
    def kind(self) -> str: ...


Row = TypeVar("Row", bound=_HasKind)


@dataclass(frozen=True, slots=True)
class Decision:
    """Value or label of an override or adjudication, which takes precedence; a revert has neither."""

    value: float | None
    label: str | None
    kind: str


def standing_decision(rows: Iterable[Row]) -> Row | None:
    """Override or adjudication in force, from all rows of an answer and metric in the order of ``seq``.

    Each revert cancels the newest decision before it."""
    stack: list[Row] = []
    for row in rows:
        if row.kind != Override.Kind.REVERT:
            stack.append(row)
        elif stack:
            stack.pop()
    return stack[-1] if stack else None


def standing_decisions(
    answer_set_id: int | None, answer_ids: Collection[int] | None = None
) -> dict[AnswerMetricKey, Decision]:
    """Decision in force for each answer and metric. Without an answer set, of the given answers. One query."""
    rows = (
        Override.objects.all()
        if answer_set_id is None
        else Override.objects.filter(answer__answer_set_id=answer_set_id)
    )
    if answer_ids is not None:
        rows = rows.filter(answer_id__in=answer_ids)
    decisions_by_key: dict[AnswerMetricKey, list[Decision]] = {}
    columns = rows.order_by("answer_id", "metric_id", "seq")
    for answer_id, metric_id, kind, value, label in columns.values_list(
        "answer_id", "metric_id", "kind", "value", "label"
    ):
        decisions_by_key.setdefault((answer_id, metric_id), []).append(Decision(value, label, kind))
    return {
        key: decision
        for key, decisions in decisions_by_key.items()
        if (decision := standing_decision(decisions)) is not None
    }


def adjudicated_metrics_by_answer(answer_ids: Collection[int]) -> dict[int, frozenset[int]]:
    """Metrics with a lead's adjudication in force, by answer; they are closed for raters. One query."""
    metrics_by_answer: dict[int, set[int]] = {}
    for (answer, metric), decision in standing_decisions(None, answer_ids).items():
        if decision.kind == Override.Kind.ADJUDICATION:
            metrics_by_answer.setdefault(answer, set()).add(metric)
    return {answer: frozenset(metrics) for answer, metrics in metrics_by_answer.items()}


@dataclass(frozen=True)
class RunEvidence:
    """Evidence on the answers of a run.

    ``metrics`` holds every metric with a value, by primary key. ``scored`` has the values of rules and primary judges
    by metric and answer, ``computed`` their metrics. ``excluded`` are answers that a lead excluded from all means.

    ``carried`` are ratings of equal answers, for answers that nobody rated; they are not in ``ratings``. ``standing``
    are blind ratings of equal answers, also for answers that were rated again; without ratings where they are sealed.
    ``sealed`` are answers whose labels are hidden from the reader (:mod:`review.evidence.seals`). ``withheld`` holds
    their ratings without values, because the sampling of answers does not depend on the reader."""

    answers: dict[int, RunAnswer]
    scorers: list[Scorer]
    scored: dict[int, dict[int, JudgedValue]]
    ratings: list[ExpertRating]
    decisions: dict[AnswerMetricKey, Decision]
    metrics: dict[int, MetricDefinition]
    computed: frozenset[int]
    excluded: tuple[RunAnswer, ...] = ()
    carried: Mapping[AnswerMetricKey, CarriedRatings] = field(default_factory=dict)
    sealed: frozenset[int] = frozenset()
    withheld: Sequence[ExpertRating] = ()
    standing: Mapping[AnswerMetricKey, CarriedRatings] = field(default_factory=dict)

    @cached_property
    def blind(self) -> dict[AnswerMetricKey, list[ExpertRating]]:
        """Each rater's blind first rating, see :func:`agreement_ratings`."""
        return agreement_ratings(self.ratings)

    @cached_property
    def blind_by_metric(self) -> dict[int, dict[int, list[ExpertRating]]]:
        """Each rater's blind first rating, by metric and answer."""
        by_metric: dict[int, dict[int, list[ExpertRating]]] = {}
        for (answer, metric), rows in self.blind.items():
            by_metric.setdefault(metric, {})[answer] = rows
        return by_metric

    @cached_property
    def latest(self) -> dict[AnswerMetricKey, list[ExpertRating]]:
        """Each rater's last rating, see :func:`effective_ratings`."""
        return effective_ratings(self.ratings)

    @cached_property
    def ratings_by_metric(self) -> dict[int, list[ExpertRating]]:
        by_metric: dict[int, list[ExpertRating]] = {}
        for row in self.ratings:
            by_metric.setdefault(row.metric_id, []).append(row)
        return by_metric

    @property
    def prompt_labels(self) -> frozenset[AnswerMetricKey]:
        """Labels that the prompts of the primary judges were developed on."""
        return frozenset().union(*(scorer.prompt_labels for scorer in self.scorers if scorer.primary))

    @property
    def imported_judges(self) -> dict[str, str]:
        """Primary imported judge of each metric, by the metric's name."""
        imported = (scorer for scorer in self.scorers if scorer.imported and scorer.primary)
        return dict(sorted((self.metrics[pk].name, scorer.author) for scorer in imported for pk in scorer.values))

    @cached_property
    def keys(self) -> list[int]:
        return list(self.answers)

    @cached_property
    def groups(self) -> tuple[Indices, list[str]]:
        """Group of each answer as a position in the names, and the names."""
        group_of_answer = [answer.group for answer in self.answers.values()]
        return factorize(group_of_answer), list(dict.fromkeys(group_of_answer))

    @cached_property
    def categories(self) -> tuple[Indices, dict[str, int]]:
        """Category of each answer as a number, and the number of each category."""
        category_of_answer = [answer.category for answer in self.answers.values()]
        return factorize(category_of_answer), {
            name: number for number, name in enumerate(dict.fromkeys(category_of_answer))
        }

    @cached_property
    def names(self) -> dict[int, str]:
        """Name of each metric, with the version if two versions were used."""
        return metric_names(self.metrics)


def metric_names(metrics: Mapping[int, MetricDefinition]) -> dict[int, str]:
    """Name of each metric, with the version if there are two versions of it."""
    name_counts = Counter(metric.name for metric in metrics.values())
    return {
        pk: metric.name if name_counts[metric.name] == 1 else f"{metric.name}@{metric.version}"
        for pk, metric in metrics.items()
    }


def load_evidence(run: Run, answer_ids: Collection[int] | None = None) -> RunEvidence:
    """Load all evidence on the run's answers, or some of them.

    Nine queries, three more with carried ratings, and up to three more if the project has a gold set. For a whole run,
    answers that a lead excluded are left out and listed in ``excluded``. Labels sealed to the reader are left out."""
    run_rows = run_answers(run, answer_ids)
    excluded_ids = excluded_answers(run.answer_set_id, answer_ids)
    excluded = tuple(run_answer for run_answer in run_rows if run_answer.answer_id in excluded_ids)
    included = (
        run_rows
        if answer_ids is not None
        else [run_answer for run_answer in run_rows if run_answer.answer_id not in excluded_ids]
    )
    answers = {answer.answer_id: answer for answer in included}
    sealed = sealed_answers(run.project_id, run.answer_set_id, answer_ids)
    labelled = answers.keys() - sealed
    scorers = load_scorers(run, answer_ids)
    rows = read_ratings(ratings_of(run.answer_set_id, answer_ids))
    ratings = [row for row in rows if row.answer_id in labelled]
    withheld = [row._replace(value=None, label=None) for row in rows if row.answer_id in answers.keys() & sealed]
    decisions = {
        answer_metric: decision
        for answer_metric, decision in standing_decisions(run.answer_set_id, answer_ids).items()
        if answer_metric[0] in labelled
    }
    scored = run_scores(scorers, answers)
    equal_ratings = {key: equal for key, equal in carried_ratings(run, answer_ids).items() if key[0] in answers}
    metric_ids = {metric for scorer in scorers for metric in scorer.values} | {row.metric_id for row in ratings}
    metric_ids |= {metric for _, metric in decisions}
    definitions = MetricDefinition.objects.in_bulk(metric_ids | {metric for _, metric in equal_ratings})
    computed = frozenset(scored)
    valid = _valid_carried(equal_ratings, definitions, computed)
    readable_keys = _without_sealed(run, valid, sealed)
    effective = effective_ratings(ratings)
    carried = {key: valid[key] for key in readable_keys if key not in effective}
    standing = {
        key: equal if key in readable_keys else replace(equal, ratings=(), blind=())
        for key, equal in valid.items()
        if equal.blind
    }
    metrics = {pk: definitions[pk] for pk in metric_ids | {metric for _, metric in carried}}
    return RunEvidence(
        answers, scorers, scored, ratings, decisions, metrics, computed, excluded, carried, sealed, withheld, standing
    )


def standing_answers(run: Run, metric_ids: Collection[int]) -> dict[int, frozenset[int]]:
    """Answers of the run with a standing rating: a blind rating of an equal answer in an earlier answer set.

    By metric, for these metrics (primary keys); any form of sealed labels has the same ones. Three queries, two more if
    there are any."""
    equal_ratings = {key: equal for key, equal in carried_ratings(run).items() if key[1] in set(metric_ids)}
    metrics = MetricDefinition.objects.in_bulk({metric for _, metric in equal_ratings})
    valid = _valid_carried(equal_ratings, metrics, set())
    return {
        metric: frozenset(answer for (answer, pk), equal in valid.items() if pk == metric and equal.blind)
        for metric in metric_ids
    }


def _without_sealed(
    run: Run, equal: Mapping[AnswerMetricKey, CarriedRatings], sealed: Collection[int]
) -> frozenset[AnswerMetricKey]:
    """Keys of the ratings that the reader may see.

    An answer without a text has ratings of an equal one, but is not sealed with it. One query if there are any ratings,
    and more if the project has a gold set."""
    origins = {carried.origin.answer_id for carried in equal.values()}
    sealed_origins = sealed_answers(run.project_id, None, origins) if origins else frozenset()
    return frozenset(
        key for key, carried in equal.items() if key[0] not in sealed and carried.origin.answer_id not in sealed_origins
    )


def _valid_carried(
    equal: Mapping[AnswerMetricKey, CarriedRatings],
    metrics: Mapping[int, MetricDefinition],
    computed: Collection[int],
) -> dict[AnswerMetricKey, CarriedRatings]:
    """Keep the carried ratings that are valid for a run.

    No decision on the equal answer takes precedence, the raters were not tied, and the run computes no other version of
    the metric. One query if there are any."""
    if not equal:
        return {}
    decisions = standing_decisions(None, {carried.origin.answer_id for carried in equal.values()})
    versions = {metrics[pk].name: pk for pk in computed}
    return {
        (answer, pk): carried
        for (answer, pk), carried in equal.items()
        if (carried.origin.answer_id, pk) not in decisions
        and versions.get(metrics[pk].name, pk) == pk
        and consensus_value(metrics[pk], carried.ratings) != (None, None)
    }


def run_samples(run: Run, evidence: RunEvidence) -> Samples:
    """Load the draws and imported samples behind the ratings. Three queries."""
    return load_samples(run.answer_set_id, list(evidence.answers), evidence.withheld)


# Nobody has scored or rated it yet.
NO_VALUE = "no_value"


class ValueSource(StrEnum):
    """Source of the effective value. ``rule``: the metric is computed without a judge."""

    OVERRIDE = "override"
    REVIEW = "review"
    JUDGE = "judge"
    RULE = "rule"
    NONE = "none"


class EffectiveValue(NamedTuple):
    """Effective value of one metric for one answer, with the scored value; equal ones share one object.

    ``value`` or ``label`` is set unless ``source`` is none. ``status`` then distinguishes failed, not applicable and
    pending (``None``), and ``reason`` explains it. ``raters`` counts the experts behind the value, or the tied ones.

    ``unresolved``: experts are tied on a yes/no or class metric; the judge's value is used until a lead adjudicates.
    ``judged`` is ``None`` without a score. ``carried`` is the origin of a value from an equal answer."""

    source: ValueSource
    status: Status | None
    value: float | None = None
    label: str | None = None
    reason: str = ""
    raters: int = 0
    unresolved: bool = False
    judged: JudgedValue | None = None
    carried: RatingOrigin | None = None

    @property
    def human(self) -> bool:
        """Return whether a person's decision or rating gave the value."""
        return self.source in {ValueSource.OVERRIDE, ValueSource.REVIEW}


@dataclass(frozen=True, slots=True)
class RunValues:
    """Effective values of a run by metric and answer, and their metrics by primary key.

    ``human_values`` holds those with any rating or decision. ``computed`` are the metrics with scores of the run; the
    others were only rated."""

    values: dict[int, dict[int, EffectiveValue]]
    human_values: dict[int, dict[int, EffectiveValue]]
    metrics: dict[int, MetricDefinition]
    computed: frozenset[int]

    @property
    def reviewed(self) -> frozenset[int]:
        """Answers with any value that a person gave."""
        return frozenset(
            pk for by_answer in self.human_values.values() for pk, effective in by_answer.items() if effective.human
        )


def effective_values(run: Run, answer_ids: Collection[int] | None = None) -> RunValues:
    """Effective values of a run, or of some of its answers, in a fixed number of queries.

    A metric that the run computes has a value for every answer; a metric that was only rated has one for each rated
    answer. For a whole run, answers with an upheld flag of a bad question or reference are left out."""
    return effective_values_from(load_evidence(run, answer_ids))


def effective_values_from(evidence: RunEvidence) -> RunValues:
    """Effective values of the evidence; the run's own metrics first, each in the order of the answers."""
    rated_answers: dict[int, set[int]] = {pk: set() for pk in evidence.computed}
    for answer, metric_id in (*evidence.latest, *evidence.decisions, *evidence.carried):
        rated_answers.setdefault(metric_id, set()).add(answer)
    values: dict[int, dict[int, EffectiveValue]] = {}
    human_values: dict[int, dict[int, EffectiveValue]] = {}
    for metric_id in sorted(rated_answers, key=lambda pk: (pk not in evidence.computed, evidence.metrics[pk].name, pk)):
        scored_value, scored = (
            cache(partial(_scored_value, evidence.metrics[metric_id])),
            evidence.scored.get(metric_id, {}),
        )
        human_by_answer = {
            pk: _human_value(evidence, pk, metric_id) for pk in evidence.answers if pk in rated_answers[metric_id]
        }
        values[metric_id] = human_values[metric_id] = human_by_answer
        if metric_id in evidence.computed:
            values[metric_id] = {pk: human_by_answer.get(pk) or scored_value(scored.get(pk)) for pk in evidence.answers}
    return RunValues(values, human_values, {pk: evidence.metrics[pk] for pk in values}, evidence.computed)


def _human_value(evidence: RunEvidence, answer_id: int, metric_id: int) -> EffectiveValue:
    """Effective value of an answer with a rating or decision, or with carried ratings."""
    key, metric = (answer_id, metric_id), evidence.metrics[metric_id]
    ratings, carried = evidence.latest.get(key, ()), evidence.carried.get(key)
    judged = evidence.scored.get(metric_id, {}).get(answer_id)
    effective = partial(EffectiveValue, raters=len(ratings or (carried.ratings if carried else ())), judged=judged)
    if (decision := evidence.decisions.get(key)) is not None:
        return effective(ValueSource.OVERRIDE, Status.SCORED, decision.value, decision.label)
    value, label = consensus_value(metric, ratings)
    if value is not None or label is not None:
        return effective(ValueSource.REVIEW, Status.SCORED, value, label)
    if carried is not None and not ratings:
        return effective(
            ValueSource.REVIEW, Status.SCORED, *consensus_value(metric, carried.ratings), carried=carried.origin
        )
    return _scored_value(metric, judged)._replace(raters=len(ratings), unresolved=True)


def _scored_value(metric: MetricDefinition, judged: JudgedValue | None) -> EffectiveValue:
    if judged is None:
        return EffectiveValue(ValueSource.NONE, None, reason=NO_VALUE)
    status, value, label, reason, *_ = judged
    if status is not Status.SCORED:
        return EffectiveValue(ValueSource.NONE, status, value, label, reason, judged=judged)
    source = ValueSource.RULE if metric.kind in {MetricKind.RULE, MetricKind.EMBEDDING} else ValueSource.JUDGE
    return EffectiveValue(source, status, value, label, judged=judged)


def consensus_value(metric: MetricDefinition, ratings: Sequence[ExpertRating]) -> tuple[float | None, str | None]:
    """Consensus of the experts: the mean, or the majority for yes/no and classes; neither if tied."""
    if not ratings:
        return None, None
    kind = metric.read_scale().kind
    if kind is ScaleKind.CLASS:
        return None, majority(str(rating.label) for rating in ratings)
    values = [rating.value for rating in ratings if rating.value is not None]
    mean = math.fsum(values) / len(values)
    if kind is ScaleKind.YES_NO:
        return (None if math.isclose(mean, 0.5) else float(mean > 0.5)), None
    return mean, None
