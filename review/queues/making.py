"""Making a review queue: draws over one or several runs, one shuffled list of items, and the people who rate them.

Reviewers read a queue's name before rating, so it must not tell what the rating should not know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from evaluation.accounts import audit
from evaluation.core.errors import Refused, UnknownName
from evaluation.criteria.services import rubric_of
from evaluation.judges.shipping import shipped_rubric_row
from evaluation.judging.rubric import is_criterion
from evaluation.models import Answer, MetricDefinition, RoleGrant, RubricVersion, Run, User
from review.evidence.answers import kept_apart, new_seed, ring_offset, shuffle_keys
from review.models import QueueMember, QueueMetric, ReviewItem, ReviewQueue
from review.models.queue_spec import QueueSpec
from review.queues.criteria import criteria_of
from review.queues.draws import (
    answers_to_review,
    frame_of,
    make_draw,
    make_draws_in_turn,
)
from review.queues.sharing import Sharing, needs_of, repeat_window, reserve_items
from review.statistics.sampling.member import DrawParams, Strategy

_STRATEGIES = tuple(strategy.value.replace("_", " ") for strategy in Strategy if strategy is not Strategy.ALL)
_SHORTEST = 3  # shorter names occur in ordinary words


def _neutral_name(name: str, runs: Sequence[Run], *, hide_system: bool) -> str:
    """The queue's name: the given one, else question set and number in the project.

    :raises Refused: ``queue_name_tells`` where it holds the name of a strategy, judge or model, or, with systems
        hidden, of a system or run.
    """
    if not name.strip():
        number = ReviewQueue.objects.filter(project=runs[0].project_id).count() + 1
        return f"{runs[0].answer_set.question_set.name} · {number}"[:200]
    if told := {word for word in _telling(runs, hide_system=hide_system) if _stands_in(word, name)}:
        raise Refused("queue_name_tells", words=sorted(told))
    return name.strip()[:200]


def _telling(runs: Sequence[Run], *, hide_system: bool) -> Iterable[str]:
    yield from _STRATEGIES
    for run in runs:
        for judge in run.judges.select_related("judge_version"):
            yield judge.judge_version.name
            yield judge.judge_version.model
        if hide_system:
            yield run.name
            yield run.answer_set.system_version.system.name


def _stands_in(word: str, name: str) -> bool:
    """Whether the word begins a word of the name; endings may follow it, as Korean particles do."""
    word = word.strip().casefold()
    text = name.casefold().replace("_", " ")
    return len(word) >= _SHORTEST and re.search(rf"(?<!\w){re.escape(word.replace('_', ' '))}", text) is not None


ParamsByRun = DrawParams | Mapping[int, DrawParams] | None  # the same for all runs, or each run's own by primary key


@transaction.atomic
def make_queue(
    runs: Run | Sequence[Run],
    spec: QueueSpec,
    *,
    metrics: Sequence[str] = (),
    reviewers: Sequence[User],
    sharing: Sharing | None = None,
    params: ParamsByRun = None,
    by: User | None = None,
) -> ReviewQueue:
    """A queue on a draw from each run, in one random order. ``spec.size`` answers in all are shared among the runs by
    their frames; one that two runs share is one item. Without ``metrics`` the spec's coverage says which; ``sharing``:
    the people of tags or answers, where named.

    :raises Refused: ``no_run``, ``several_projects``, ``no_metrics``, ``no_reviewers``, ``not_in_project``,
        ``too_few_reviewers``, ``size_below_one``, ``nothing_picked``, ``queue_name_tells``; as draws.
    :raises UnknownName: for a metric that nothing defines.
    """
    chosen, people, sharing = _chosen(runs), list(dict.fromkeys(reviewers)), sharing or Sharing()
    check_people(people, chosen[0].project_id)
    if spec.reviews_needed > len(people):
        raise Refused("too_few_reviewers", needed=spec.reviews_needed, people=len(people))
    sharing.check(spec.distribution, people)
    name = _neutral_name(spec.name, chosen, hide_system=spec.hide_system)
    made_up = {"name": name, "seed": new_seed() if spec.seed is None else spec.seed}
    queue = ReviewQueue.objects.create(project_id=chosen[0].project_id, created_by=by, **(spec.columns | made_up))
    asked = criteria_of(chosen, spec, metrics)
    _add_metrics(queue, chosen[0], asked)
    add_members(queue, people)
    items = _add_items(queue, _drawn(queue, chosen, spec, params, by, in_turn=spec.in_turn(len(asked))), sharing)
    ratings = sum(item.reviews_needed for item in items)
    queue.repeat_gap, queue.repeat_until = repeat_window(queue.repeat_share, ratings, len(people))
    if queue.repeat_gap:
        queue.save(update_fields=["repeat_gap", "repeat_until"])
    reserve_items(queue, items, people, sharing)
    facts = {"hide_system": spec.hide_system, "mode": str(spec.mode)}
    audit.record(by, "queue_made", queue, runs=[run.pk for run in chosen], **facts)
    return queue


def params_of(run: Run, params: ParamsByRun) -> DrawParams | None:
    """What the draw from this run is told."""
    return params if params is None or isinstance(params, DrawParams) else params.get(run.pk)


def add_members(queue: ReviewQueue, people: Iterable[User]) -> None:
    """Let people rate the queue's items; each starts somewhere else on the ring."""
    QueueMember.objects.bulk_create(
        [QueueMember(queue=queue, reviewer=one, offset=ring_offset(queue.seed, one.pk)) for one in people],
        ignore_conflicts=True,
    )


