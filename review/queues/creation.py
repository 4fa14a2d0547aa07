"""Creation of a review queue: draws from one or several runs, items in one random order, and members.

Reviewers read the name of a queue before rating, so it must not reveal systems, judges or strategies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings
from django.db import transaction

from evaluation.accounts import audit
from evaluation.core.errors import DomainError, UnknownName
from evaluation.criteria.services import rubric_for_metric
from evaluation.judges.shipped import shipped_rubric_row
from evaluation.judging.rubric import is_criterion
from evaluation.models import Answer, MetricDefinition, RoleGrant, RubricVersion, Run, User
from review.evidence.answers import new_seed, ring_offset, shuffle_keys, spaced_order
from review.models import QueueMember, QueueMetric, ReviewItem, ReviewQueue
from review.models.queue_spec import QueueSpec
from review.queues.criteria import select_criteria
from review.queues.distribution import (
    NamedReviewers,
    repeat_window,
    reserve_for_others,
    reserve_items,
    reviews_per_item,
)
from review.queues.sampling import ParamsByRun, PlannedItem, QueuePlan, plan_queue
from review.statistics.sampling.member import Strategy

_STRATEGIES = tuple(strategy.value.replace("_", " ") for strategy in Strategy if strategy is not Strategy.ALL)
# Shorter names occur in ordinary words.
_MIN_WORD_LENGTH = 3


def neutral_name(name: str, runs: Sequence[Run], *, hide_system: bool) -> str:
    """Return the given queue name, or the question set and a number.

    :raises DomainError: ``queue_name_tells`` if it contains a strategy, judge or model, or, with hidden systems, a
    system
    or run."""
    if not name.strip():
        number = ReviewQueue.objects.filter(project=runs[0].project_id).count() + 1
        return f"{runs[0].answer_set.question_set.name} · {number}"[:200]
    if words_in_name := {word for word in _revealing_words(runs, hide_system=hide_system) if _occurs_in(word, name)}:
        raise DomainError("queue_name_tells", words=sorted(words_in_name))
    return name.strip()[:200]


def _revealing_words(runs: Sequence[Run], *, hide_system: bool) -> Iterable[str]:
    yield from _STRATEGIES
    for run in runs:
        for judge in run.judges.select_related("judge_version"):
            yield judge.judge_version.name
            yield judge.judge_version.model
        if hide_system:
            yield run.name
            yield run.answer_set.system_version.system.name


def _occurs_in(word: str, name: str) -> bool:
    """Return whether a word of the name starts with ``word``; Korean particles may follow it."""
    word = word.strip().casefold()
    text = name.casefold().replace("_", " ")
    return len(word) >= _MIN_WORD_LENGTH and re.search(rf"(?<!\w){re.escape(word.replace('_', ' '))}", text) is not None


@transaction.atomic
def make_queue(
    runs: Run | Sequence[Run],
    spec: QueueSpec,
    *,
    metrics: Sequence[str] = (),
    reviewers: Sequence[User],
    named_reviewers: NamedReviewers | None = None,
    params: ParamsByRun = None,
    by: User | None = None,
    previous: ReviewQueue | None = None,
) -> ReviewQueue:
    """Create a queue on a draw from each run, in one random order.

    It is the round after ``previous`` if given. A queue that follows ratings without being a planned round plans no
    further rounds.

    The runs share ``spec.size`` answers in proportion to their frames; an answer that two runs share is one item.
    Without ``metrics`` the spec's coverage selects them. ``named_reviewers`` assigns people to tags or answers.

    :raises DomainError: ``no_run``, ``several_projects``, ``no_metrics``, ``no_reviewers``, ``not_in_project``,
    ``too_few_reviewers`` or ``queue_name_tells``; as :func:`review.queues.sampling.plan_queue`.
    :raises UnknownName: for an undefined metric."""
    run_list, people, named_reviewers = (
        _distinct_runs(runs),
        list(dict.fromkeys(reviewers)),
        named_reviewers or NamedReviewers(),
    )
    name = check_settings(run_list, spec, people, named_reviewers)
    criteria = select_criteria(run_list, spec, metrics)
    seed = new_seed() if spec.seed is None else spec.seed
    plan = plan_queue(run_list, criteria, spec, params, seed=seed, reviewer_ids=[person.pk for person in people])
    generated_columns = {
        "name": name,
        "seed": seed,
        "looks": 1 if previous is None and plan.follows_ratings else spec.planned_looks,
        "first_round": previous and (previous.first_round or previous),
        "round_number": previous.round_number + 1 if previous else 1,
    }
    queue = ReviewQueue.objects.create(
        project_id=run_list[0].project_id, created_by=by, **(spec.columns | generated_columns)
    )
    add_metrics(queue, run_list[0], criteria)
    add_members(queue, people)
    for run in run_list:
        if run.pk in plan.samples:
            plan.samples[run.pk].store(run, queue, plan.seeds[run.pk], spec.strategy, by)
    items = _add_items(queue, plan, named_reviewers)
    ratings = sum(item.reviews_needed for item in items)
    queue.repeat_gap, queue.repeat_until = repeat_window(queue.repeat_share, ratings, len(people))
    if queue.repeat_gap:
        queue.save(update_fields=["repeat_gap", "repeat_until"])
    if plan.second_opinions:
        reserve_for_others(items, {pk: opinion.reviewer_ids for pk, opinion in plan.second_opinions.items()})
    else:
        reserve_items(queue, items, people, named_reviewers)
    facts = {"hide_system": spec.hide_system, "mode": str(spec.mode)}
    audit.record(by, "queue_made", queue, runs=[run.pk for run in run_list], **facts)
    return queue


def check_settings(
    runs: Sequence[Run], spec: QueueSpec, people: Sequence[User], named_reviewers: NamedReviewers
) -> str:
    """Check everything that can be refused before the draw, and return the name of the queue.

    :raises DomainError: as :func:`make_queue`."""
    check_people(people, runs[0].project_id)
    if spec.reviews_needed > len(people):
        raise DomainError("too_few_reviewers", needed=spec.reviews_needed, people=len(people))
    named_reviewers.check(spec.distribution, people)
    return neutral_name(spec.name, runs, hide_system=spec.hide_system)


def add_members(queue: ReviewQueue, people: Iterable[User]) -> None:
    """Add members to the queue; each starts at a different offset of the ring of items."""
    QueueMember.objects.bulk_create(
        [QueueMember(queue=queue, reviewer=person, offset=ring_offset(queue.seed, person.pk)) for person in people],
        ignore_conflicts=True,
    )


def close_queue(queue: ReviewQueue, *, by: User | None) -> None:
    """Stop serving items and taking ratings; existing ratings stay."""
    _set_state(queue, ReviewQueue.State.CLOSED, "queue_closed", by)


def reopen_queue(queue: ReviewQueue, *, by: User | None) -> None:
    """Open a closed queue."""
    _set_state(queue, ReviewQueue.State.OPEN, "queue_reopened", by)


def _set_state(queue: ReviewQueue, state: ReviewQueue.State, verb: str, by: User | None) -> None:
    with transaction.atomic():
        if ReviewQueue.objects.filter(pk=queue.pk).exclude(state=state).update(state=state):
            queue.state = state
            audit.record(by, verb, queue)


def add_metrics(queue: ReviewQueue, run: Run, metrics: Sequence[MetricDefinition]) -> None:
    primary_judges = run.judges.filter(primary=True).select_related("rubric_version")
    pinned_rubrics = {judge.rubric_version.family: judge.rubric_version for judge in primary_judges}
    QueueMetric.objects.bulk_create(
        QueueMetric(
            queue=queue,
            metric=metric,
            rubric_version=pinned_rubrics.get(metric.rubric_family) or _default_rubric(metric),
            position=position,
        )
        for position, metric in enumerate(metrics)
    )


def _default_rubric(metric: MetricDefinition) -> RubricVersion | None:
    """Rubric of a criterion, or the shipped rubric in the site's language; ``None`` for metrics without a rubric."""
    family, language = metric.rubric_family, settings.LANGUAGE_CODE
    if is_criterion(family):
        return rubric_for_metric(metric, language)
    try:
        return shipped_rubric_row(family, language) if family else None
    except UnknownName:
        return None


