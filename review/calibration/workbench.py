"""Workbench for judge prompts: disagreements on open labels, agreement on validation by version, and costs.

Nothing here reads hold-out answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from django.db import transaction
from django.db.models import Avg, Count, Q, Sum

from evaluation.accounts.access import lock_project
from evaluation.core.errors import DomainError
from evaluation.core.samples import Result
from evaluation.core.scales import Scale
from evaluation.criteria.rubrics import RubricScope, VersionStatuses, rubric_scope, usable_rubrics, version_statuses
from evaluation.judges.shipped import profile_row
from evaluation.judging.catalogue import family_named
from evaluation.judging.draft_checks import visible_json
from evaluation.judging.rubric import Rubric
from evaluation.models import (
    Answer,
    AnswerSet,
    JudgeVersion,
    MetricDefinition,
    Reply,
    RubricVersion,
    Run,
    RunJudge,
    Score,
    User,
    VersionStatus,
)
from evaluation.runs.budgets import check_budget
from evaluation.runs.progress import CACHED, UNSENT
from evaluation.scoring.adhoc import find_response_format, judge_without_storing
from evaluation.worker.lifecycle import RunConfig, make_run, seal_key, sealed_answers, start
from review.models import GoldItem, GoldSet, Rating
from review.statistics.acceptance import mean_difference, squared_losses
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.pair import ConstantGuess, PairAgreement, best_constant_guess, compare
from review.statistics.agreement.statistic import factorize, rounded_half_up
from review.statistics.gold_split import Split

# Share of a continuous scale up to which two values are close.
CLOSE_SHARE = 0.1
# Primary keys of an answer and a metric.
AnswerMetricKey = tuple[int, int]


@dataclass(frozen=True)
class Workbench:
    """Open labels of a gold set for one rubric family of a judge.

    ``items`` are the labels of examples and validation, without answers that any gold set of the project seals."""

    gold_set: GoldSet
    judge: JudgeVersion
    family: str
    items: tuple[GoldItem, ...]
    statuses: VersionStatuses

    @property
    def scope(self) -> RubricScope:
        return rubric_scope(self.judge, self.family)

    @property
    def active(self) -> RubricVersion:
        return self.statuses.active

    @cached_property
    def metrics(self) -> dict[int, MetricDefinition]:
        """Labelled metrics of the family, by key."""
        return {item.metric_id: item.metric for item in self.items}

    @cached_property
    def versions(self) -> list[RubricVersion]:
        """Versions of the family in the judge's language, oldest first."""
        rows = usable_rubrics([self.gold_set.project_id]).filter(family=self.family, language=self.scope.language)
        return list(rows.select_related("created_by").order_by("version"))

    @cached_property
    def scores_by_version(self) -> dict[int, dict[AnswerMetricKey, Score]]:
        """Newest score of each open label by rubric version, from runs of the judge. One query."""
        rows = Score.objects.filter(
            judge_version=self.judge,
            rubric_version__in=self.versions,
            metric__in=self.metrics,
            answer__in={item.answer_id for item in self.items},
        )
        scores: dict[int, dict[AnswerMetricKey, Score]] = {}
        for row in rows.order_by("id"):
            scores.setdefault(row.rubric_version_id or 0, {})[row.answer_id, row.metric_id] = row
        return scores

    def validation_items(self, metric: int) -> list[GoldItem]:
        return [item for item in self.items if item.metric_id == metric and item.split == Split.VALIDATION]


def load_workbench(gold_set: GoldSet, judge: JudgeVersion, family: str) -> Workbench:
    """Load the workbench. Four queries."""
    names = [spec.name for spec in family_named(family).produced_metrics]
    rows = gold_set.items.filter(metric__name__in=names).exclude(split=Split.HOLD_OUT)
    sealed = sealed_answers(gold_set.project_id)
    gold_items = rows.select_related("metric", "answer__question").order_by("id")
    items = tuple(item for item in gold_items if seal_key(item.answer) not in sealed)
    return Workbench(gold_set, judge, family, items, version_statuses(rubric_scope(judge, family)))


