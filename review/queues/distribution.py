"""Distribution of a queue's items to reviewers, overlap, hidden repeats, and hand-picked answers."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType

from django.db.models import Count

from evaluation.accounts.access import MAX_ID
from evaluation.core.errors import DomainError
from evaluation.models import Answer, Run, User
from review.models import Assignment, Reservation, ReviewItem, ReviewQueue
from review.models.queue_spec import Distribution
from review.statistics.sampling.draw import assign_by_load, assign_by_tag, assign_round_robin


def split_list(text: str) -> list[str]:
    """Split at commas, semicolons and line ends; drop duplicates and keep the order."""
    words = (word.strip() for word in re.split(r"[,;\n\r]", text))
    return list(dict.fromkeys(word for word in words if word))


def parse_tag_lines(text: str) -> dict[str, list[str]]:
    """Parse lines of ``tag: kim, lee`` into tag -> names; lines of one tag are merged.

    :raises DomainError: ``no_fields`` for a line without a tag or without names."""
    people_by_tag: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        tag, colon, names = line.rpartition(":")
        people = split_list(names)
        if not colon or not tag.strip() or not people:
            raise DomainError("no_fields")
        tag_people = people_by_tag.setdefault(tag.strip(), [])
        tag_people += [name for name in people if name not in tag_people]
    return people_by_tag


# Limit of unknown ids in a message.
MAX_IDS_IN_MESSAGE = 10


def answers_to_questions(runs: Sequence[Run], question_ids: Sequence[str]) -> dict[int, frozenset[int]]:
    """Map each run to its answers to these questions, all samples, by primary key.

    :raises DomainError: ``unknown_questions`` for ids without an answer in any run."""
    answers_by_run: dict[int, set[int]] = {run.pk: set() for run in runs}
    run_by_answer_set = {run.answer_set_id: run.pk for run in runs}
    rows = Answer.objects.filter(answer_set__in=run_by_answer_set, question__external_id__in=question_ids, status="ok")
    known_ids = set()
    for pk, answer_set, question_id in rows.values_list("pk", "answer_set_id", "question__external_id"):
        answers_by_run[run_by_answer_set[answer_set]].add(pk)
        known_ids.add(question_id)
    if unknown_ids := [external_id for external_id in question_ids if external_id not in known_ids]:
        raise DomainError("unknown_questions", ids=unknown_ids[:MAX_IDS_IN_MESSAGE])
    return {run_id: frozenset(answers) for run_id, answers in answers_by_run.items()}


def pick_answers(
    runs: Sequence[Run], answers: Collection[int], question_ids: Sequence[str] = ()
) -> dict[int, frozenset[int]]:
    """Map each run to its hand-picked answers: those given by primary key and those to the given questions.

    :raises DomainError: ``unknown_keys`` for answers of no run, ``unknown_questions`` for ids without an answer in any
    run.
    """
    answers_by_question = answers_to_questions(runs, question_ids)
    possible_keys = [key for key in answers if abs(key) <= MAX_ID]
    answer_set_ids = dict(Answer.objects.filter(pk__in=possible_keys).values_list("pk", "answer_set_id"))
    answers_by_key = {
        run.pk: frozenset(pk for pk, answer_set_id in answer_set_ids.items() if answer_set_id == run.answer_set_id)
        for run in runs
    }
    if unknown_keys := sorted(frozenset(answers).difference(*answers_by_key.values())):
        raise DomainError("unknown_keys", keys=unknown_keys)
    return {run.pk: answers_by_question[run.pk] | answers_by_key[run.pk] for run in runs}


DEFAULT_REPEAT_GAP = 20
# With fewer ratings per person a repeat would follow too soon.
MIN_RATINGS_EACH = 8

_NO_TAGS: Mapping[str, tuple[User, ...]] = MappingProxyType({})
_NO_ANSWERS: Mapping[int, tuple[User, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NamedReviewers:
    """Reviewers named for items. ``by_tag``: tag or category -> people, for the distribution ``by_tag``; ``by_answer``:
    answer -> people, for ``per_item``."""

    by_tag: Mapping[str, Sequence[User]] = field(default_factory=lambda: _NO_TAGS)
    by_answer: Mapping[int, Sequence[User]] = field(default_factory=lambda: _NO_ANSWERS)

    def check(self, distribution: Distribution, people: Sequence[User]) -> None:
        """Check the names against the distribution and the members.

        :raises DomainError: ``no_fields`` or ``not_a_reviewer``."""
        if distribution == Distribution.BY_TAG and not self.by_tag:
            raise DomainError("no_fields")
        reviewers = (
            reviewer
            for tag_reviewers in (*self.by_tag.values(), *self.by_answer.values())
            for reviewer in tag_reviewers
        )
        check_members({person.pk for person in people}, reviewers)


def check_members(member_ids: Collection[int], reviewers: Iterable[User]) -> None:
    """Check that all reviewers are among the members (primary keys).

    :raises DomainError: ``not_a_reviewer``."""
    if strangers := sorted({reviewer.get_username() for reviewer in reviewers if reviewer.pk not in member_ids}):
        raise DomainError("not_a_reviewer", people=strangers)


def reviews_per_item(item_count: int, reviews_needed: int, overlap_share: float, seed: int) -> list[int]:
    """Number of reviews of each item: ``reviews_needed`` for a random share, one for the others."""
    if reviews_needed == 1:
        return [1] * item_count
    shared_count = math.ceil(round(item_count * overlap_share, 9))
    shared_positions = set(Random(f"overlap {seed}").sample(range(item_count), shared_count))
    return [reviews_needed if position in shared_positions else 1 for position in range(item_count)]


def repeat_window(repeat_share: float, ratings: int, people: int) -> tuple[int, int]:
    """Return ``(gap, until)``: a repeat comes after at least ``gap`` other items and repeats one of the reviewer's
    first ``until`` items. ``(0, 0)`` without repeats.

    :raises DomainError: ``too_few_for_repeats``."""
    if repeat_share <= 0:
        return 0, 0
    ratings_each = ratings // max(people, 1)
    if ratings_each < MIN_RATINGS_EACH:
        raise DomainError("too_few_for_repeats", each=ratings_each, least=MIN_RATINGS_EACH)
    gap = min(DEFAULT_REPEAT_GAP, ratings_each // 2)
    return gap, ratings_each - gap


def reserve_for_others(items: Sequence[ReviewItem], reviewer_ids: Mapping[int, Collection[int]]) -> None:
    """Reserve each item for the people who may rate its answer (primary keys); whoever is free takes it."""
    Reservation.objects.bulk_create(
        (
            Reservation(item=item, reviewer_id=reviewer_id)
            for item in items
            for reviewer_id in sorted(reviewer_ids[item.answer_id])
        ),
        batch_size=2_000,
    )


def reserve_items(
    queue: ReviewQueue, items: Sequence[ReviewItem], people: Sequence[User], named_reviewers: NamedReviewers
) -> None:
    """Reserve items for reviewers as the queue's distribution says. A pool reserves nothing.

    :raises DomainError: ``too_few_for_tag``."""
    if queue.distribution == Distribution.POOL:
        return
    reviewers_by_item = _assign_reviewers(queue, items, [person.pk for person in people], named_reviewers)
    Reservation.objects.bulk_create(
        (
            Reservation(item=item, reviewer_id=reviewer_id)
            for item, reviewer_ids in zip(items, reviewers_by_item, strict=True)
            for reviewer_id in reviewer_ids
        ),
        batch_size=2_000,
    )


def open_loads(people: Sequence[int]) -> dict[int, int]:
    """Count each person's reserved and unrated items in open queues."""
    reservations = Reservation.objects.filter(
        reviewer__in=people, item__state=ReviewItem.State.OPEN, item__queue__state=ReviewQueue.State.OPEN
    )
    loads = dict(reservations.order_by().values_list("reviewer").annotate(Count("pk")))
    rated_assignments = Assignment.objects.filter(
        reviewer__in=people,
        submitted_at__isnull=False,
        item__reserved=True,
        item__state=ReviewItem.State.OPEN,
        item__queue__state=ReviewQueue.State.OPEN,
    )
    for reviewer, count in rated_assignments.order_by().values_list("reviewer").annotate(Count("pk")):
        loads[reviewer] = max(0, loads.get(reviewer, 0) - count)
    return loads