def close(queue: ReviewQueue, *, by: User | None) -> None:
    """Nothing more is served or taken from the queue; what was rated stays."""
    _set_state(queue, ReviewQueue.State.CLOSED, "queue_closed", by)


def reopen(queue: ReviewQueue, *, by: User | None) -> None:
    """Serve a closed queue again."""
    _set_state(queue, ReviewQueue.State.OPEN, "queue_reopened", by)


def _set_state(queue: ReviewQueue, state: ReviewQueue.State, verb: str, by: User | None) -> None:
    with transaction.atomic():
        if ReviewQueue.objects.filter(pk=queue.pk).exclude(state=state).update(state=state):
            queue.state = state
            audit.record(by, verb, queue)


def _add_metrics(queue: ReviewQueue, run: Run, metrics: Sequence[MetricDefinition]) -> None:
    judged = run.judges.filter(primary=True).select_related("rubric_version")
    pinned = {judge.rubric_version.family: judge.rubric_version for judge in judged}
    QueueMetric.objects.bulk_create(
        QueueMetric(
            queue=queue,
            metric=metric,
            rubric_version=pinned.get(metric.rubric_family) or _rubric(metric),
            position=position,
        )
        for position, metric in enumerate(metrics)
    )


def _rubric(metric: MetricDefinition) -> RubricVersion | None:
    """The criterion's or the shipped rubric in the site's language; none for metrics without a rubric."""
    family, language = metric.rubric_family, settings.LANGUAGE_CODE
    if is_criterion(family):
        return rubric_of(metric, language)
    try:
        return shipped_rubric_row(family, language) if family else None
    except UnknownName:
        return None


class _Wanted(NamedTuple):
    """An answer to review: the run whose judge will be shown, and the metrics it is asked; none: all."""

    run: int
    asks: list[int]