@dataclass(frozen=True, slots=True)
class ValidationMeasure:
    """Agreement of a version with the validation labels of a metric.

    ``loss`` is the weighted mean squared distance on ``n`` of ``total`` labels, ``low`` and ``high`` its 95% interval
    (t over groups). All three are ``None`` without scores. The interval is also ``None`` if the distances do not vary.
    """

    metric: MetricDefinition
    n: int
    total: int
    loss: float | None
    low: float | None
    high: float | None
    agreement: PairAgreement
    guess: ConstantGuess | None

    @property
    def statistic(self) -> str:
        """Name of the headline statistic of the metric's scale."""
        return headline_statistic(self.metric.read_scale())

    @property
    def headline(self) -> float | None:
        return self.agreement.statistics[self.statistic].value

    @property
    def max_loss(self) -> float:
        """Largest possible loss."""
        return self.metric.read_scale().width ** 2


def measure_version(workbench: Workbench, version: RubricVersion, *, resamples: int = 0) -> list[ValidationMeasure]:
    """Measure the agreement of a version on validation, by metric. Intervals need ``resamples``."""
    scores = workbench.scores_by_version.get(version.pk, {})
    return [_measure_metric(workbench, metric, scores, resamples) for metric in workbench.metrics.values()]


def _measure_metric(
    workbench: Workbench, metric: MetricDefinition, scores: Mapping[AnswerMetricKey, Score], resamples: int
) -> ValidationMeasure:
    items, scale = workbench.validation_items(metric.pk), metric.read_scale()
    judged_items = [
        item for item in items if (score := scores.get((item.answer_id, metric.pk))) and score.value is not None
    ]
    values = [scores[item.answer_id, metric.pk].value for item in judged_items]
    labels, weights = [item.label for item in judged_items], [item.weight for item in judged_items]
    groups = [item.group for item in judged_items]
    resampling = Resampling(resamples, groups=groups) if resamples and judged_items else None
    agreement = compare(values, labels, scale, weights, resampling=resampling)
    guess = best_constant_guess(labels, scale, weights) if resamples else None
    if not judged_items:
        return ValidationMeasure(metric, 0, len(items), None, None, None, agreement, guess)
    difference = mean_difference(squared_losses(values, labels, 0.0), np.array(weights), factorize(groups))
    low, high = difference.interval
    low = None if low is None else max(0.0, low)
    return ValidationMeasure(metric, len(judged_items), len(items), float(difference.mean), low, high, agreement, guess)


@dataclass(frozen=True, slots=True)
class ClosenessChange:
    """Weighted share of validation answers on which the judge is close to the experts, by the active version
    (``before``) and by another one (``after``).

    It covers the ``n`` of ``total`` labels that both versions judged. ``low`` and ``high`` bound the 95% interval of
    the change (t over groups); they are ``None`` if nothing varies. ``tolerance`` is the largest distance that is
    close: 1 on levels, 0 on yes/no, a tenth of a continuous scale."""

    metric: MetricDefinition
    tolerance: float
    n: int
    total: int
    before: float
    after: float
    low: float | None
    high: float | None

    @property
    def low_points(self) -> float | None:
        return None if self.low is None else 100 * self.low

    @property
    def high_points(self) -> float | None:
        return None if self.high is None else 100 * self.high


def closeness_changes(workbench: Workbench, version: RubricVersion) -> list[ClosenessChange]:
    """Compare a version with the active one on validation, for each metric that both judged."""
    changes = []
    for metric in workbench.metrics.values():
        scale, items = metric.read_scale(), workbench.validation_items(metric.pk)
        tolerance = CLOSE_SHARE * scale.width if not scale.levels else 1.0 if scale.width > 1 else 0.0
        judged_items, hits = list[GoldItem](), list[list[bool]]()
        for item in items:
            key = item.answer_id, item.metric_id
            scores = [workbench.scores_by_version.get(row.pk, {}).get(key) for row in (workbench.active, version)]
            values = [score.value for score in scores if score is not None and score.value is not None]
            if len(values) == len(scores):
                judged_items.append(item)
                hits.append([_is_close(value, item.label, scale, tolerance) for value in values])
        if not hits:
            continue
        was_close, is_close = np.array(hits, dtype=np.float64).T
        weights = np.array([item.weight for item in judged_items])
        groups = factorize(item.group for item in judged_items)
        low, high = mean_difference(is_close - was_close, weights, groups).interval
        before, after = (float(np.average(column, weights=weights)) for column in (was_close, is_close))
        changes.append(ClosenessChange(metric, tolerance, len(hits), len(items), before, after, low, high))
    return changes


