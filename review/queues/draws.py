"""Draws: the frame of a run's answers, the sample, and stratum and probability of every frame member on record."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.core.samples import Status
from evaluation.core.scales import ScaleKind
from evaluation.models import Answer, MetricDefinition, Run, Score, User
from evaluation.scoring.writing import counting
from evaluation.worker.lifecycle import RunConfig
from review.evidence.answers import new_seed
from review.evidence.changes import touch
from review.evidence.scorers import MachineValue, machine_values
from review.models import Draw, FrameMember, Rating, ReviewItem, ReviewQueue
from review.models.queue_spec import FEW, QueueSpec
from review.statistics.sampling.draw import CERTAIN, draw
from review.statistics.sampling.member import Drawn, DrawParams, Member, Strategy
from review.statistics.sampling.turns import in_turn, least_of_stratum


@dataclass(frozen=True, slots=True)
class Stratum:
    """A stratum of a draw as a lead sees it."""

    name: str
    size: int
    sampled: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The answers a draw can take, and the judge's disagreement with itself on each."""

    members: tuple[Member, ...]
    spread: Mapping[int, float]

    @property
    def keys(self) -> set[int]:
        """The answers, by primary key."""
        return {member.key for member in self.members}


def make_draw(
    run: Run,
    strategy: Strategy | str,
    size: int,
    seed: int | None = None,
    by: User | None = None,
    queue: ReviewQueue | None = None,
    metric: MetricDefinition | None = None,
    params: DrawParams | None = None,
) -> Draw:
    """Draw a sample of a run's answers for review.

    The frame are the run's answers, those the judge failed on included; answers the system itself failed to give stay
    out. Strata follow the judge's value of ``metric``, else of the queue's metrics, else of all metrics the run has
    a judge for. Where ratings of an earlier draw over the same answers exist, the draw counts as planned after
    looking: the earlier answers are certain and the rest is drawn on its own. What is picked by hand corrects nothing
    and leaves earlier draws as they are.

    :raises Refused: what :func:`review.statistics.sampling.draw.draw` refuses, or ``size_below_one``.
    """
    strategy = Strategy(strategy)
    if size < 1 and strategy not in {Strategy.ALL, Strategy.HAND_PICKED}:
        raise Refused("size_below_one", size=size)
    asked = queue.metrics.values_list("metric", flat=True) if queue else ()
    metrics = [metric] if metric else steering_metrics(run, asked)
    frame = frame_of(run, metrics)
    looked = set() if strategy == Strategy.HAND_PICKED else earlier_answers(run, metrics) & frame.keys
    told = params or DrawParams()
    told = replace(told, certain=told.certain | looked, spread=told.spread or frame.spread)
    seed = new_seed() if seed is None else seed
    drawn = draw(frame.members, strategy, size, seed, told)
    facts = {"queue": queue, "run": run, "strategy": strategy.value, "seed": seed, "created_by": by}
    return _keep(drawn, params=_stored(told, size, metrics), planned_after_looking=bool(looked), **facts)


def make_draws_in_turn(
    run: Run, spec: QueueSpec, size: int, seed: int, queue: ReviewQueue, params: DrawParams | None, by: User | None
) -> dict[int, list[int]]:
    """One draw of answers of which each is asked a few of the queue's metrics, stored as a draw of its own for each
    metric: answer -> the metrics (by primary key) it is asked now.

    Where ratings of an earlier draw for a metric exist, its draw counts as planned after looking; what such a draw left
    unrated is asked again.

    :raises Refused: what :func:`review.statistics.sampling.draw.draw` refuses.
    """
    metrics = [row.metric for row in queue.metrics.select_related("metric").order_by("position", "pk")]
    turns = draw_in_turn(run, metrics, spec.strategy, size, seed, params)
    asks: dict[int, list[int]] = {}
    for metric in metrics:
        if metric.pk not in turns.samples:
            continue  # it applies to no answer of the run
        drawn, looked = turns.samples[metric.pk], set[int]()
        if spec.strategy != Strategy.HAND_PICKED:
            looked = earlier_answers(run, [metric]) & {one.key for one in drawn}
        again = left_over(looked, [metric.pk]) if looked else set()
        wanted = {key for key, asked in turns.asked.items() if metric.pk in asked} - looked | again
        for answer in wanted:
            asks.setdefault(answer, []).append(metric.pk)
        _keep(
            [Drawn(one.key, CERTAIN, 1.0, True) if one.key in looked else one for one in drawn],
            queue=queue,
            run=run,
            metric=metric,
            strategy=spec.strategy.value,
            params=_stored(turns.told, size, [metric]),
            seed=seed,
            planned_after_looking=bool(looked),
            created_by=by,
        )
    return asks


