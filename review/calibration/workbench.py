"""What a person works on a judge prompt with: its disagreements with the labels of examples and validation, how far
each version agrees on validation, and what that cost. Nothing here reads an answer of a hold-out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from django.db import transaction
from django.db.models import Avg, Count, Q, Sum

from evaluation.accounts.access import lock_project
from evaluation.core.errors import Refused
from evaluation.core.samples import Result
from evaluation.criteria.rubrics import Slot, Standings, rubrics_for, slot_of, standings
from evaluation.judges.shipping import profile_row
from evaluation.judging.catalogue import family_named
from evaluation.judging.drafting import plainly
from evaluation.judging.rubric import Rubric
from evaluation.models import (
    Answer,
    AnswerSet,
    JudgeVersion,
    MetricDefinition,
    Reply,
    RubricVersion,
    Run,
    Score,
    Standing,
    User,
)
from evaluation.runs.budgets import check_budget
from evaluation.runs.progress import CACHED, UNSENT
from evaluation.scoring.aside import judged_aside, reach
from evaluation.worker.lifecycle import RunConfig, make_run, seal_of, sealed_of, start
from review.models import GoldItem, GoldSet, Rating
from review.statistics.acceptance import evidence_of, losses
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.pair import ConstantGuess, PairAgreement, best_constant_guess, compare
from review.statistics.agreement.statistic import numbered
from review.statistics.gold_split import Split

Key = tuple[int, int]  # answer, metric


@dataclass(frozen=True)
class Bench:
    """A gold set's open labels for one family of a judge's rubrics. ``items`` are those of examples and validation;
    an answer that is sealed, if by another gold set, is not among them."""

    gold_set: GoldSet
    judge: JudgeVersion
    family: str
    items: tuple[GoldItem, ...]
    stand: Standings

    @property
    def slot(self) -> Slot:
        """What a version would be in force for."""
        return slot_of(self.judge, self.family)

    @property
    def active(self) -> RubricVersion:
        """The version in force."""
        return self.stand.active

    @cached_property
    def metrics(self) -> dict[int, MetricDefinition]:
        """The labelled metrics of the family, by key."""
        return {one.metric_id: one.metric for one in self.items}

    @cached_property
    def versions(self) -> list[RubricVersion]:
        """All versions of the family in the judge's language, the oldest first."""
        rows = rubrics_for([self.gold_set.project_id]).filter(family=self.family, language=self.slot.language)
        return list(rows.select_related("created_by").order_by("version"))

    @cached_property
    def verdicts(self) -> dict[int, dict[Key, Score]]:
        """Version -> the newest score of each open label in runs of the judge. One query."""
        rows = Score.objects.filter(
            judge_version=self.judge,
            rubric_version__in=self.versions,
            metric__in=self.metrics,
            answer__in={one.answer_id for one in self.items},
        )
        found: dict[int, dict[Key, Score]] = {}
        for row in rows.order_by("id"):
            found.setdefault(row.rubric_version_id or 0, {})[row.answer_id, row.metric_id] = row
        return found

    def validation(self, metric: int) -> list[GoldItem]:
        """The labels of a metric on which versions are compared."""
        return [one for one in self.items if one.metric_id == metric and one.split == Split.VALIDATION]


def bench_of(gold_set: GoldSet, judge: JudgeVersion, family: str) -> Bench:
    """The bench. Four queries."""
    names = [spec.name for spec in family_named(family).given]
    rows = gold_set.items.filter(metric__name__in=names).exclude(split=Split.HOLD_OUT)
    sealed = sealed_of(gold_set.project_id)
    found = rows.select_related("metric", "answer__question").order_by("id")
    items = tuple(one for one in found if seal_of(one.answer) not in sealed)
    return Bench(gold_set, judge, family, items, standings(slot_of(judge, family)))


@dataclass(frozen=True, slots=True)
class Measured:
    """How a version agrees with the validation labels of a metric. ``loss`` is the weighted mean squared distance, with
    the ends of its 95% interval (t over groups); ``None`` without verdicts, the ends also where nothing varies."""

    metric: MetricDefinition
    n: int
    of: int
    loss: float | None
    low: float | None
    high: float | None
    agreement: PairAgreement
    guess: ConstantGuess | None

    @property
    def statistic(self) -> str:
        """The one statistic that a line over versions shows."""
        return headline_statistic(self.metric.read_scale())

    @property
    def headline(self) -> float | None:
        """Its value."""
        return self.agreement.statistics[self.statistic].value

    @property
    def width(self) -> float:
        """The largest loss there is."""
        return self.metric.read_scale().width ** 2