def _is_close(score: float, label: float, scale: Scale, tolerance: float) -> bool:
    """Compare on the scale's levels, like the statistic ``within_one``."""
    if scale.levels:
        score, label = rounded_half_up(score), rounded_half_up(label)
    return abs(score - label) <= tolerance + 1e-9


@dataclass(frozen=True, slots=True)
class CallCosts:
    """Costs of a version's calls.

    ``per_thousand``: US dollars for 1,000 answers, ``None`` if the cost of a call is unknown. ``seconds_per_call``:
    ``None`` without calls."""

    per_thousand: Decimal | None
    seconds_per_call: float | None


@dataclass(frozen=True, slots=True)
class VersionRow:
    """Row of the version history."""

    version: RubricVersion
    status: VersionStatus
    measures: list[ValidationMeasure]
    costs: CallCosts | None


def version_history(workbench: Workbench) -> list[VersionRow]:
    """Return all versions with their agreement and costs, oldest first. One query."""
    costs = _call_costs(workbench)
    return [
        VersionRow(
            version, workbench.statuses.status_of(version), measure_version(workbench, version), costs.get(version.pk)
        )
        for version in workbench.versions
    ]


def _call_costs(workbench: Workbench) -> dict[int, CallCosts]:
    unit_path = "attempt__unit"
    version_path = f"{unit_path}__run_judge__rubric_version"
    rows = Reply.objects.filter(
        **{f"{unit_path}__run_judge__judge_version": workbench.judge, f"{version_path}__in": workbench.versions},
        **{f"{unit_path}__answer__in": {item.answer_id for item in workbench.items}},
    )
    was_sent = ~Q(outcome__in=UNSENT)
    totals = (
        rows.order_by()
        .values(version_path)
        .annotate(
            units=Count(unit_path, distinct=True),
            paid_cost=Sum("cost"),
            saved_cost=Sum("saved"),
            unknown_costs=Count("id", filter=was_sent & Q(cost=None) | Q(outcome=CACHED, saved=None)),
            seconds=Avg("elapsed_seconds", filter=was_sent),
        )
    )
    return {row[version_path]: _row_costs(row) for row in totals}


def _row_costs(row: Mapping[str, object]) -> CallCosts:
    full_cost = Decimal(str(row["paid_cost"] or 0)) + Decimal(str(row["saved_cost"] or 0))
    per_thousand = None if row["unknown_costs"] else full_cost * 1000 / int(str(row["units"]))
    return CallCosts(per_thousand, None if row["seconds"] is None else float(str(row["seconds"])))