def _drawn(
    queue: ReviewQueue, runs: Sequence[Run], spec: QueueSpec, params: ParamsByRun, by: User | None, *, in_turn: bool
) -> dict[int, _Wanted]:
    """The answers to review."""
    wanted: dict[int, _Wanted] = {}
    strategy, size = spec.strategy, spec.size
    if not takes_part(size, strategy):
        raise Refused("size_below_one", size=size)
    for run, share in zip(runs, shares(runs, size), strict=True):
        if not takes_part(share, strategy):
            continue
        # The queue's own seed for the first run, others derived from it, so that draws are independent.
        seed = queue.seed if not queue.draws.exists() else ring_offset(queue.seed, -run.pk)
        told = params_of(run, params)
        if in_turn:
            asks = make_draws_in_turn(run, spec, share, seed, queue, told, by)
        else:
            made = make_draw(run, strategy, share, seed, by, queue, params=told)
            asks = {answer: [] for answer in answers_to_review(made)}
        for answer, metrics in asks.items():
            first = wanted.setdefault(answer, _Wanted(run.pk, []))
            first.asks.extend(metric for metric in metrics if metric not in first.asks)
    if not wanted:
        raise Refused("nothing_picked" if strategy == Strategy.HAND_PICKED else "empty_frame")
    return wanted


def takes_part(share: int, strategy: Strategy | str) -> bool:
    """Whether a run gives answers: with a share of the size below one, only where the size does not matter."""
    return share >= 1 or strategy in {Strategy.ALL, Strategy.HAND_PICKED}


def _add_items(queue: ReviewQueue, wanted: Mapping[int, _Wanted], sharing: Sharing) -> list[ReviewItem]:
    """The items in the order in which reviewers walk them."""
    shuffled = _shuffled(wanted, queue.seed)
    needs = needs_of(len(wanted), queue.reviews_needed, queue.overlap_share, queue.seed)
    items = [
        ReviewItem(
            queue=queue,
            answer_id=answer,
            run_id=wanted[answer].run,
            asks=wanted[answer].asks,
            shuffle_key=key,
            reviews_needed=len(sharing.named.get(answer, ())) or need,
            reserved=queue.distribution != ReviewQueue.Distribution.POOL,
        )
        for (answer, key), need in zip(shuffled, needs, strict=True)
    ]
    ReviewItem.objects.bulk_create(items, batch_size=2_000)
    return sorted(items, key=lambda item: item.shuffle_key)


def _shuffled(wanted: Mapping[int, _Wanted], seed: int) -> list[tuple[int, int]]:
    """The answers in a random order, answers to one question apart, each with its key."""
    sets = Run.objects.filter(pk__in={one.run for one in wanted.values()}).values("answer_set")
    asked = dict(Answer.objects.filter(answer_set__in=sets).values_list("pk", "question__external_id"))
    keys, answers = shuffle_keys(seed, len(wanted)), sorted(wanted)
    shuffled = [answer for _, answer in sorted(zip(keys, answers, strict=True))]
    order = kept_apart([asked[answer] for answer in shuffled])
    return [(shuffled[place], key) for place, key in zip(order, sorted(keys), strict=True)]


def shares(runs: Sequence[Run], size: int) -> list[int]:
    """``size`` shared among the runs in proportion to their frames, largest remainders first."""
    if len(runs) == 1:
        return [size]
    frames = [len(frame_of(run, []).members) for run in runs]
    whole = sum(frames) or 1
    counts = [size * frame // whole for frame in frames]
    by_remainder = sorted(range(len(runs)), key=lambda i: (-(size * frames[i] % whole), i))
    for i in by_remainder[: max(0, size - sum(counts))]:
        counts[i] += 1
    return counts


def _chosen(runs: Run | Sequence[Run]) -> list[Run]:
    chosen = [runs] if isinstance(runs, Run) else list(dict.fromkeys(runs))
    if not chosen:
        raise Refused("no_run")
    if len({run.project_id for run in chosen}) > 1:
        raise Refused("several_projects")
    return chosen


def check_people(people: Sequence[User], project_id: int) -> None:
    """Refuse people who cannot review in the project.

    :raises Refused: ``no_reviewers``, or ``not_in_project``.
    """
    if not people:
        raise Refused("no_reviewers")
    granted = RoleGrant.objects.filter(project=project_id, user__in=people).values_list("user_id", flat=True)
    known = set(granted) | {one.pk for one in people if one.is_superuser}
    if strangers := [one.get_username() for one in people if one.pk not in known]:
        raise Refused("not_in_project", people=strangers)