def _assign_reviewers(
    queue: ReviewQueue, items: Sequence[ReviewItem], reviewer_ids: list[int], named_reviewers: NamedReviewers
) -> list[tuple[int, ...]]:
    needs = [item.reviews_needed for item in items]
    # A random order, because the first person gets the odd item of every queue.
    Random(f"people {queue.seed}").shuffle(reviewer_ids)
    if queue.distribution == Distribution.ROUND_ROBIN:
        return assign_round_robin(needs, reviewer_ids)
    if queue.distribution == Distribution.BALANCED:
        return assign_by_load(needs, reviewer_ids, open_loads(reviewer_ids))
    if queue.distribution == Distribution.PER_ITEM:
        return [tuple(reviewer.pk for reviewer in named_reviewers.by_answer.get(item.answer_id, ())) for item in items]
    ids_by_tag = {
        tag: [reviewer.pk for reviewer in tag_reviewers] for tag, tag_reviewers in named_reviewers.by_tag.items()
    }
    return assign_by_tag(needs, _question_tags(queue, items), reviewer_ids, ids_by_tag, open_loads(reviewer_ids))


def _question_tags(queue: ReviewQueue, items: Sequence[ReviewItem]) -> list[tuple[str, ...]]:
    """Tags and category of each item's question."""
    rows = Answer.objects.filter(items__queue=queue).select_related("question")
    tags = {row.pk: (*row.question.read().tags, row.question.category) for row in rows}
    return [tags[item.answer_id] for item in items]