def measured(bench: Bench, version: RubricVersion, *, resamples: int = 0) -> list[Measured]:
    """The agreement of a version on validation, by metric; with ``resamples`` all statistics have intervals."""
    said = bench.verdicts.get(version.pk, {})
    return [_measured(bench, metric, said, resamples) for metric in bench.metrics.values()]


def _measured(bench: Bench, metric: MetricDefinition, said: Mapping[Key, Score], resamples: int) -> Measured:
    items, scale = bench.validation(metric.pk), metric.read_scale()
    kept = [one for one in items if (row := said.get((one.answer_id, metric.pk))) and row.value is not None]
    values = [said[one.answer_id, metric.pk].value for one in kept]
    labels, weights = [one.label for one in kept], [one.weight for one in kept]
    groups = [one.group for one in kept]
    resampling = Resampling(resamples, groups=groups) if resamples and kept else None
    agreement = compare(values, labels, scale, weights, resampling=resampling)
    guess = best_constant_guess(labels, scale, weights) if resamples else None
    if not kept:
        return Measured(metric, 0, len(items), None, None, None, agreement, guess)
    found = evidence_of(losses(values, labels, 0.0), np.array(weights), numbered(groups))
    low, high = found.interval
    low = None if low is None else max(0.0, low)
    return Measured(metric, len(kept), len(items), float(found.mean), low, high, agreement, guess)