def _add_items(queue: ReviewQueue, plan: QueuePlan, named_reviewers: NamedReviewers) -> list[ReviewItem]:
    """Create the items and return them in the order in which reviewers get them."""
    planned_items = plan.items
    shuffled = _shuffled_answers(planned_items, queue.seed)
    needs = reviews_per_item(len(planned_items), queue.reviews_needed, queue.overlap_share, queue.seed)
    items = [
        ReviewItem(
            queue=queue,
            answer_id=answer,
            run_id=planned_items[answer].run_id,
            metric_ids=planned_items[answer].metric_ids,
            shuffle_key=key,
            reviews_needed=len(named_reviewers.by_answer.get(answer, ())) or need,
            reserved=bool(plan.second_opinions) or queue.distribution != ReviewQueue.Distribution.POOL,
        )
        for (answer, key), need in zip(shuffled, needs, strict=True)
    ]
    ReviewItem.objects.bulk_create(items, batch_size=2_000)
    return sorted(items, key=lambda item: item.shuffle_key)


def _shuffled_answers(planned_items: Mapping[int, PlannedItem], seed: int) -> list[tuple[int, int]]:
    """Shuffle the answers, keep answers to one question apart, and return each with its shuffle key."""
    answer_set_ids = Run.objects.filter(pk__in={planned_item.run_id for planned_item in planned_items.values()}).values(
        "answer_set"
    )
    question_ids = dict(Answer.objects.filter(answer_set__in=answer_set_ids).values_list("pk", "question__external_id"))
    keys, answers = shuffle_keys(seed, len(planned_items)), sorted(planned_items)
    shuffled = [answer for _, answer in sorted(zip(keys, answers, strict=True))]
    order = spaced_order([question_ids[answer] for answer in shuffled])
    return [(shuffled[index], key) for index, key in zip(order, sorted(keys), strict=True)]


def _distinct_runs(runs: Run | Sequence[Run]) -> list[Run]:
    run_list = [runs] if isinstance(runs, Run) else list(dict.fromkeys(runs))
    if not run_list:
        raise DomainError("no_run")
    if len({run.project_id for run in run_list}) > 1:
        raise DomainError("several_projects")
    return run_list


def check_people(people: Sequence[User], project_id: int) -> None:
    """Check that all people can review in the project.

    :raises DomainError: ``no_reviewers`` or ``not_in_project``."""
    if not people:
        raise DomainError("no_reviewers")
    granted_ids = RoleGrant.objects.filter(project=project_id, user__in=people).values_list("user_id", flat=True)
    allowed_ids = set(granted_ids) | {person.pk for person in people if person.is_superuser}
    if strangers := [person.get_username() for person in people if person.pk not in allowed_ids]:
        raise DomainError("not_in_project", people=strangers)