@dataclass(frozen=True, slots=True)
class Turns:
    """What a draw with criteria in turn gives: what each sampled answer is asked, each metric's sample over the frame,
    how many answers of the frame a metric applies to (by primary key), and what the draw was told."""

    drawn: Sequence[Drawn]
    asked: Mapping[int, frozenset[int]]
    samples: Mapping[int, Sequence[Drawn]]
    applies_to: Mapping[int, int]
    told: DrawParams


def draw_in_turn(
    run: Run,
    metrics: Sequence[MetricDefinition],
    strategy: Strategy,
    size: int,
    seed: int,
    params: DrawParams | None = None,
) -> Turns:
    """Draw answers and share the metrics among them, keeping nothing. What earlier draws took is drawn anew here: it is
    certain for the metrics it was rated by, not for the others."""
    keys = tuple(metric.pk for metric in metrics)
    frame = frame_of(run, steering_metrics(run, keys))
    never = counting(run).filter(metric_id__in=keys, status=Status.NOT_APPLICABLE)
    gone = set(never.values_list("answer_id", "metric_id"))
    fitting = {answer: tuple(pk for pk in keys if (answer, pk) not in gone) or keys for answer in frame.keys}
    told = params or DrawParams()
    least = max(told.per_stratum, least_of_stratum(len(keys), FEW))
    told = replace(told, certain=frozenset(), spread=told.spread or frame.spread, per_stratum=least)
    drawn = draw(frame.members, strategy, size, seed, told)
    asked, samples = in_turn(drawn, fitting, FEW, np.random.default_rng([seed, FEW]))
    applies_to = Counter(pk for own in fitting.values() for pk in own)
    return Turns(drawn, asked, samples, applies_to, told)


def _keep(drawn: Sequence[Drawn], **facts: Any) -> Draw:
    """Store a draw with all it could have taken."""
    with transaction.atomic():
        made = Draw.objects.create(frame_size=len(drawn), **facts)
        rows = (
            FrameMember(
                draw=made,
                answer_id=one.key,
                stratum=_short(one.stratum),
                probability=one.probability,
                sampled=one.sampled,
            )
            for one in drawn
        )
        FrameMember.objects.bulk_create(rows, batch_size=2_000)
        touch([one.key for one in drawn[:1]])
    return made


def frame_of(run: Run, metrics: Sequence[MetricDefinition]) -> Frame:
    """The run's answers with the category and the judge's value that strata are made of."""
    said = machine_values(run, [metric.pk for metric in metrics])
    members, spread = [], {}
    for pk, question_id, category, group in _answers(run):
        values = [(metric, said[pk, metric.pk]) for metric in metrics if (pk, metric.pk) in said]
        members.append(
            Member(
                key=pk,
                category=category,
                judge_score=_steering_value(values),
                failed=any(value.status == Status.FAILED for _, value in values),
                group=group or question_id,
            )
        )
        if values:
            spread[pk] = statistics.fmean(value.spread for _, value in values)
    return Frame(tuple(members), spread)


def steering_metrics(run: Run, asked: Iterable[int] = ()) -> list[MetricDefinition]:
    """The metrics whose judge values make the strata: those ``asked`` for, by primary key, that a judge scored, else
    all that one did."""
    judged = MetricDefinition.objects.filter(
        Exists(Score.objects.filter(run=run, metric=OuterRef("pk"), judge_version__isnull=False))
        | Q(pk__in=run.imported_judges.values("metric"))
    ).order_by("name", "version")
    found, wanted = list(judged), set(asked)
    return [metric for metric in found if metric.pk in wanted] or found


def earlier_answers(run: Run, metrics: Sequence[MetricDefinition]) -> set[int]:
    """The answers that earlier draws for these metrics sampled, if any of their ratings can have been seen."""
    earlier = Draw.objects.filter(
        Q(metric=None, queue__metrics__metric__in=metrics) | Q(metric__in=metrics),
        run__answer_set_id=run.answer_set_id,
        queue__mode=ReviewQueue.Mode.BLIND,
    )
    sampled = FrameMember.objects.filter(draw__in=earlier.values("pk"), sampled=True, probability__isnull=False)
    rated = Rating.objects.filter(
        answer__in=sampled.values("answer"), metric__in=metrics, phase="initial", source="review"
    )
    return set(sampled.values_list("answer_id", flat=True)) if rated.exists() else set()