@dataclass(frozen=True, slots=True)
class Spent:
    """What the calls of a version took: US dollars for 1,000 answers (``None`` where that of a call is unknown) and
    seconds a call (``None`` where none was made)."""

    thousand: Decimal | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version in the history."""

    version: RubricVersion
    standing: Standing
    measures: list[Measured]
    spent: Spent | None


def history(bench: Bench) -> list[VersionRow]:
    """Every version with what validation and its calls tell, the oldest first. One query."""
    spent = _spent(bench)
    return [VersionRow(one, bench.stand.of(one), measured(bench, one), spent.get(one.pk)) for one in bench.versions]


def _spent(bench: Bench) -> dict[int, Spent]:
    unit = "attempt__unit"
    rubric = f"{unit}__run_judge__rubric_version"
    rows = Reply.objects.filter(
        **{f"{unit}__run_judge__judge_version": bench.judge, f"{rubric}__in": bench.versions},
        **{f"{unit}__answer__in": {one.answer_id for one in bench.items}},
    )
    made = ~Q(outcome__in=UNSENT)
    told = (
        rows.order_by()
        .values(rubric)
        .annotate(
            units=Count(unit, distinct=True),
            known=Sum("cost"),
            spared=Sum("saved"),
            unknown=Count("id", filter=made & Q(cost=None) | Q(outcome=CACHED, saved=None)),
            seconds=Avg("elapsed_seconds", filter=made),
        )
    )
    return {row[rubric]: _spent_of(row) for row in told}


def _spent_of(row: Mapping[str, object]) -> Spent:
    paid = Decimal(str(row["known"] or 0)) + Decimal(str(row["spared"] or 0))
    thousand = None if row["unknown"] else paid * 1000 / int(str(row["units"]))
    return Spent(thousand, None if row["seconds"] is None else float(str(row["seconds"])))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which disagreements: of a metric by its key, a category (``None``: of all), where the judge gave more (1), less
    (-1) or either (0), at least so far apart in units of the scale."""

    metric: int = 0
    category: str | None = None
    toward: int = 0
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A label and what the judge gave: by the version in hand, else by the one in force (``by``). ``other`` is what the
    version in force gave."""

    item: GoldItem
    given: Score
    by: RubricVersion
    other: Score | None

    @property
    def apart(self) -> float:
        """Judge minus label."""
        return (self.given.value or 0.0) - self.item.label


def disagreements(bench: Bench, version: RubricVersion, wanted: Wanted) -> list[Disagreement]:
    """Where the judge and the label differ, the largest distance first. What a version says of answers whose grades it
    shows is left out: it knows them by heart."""
    ours, active = (bench.verdicts.get(one.pk, {}) for one in (version, bench.active))
    found = []
    for item in bench.items:
        key = item.answer_id, item.metric_id
        by = version if key in ours else bench.active
        given = ours.get(key) or active.get(key)
        if given is None or given.value is None or shows_grade(by.rubric, item.answer):
            continue
        one = Disagreement(item, given, by, active.get(key))
        if _is_wanted(one, wanted):
            found.append(one)
    return sorted(found, key=lambda one: (-abs(one.apart), one.item.pk))


def shows_grade(rubric: Rubric, answer: Answer) -> bool:
    """Whether the version holds the answer as a graded example (:mod:`review.calibration.examples`)."""
    return f'"answer": {plainly(answer.text)}, "experts"' in rubric.instruction


def _is_wanted(one: Disagreement, wanted: Wanted) -> bool:
    return (
        abs(one.apart) > 1e-9
        and abs(one.apart) >= wanted.least
        and (not wanted.metric or one.item.metric_id == wanted.metric)
        and (wanted.category is None or one.item.category == wanted.category)
        and (not wanted.toward or one.apart * wanted.toward > 0)
    )


def comments_on(items: Collection[GoldItem]) -> dict[Key, list[Rating]]:
    """The ratings behind the labels, which may say why. One query."""
    keys = [pk for one in items for pk, _ in one.ratings]
    found: dict[Key, list[Rating]] = {}
    for row in Rating.objects.filter(pk__in=keys).order_by("pk"):
        found.setdefault((row.answer_id, row.metric_id), []).append(row)
    return found


def try_on(bench: Bench, version: RubricVersion, answer_id: int) -> Mapping[str, Result]:
    """What the judge makes of one open answer by the version, of which nothing is kept.

    :raises Refused: ``answer_not_open`` for one that is not among examples and validation; ``judge_away``.
    """
    answer = next((one.answer for one in bench.items if one.answer_id == answer_id), None)
    if answer is None:
        raise Refused("answer_not_open")
    found = reach(bench.judge)
    with_passages = Answer.objects.filter(pk=answer.pk).select_related("question").prefetch_related("contexts")
    told = dict(judged_aside(bench.judge, version.rubric, list(with_passages), rung=found.rung))
    return next(iter(told.values()))


@transaction.atomic
def validate(bench: Bench, version: RubricVersion, *, by: User | None) -> list[Run]:
    """Start a run of the version and of the one in force over the open answers, one for each answer set.

    :raises Refused: ``rubric_of_baseline`` for a judge that reads no rubric; ``nothing_open``.
    """
    if bench.judge.is_baseline or bench.judge.is_jury:
        raise Refused("rubric_of_baseline")
    lock_project(bench.gold_set.project_id)
    if not bench.items:
        raise Refused("nothing_open")
    versions = list(dict.fromkeys([version, bench.active]))
    return [run_over(bench, answers, bench.items, versions, by) for answers in answer_sets(bench.items)]


def answer_sets(items: Iterable[GoldItem]) -> list[AnswerSet]:
    """Those that the labels are about. One query."""
    return list(AnswerSet.objects.filter(pk__in={one.answer.answer_set_id for one in items}).order_by("pk"))


def run_over(
    bench: Bench,
    answer_set: AnswerSet,
    items: Iterable[GoldItem],
    versions: Sequence[RubricVersion],
    by: User | None,
    budget: Decimal | None = None,
) -> Run:
    """Start a run of these versions, the first of which counts, over the set's answers among the labels."""
    questions = {one.answer.question.external_id for one in items if one.answer.answer_set_id == answer_set.pk}
    config = RunConfig(
        evaluation_type=answer_set.evaluation_type,
        k=answer_set.k,
        question_ids=tuple(sorted(questions)),
        max_concurrency=8,
    )
    check_budget(budget, [bench.judge], config)
    run = make_run(
        answer_set,
        profile_row(bench.gold_set.project),
        config,
        judges=[(bench.judge, version, place == 0) for place, version in enumerate(versions)],
        standings={(bench.judge.pk, version.pk): bench.stand.of(version) for version in versions},
        name=f"{bench.gold_set}: {versions[0]}",
        by=by,
        budget=budget,
    )
    start(run, by)
    return run