@dataclass(frozen=True, slots=True)
class DisagreementFilter:
    """Filter for disagreements.

    ``metric`` is a key (0: all), ``category`` a name (``None``: all). ``direction`` is 1 where the judge gave more, -1
    where it gave less, 0 for both. ``min_distance`` is in units of the scale."""

    metric: int = 0
    category: str | None = None
    direction: int = 0
    min_distance: float = 0.0


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A label, the score of the selected version, and that of the active one."""

    item: GoldItem
    score: Score
    active_score: Score | None

    @property
    def distance(self) -> float:
        """Judge minus label."""
        return (self.score.value or 0.0) - self.item.label


def disagreements(workbench: Workbench, version: RubricVersion, filters: DisagreementFilter) -> list[Disagreement]:
    """Return the labels that differ from the version's score, largest distance first.

    Answers that the version shows as graded examples are left out."""
    scores, active_scores = (
        workbench.scores_by_version.get(judged_version.pk, {}) for judged_version in (version, workbench.active)
    )
    rows = []
    for item in workbench.items:
        key = item.answer_id, item.metric_id
        score = scores.get(key)
        if score is None or score.value is None or shows_graded_example(version.rubric, item.answer):
            continue
        disagreement = Disagreement(item, score, active_scores.get(key))
        if _matches(disagreement, filters):
            rows.append(disagreement)
    return sorted(rows, key=lambda row: (-abs(row.distance), row.item.pk))


def shows_graded_example(rubric: Rubric, answer: Answer) -> bool:
    """Return whether the rubric shows the answer and its grade as an example (:mod:`review.calibration.examples`)."""
    return f'"answer": {visible_json(answer.text)}, "experts"' in rubric.instruction


def _matches(disagreement: Disagreement, filters: DisagreementFilter) -> bool:
    return (
        abs(disagreement.distance) > 1e-9
        and abs(disagreement.distance) >= filters.min_distance
        and (not filters.metric or disagreement.item.metric_id == filters.metric)
        and (filters.category is None or disagreement.item.category == filters.category)
        and (not filters.direction or disagreement.distance * filters.direction > 0)
    )


def ratings_of_labels(items: Collection[GoldItem]) -> dict[AnswerMetricKey, list[Rating]]:
    """Return the ratings behind the labels, by answer and metric. One query."""
    keys = [pk for item in items for pk, _ in item.ratings]
    ratings: dict[AnswerMetricKey, list[Rating]] = {}
    for row in Rating.objects.filter(pk__in=keys).select_related("rubric_version").order_by("pk"):
        ratings.setdefault((row.answer_id, row.metric_id), []).append(row)
    return ratings


def try_version(workbench: Workbench, version: RubricVersion, answer_id: int) -> Mapping[str, Result]:
    """Judge one open answer by the version without storing anything.

    :raises DomainError: ``answer_not_open`` for an answer outside examples and validation; ``judge_away`` if the judge
    cannot be called."""
    answer = next((item.answer for item in workbench.items if item.answer_id == answer_id), None)
    if answer is None:
        raise DomainError("answer_not_open")
    probe = find_response_format(workbench.judge)
    answers = Answer.objects.filter(pk=answer.pk).select_related("question").prefetch_related("contexts")
    results = dict(
        judge_without_storing(workbench.judge, version.rubric, list(answers), response_format=probe.response_format)
    )
    return next(iter(results.values()))


@transaction.atomic
def start_validation_runs(workbench: Workbench, version: RubricVersion, *, by: User | None) -> list[Run]:
    """Start runs of the version and the active version over the open answers, one for each answer set.

    :raises DomainError: ``rubric_of_baseline`` for a judge that reads no rubric; ``nothing_open`` without open answers.
    """
    if workbench.judge.is_baseline or workbench.judge.is_jury:
        raise DomainError("rubric_of_baseline")
    lock_project(workbench.gold_set.project_id)
    if not workbench.items:
        raise DomainError("nothing_open")
    versions = list(dict.fromkeys([version, workbench.active]))
    return [
        start_run(workbench, answer_set, workbench.items, versions, by) for answer_set in answer_sets(workbench.items)
    ]


def pending_runs(workbench: Workbench, version: RubricVersion) -> list[Run]:
    """Return the unfinished runs in which the judge judges by the version, oldest first. One query."""
    states = [Run.State.PREFLIGHT, Run.State.RUNNING, Run.State.PAUSED]
    judges = RunJudge.objects.filter(judge_version=workbench.judge, rubric_version=version)
    return list(Run.objects.filter(pk__in=judges.values("run"), state__in=states).order_by("pk"))


def answer_sets(items: Iterable[GoldItem]) -> list[AnswerSet]:
    """Return the answer sets of the labels. One query."""
    return list(AnswerSet.objects.filter(pk__in={item.answer.answer_set_id for item in items}).order_by("pk"))


def start_run(
    workbench: Workbench,
    answer_set: AnswerSet,
    items: Iterable[GoldItem],
    versions: Sequence[RubricVersion],
    by: User | None,
    budget: Decimal | None = None,
) -> Run:
    """Start a run of these versions over the labelled answers of a set. The first version is the primary judge."""
    questions = {item.answer.question.external_id for item in items if item.answer.answer_set_id == answer_set.pk}
    config = RunConfig(
        evaluation_type=answer_set.evaluation_type,
        k=answer_set.k,
        question_ids=tuple(sorted(questions)),
        max_concurrency=8,
    )
    check_budget(budget, [workbench.judge], config)
    run = make_run(
        answer_set,
        profile_row(workbench.gold_set.project),
        config,
        judges=[(workbench.judge, version, position == 0) for position, version in enumerate(versions)],
        statuses={(workbench.judge.pk, version.pk): workbench.statuses.status_of(version) for version in versions},
        name=f"{workbench.gold_set}: {versions[0]}",
        by=by,
        budget=budget,
    )
    start(run, by)
    return run