def answers_to_review(made: Draw) -> list[int]:
    """The sampled answers that need an item: of certain ones those that are left over."""
    sampled = made.frame.filter(sampled=True).order_by("answer_id").values_list("answer_id", "stratum")
    certain = {answer for answer, stratum in sampled if stratum == CERTAIN} if made.planned_after_looking else set()
    asked = made.queue.metrics.values_list("metric", flat=True) if made.queue else ()
    done = certain - left_over(certain, asked)
    return [answer for answer, _ in sampled if answer not in done]


def left_over(certain: Collection[int], asked: Iterable[int]) -> set[int]:
    """Of answers that earlier draws took, those that a queue for the metrics ``asked`` for (by primary key; none: any)
    has to take up: without a rating of each of them, in no open queue that asks for them all. Two queries."""
    wanted = set(asked)
    rated = Rating.objects.filter(answer__in=certain, phase="initial", source="review")
    waiting = ReviewItem.objects.filter(answer__in=certain, queue__state=ReviewQueue.State.OPEN)
    waits = waiting.values_list("answer", "queue__metrics__metric", "asks")
    done: set[int] = set()
    for pairs in (
        set(rated.values_list("answer", "metric")),
        {(answer, metric) for answer, metric, asks in waits if not asks or metric in asks},
    ):
        found: dict[int, set[int]] = {}
        for answer, metric in pairs:
            found.setdefault(answer, set()).add(metric)
        done |= {answer for answer, metrics in found.items() if wanted <= metrics}
    return set(certain) - done


def strata_of(made: Draw) -> list[Stratum]:
    """Strata with their sizes, by name."""
    sizes = made.frame.values_list("stratum").annotate(Count("pk")).order_by("stratum")
    taken = dict(made.frame.filter(sampled=True).values_list("stratum").annotate(Count("pk")))
    return [Stratum(name, size, taken.get(name, 0)) for name, size in sizes]


def _answers(run: Run) -> Iterable[tuple[int, str, str, str]]:
    """(answer id, question id, category, group) of the newest answer per question and sample, given ones only."""
    answers = Answer.objects.filter(answer_set_id=run.answer_set_id)
    if wanted := RunConfig.model_validate(run.config).question_ids:
        answers = answers.filter(question__external_id__in=wanted)
    rows = answers.order_by("round").values_list(
        *("question_id", "sample", "status", "pk"),
        *("question__external_id", "question__category", "question__group"),
    )
    newest = {(question, sample): rest for question, sample, *rest in rows}
    return [(pk, name, category, group) for status, pk, name, category, group in newest.values() if status == "ok"]


def _steering_value(values: Collection[tuple[MetricDefinition, MachineValue]]) -> float | None:
    """The mean judge value; metrics on different scales are put on 0 to 1, more being better."""
    numbers = [(metric, value.value) for metric, value in values if value.value is not None]
    if not numbers:
        return None
    if len({(metric.scale, metric.direction) for metric, _ in numbers}) == 1:
        return statistics.fmean(value for _, value in numbers)
    return statistics.fmean(share_of_scale(metric, value) for metric, value in numbers)


def share_of_scale(metric: MetricDefinition, value: float) -> float:
    """A value as a share of the metric's scale, more being better."""
    scale = metric.read_scale()
    width = scale.width if scale.kind is not ScaleKind.CLASS else 1.0
    share = (value - scale.low) / width
    return 1.0 - share if metric.direction == "lower" else share


def _stored(params: DrawParams, size: int, metrics: Sequence[MetricDefinition]) -> dict[str, object]:
    """What repeats the draw beside its seed; certain answers and spreads follow from the frame."""
    return {
        "size": size,
        "metrics": [f"{metric.name} v{metric.version}" for metric in metrics],
        "merge_below": params.merge_below,
        "per_stratum": params.per_stratum,
        "fail_below": params.fail_below,
        "share": params.share,
        "pilot_sd": dict(params.pilot_sd),
    }


def _short(stratum: str) -> str:
    """The name as the column holds it; a cut one keeps a hash, so that two strata never become one."""
    limit = 300
    return stratum if len(stratum) <= limit else f"{stratum[:260]}… {content_hash(stratum)[:32]}"
