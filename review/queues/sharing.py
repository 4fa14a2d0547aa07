"""Who rates which item of a queue, how many rate it, and which come again without saying so; picking answers by hand;
and the lists in which people type both."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType

from django.db.models import Count

from evaluation.core.errors import Refused
from evaluation.models import Answer, Run, User
from review.models import Assignment, Reservation, ReviewItem, ReviewQueue
from review.models.queue_spec import Distribution
from review.statistics.sampling.draw import by_field, by_load, in_turn


def listed(text: str) -> list[str]:
    """The words between commas, semicolons and line ends, each once, in their order."""
    words = (word.strip() for word in re.split(r"[,;\n\r]", text))
    return list(dict.fromkeys(word for word in words if word))


def fields_from(text: str) -> dict[str, list[str]]:
    """``tag: kim, lee`` line by line as tag -> names; a tag on several lines has all of their people.

    :raises Refused: ``no_fields`` for a line without a tag or without names.
    """
    fields: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        tag, colon, names = line.rpartition(":")
        people = listed(names)
        if not colon or not tag.strip() or not people:
            raise Refused("no_fields")
        known = fields.setdefault(tag.strip(), [])
        known += [name for name in people if name not in known]
    return fields


NAMED = 10  # unknown ids that a message lists


def answers_to(runs: Sequence[Run], question_ids: Sequence[str]) -> dict[int, frozenset[int]]:
    """Run -> its answers to these questions, of all samples, by primary key.

    :raises Refused: ``unknown_questions`` for ids that no run has an answer to.
    """
    found: dict[int, set[int]] = {run.pk: set() for run in runs}
    of_set = {run.answer_set_id: run.pk for run in runs}
    rows = Answer.objects.filter(answer_set__in=of_set, question__external_id__in=question_ids, status="ok")
    known = set()
    for pk, answer_set, question_id in rows.values_list("pk", "answer_set_id", "question__external_id"):
        found[of_set[answer_set]].add(pk)
        known.add(question_id)
    if unknown := [one for one in question_ids if one not in known]:
        raise Refused("unknown_questions", ids=unknown[:NAMED])
    return {run: frozenset(answers) for run, answers in found.items()}


def picked(
    runs: Sequence[Run], answers: Collection[int], question_ids: Sequence[str] = ()
) -> dict[int, frozenset[int]]:
    """Run -> its answers among those named by primary key, and its answers to the questions.

    :raises Refused: ``unknown_keys`` for answers of no run, ``unknown_questions`` for ids that no run has an answer to.
    """
    asked = answers_to(runs, question_ids)
    of_set = dict(Answer.objects.filter(pk__in=answers).values_list("pk", "answer_set_id"))
    own = {run.pk: frozenset(pk for pk, of in of_set.items() if of == run.answer_set_id) for run in runs}
    if unknown := sorted(frozenset(answers).difference(*own.values())):
        raise Refused("unknown_keys", keys=unknown)
    return {run.pk: asked[run.pk] | own[run.pk] for run in runs}


USUAL_GAP = 20
LEAST_EACH = 8  # with fewer items each, a repeat would come too soon to be one

_NOBODY: Mapping[str, tuple[User, ...]] = MappingProxyType({})
_NO_NAMES: Mapping[int, tuple[User, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sharing:
    """Whom items are for, where people are named. ``fields``: tag or category -> people, for ``by_tag``; ``named``:
    answer -> people, for ``per_item``."""

    fields: Mapping[str, Sequence[User]] = field(default_factory=lambda: _NOBODY)
    named: Mapping[int, Sequence[User]] = field(default_factory=lambda: _NO_NAMES)

    def check(self, distribution: Distribution, people: Sequence[User]) -> None:
        """Refuse what cannot be.

        :raises Refused: ``no_fields`` or ``not_a_reviewer``.
        """
        if distribution == Distribution.BY_TAG and not self.fields:
            raise Refused("no_fields")
        named = (one for ones in (*self.fields.values(), *self.named.values()) for one in ones)
        check_members({one.pk for one in people}, named)


def check_members(members: Collection[int], named: Iterable[User]) -> None:
    """Refuse people who are not among the members, by primary key.

    :raises Refused: ``not_a_reviewer``.
    """
    if strangers := sorted({one.get_username() for one in named if one.pk not in members}):
        raise Refused("not_a_reviewer", people=strangers)


def needs_of(count: int, reviews_needed: int, overlap_share: float, seed: int) -> list[int]:
    """How many reviewers each of so many items takes: ``reviews_needed`` for a random share, one for the others."""
    if reviews_needed == 1:
        return [1] * count
    shared = math.ceil(round(count * overlap_share, 9))
    several = set(Random(f"overlap {seed}").sample(range(count), shared))
    return [reviews_needed if place in several else 1 for place in range(count)]


def repeat_window(repeat_share: float, ratings: int, people: int) -> tuple[int, int]:
    """``(gap, until)``: repeats come after ``gap`` other items, chosen among a reviewer's first ``until`` of so many
    expected ones; ``(0, 0)`` without repeats.

    :raises Refused: ``too_few_for_repeats``.
    """
    if repeat_share <= 0:
        return 0, 0
    each = ratings // max(people, 1)
    if each < LEAST_EACH:
        raise Refused("too_few_for_repeats", each=each, least=LEAST_EACH)
    gap = min(USUAL_GAP, each // 2)
    return gap, each - gap


def reserve_items(queue: ReviewQueue, items: Sequence[ReviewItem], people: Sequence[User], sharing: Sharing) -> None:
    """Keep each item for its people, by the queue's way of giving them out. In a pool nothing is kept for anybody.

    :raises Refused: ``too_few_for_tag``.
    """
    if queue.distribution == Distribution.POOL:
        return
    dealt = _dealt(queue, items, [one.pk for one in people], sharing)
    Reservation.objects.bulk_create(
        (
            Reservation(item=item, reviewer_id=reviewer)
            for item, ones in zip(items, dealt, strict=True)
            for reviewer in ones
        ),
        batch_size=2_000,
    )


def open_loads(people: Sequence[int]) -> dict[int, int]:
    """How many items of open queues are kept for each person and not rated by them yet."""
    kept = Reservation.objects.filter(
        reviewer__in=people, item__state=ReviewItem.State.OPEN, item__queue__state=ReviewQueue.State.OPEN
    )
    loads = dict(kept.order_by().values_list("reviewer").annotate(Count("pk")))
    done = Assignment.objects.filter(
        reviewer__in=people,
        submitted_at__isnull=False,
        item__reserved=True,
        item__state=ReviewItem.State.OPEN,
        item__queue__state=ReviewQueue.State.OPEN,
    )
    for reviewer, count in done.order_by().values_list("reviewer").annotate(Count("pk")):
        loads[reviewer] = max(0, loads.get(reviewer, 0) - count)
    return loads


def _dealt(
    queue: ReviewQueue, items: Sequence[ReviewItem], people: list[int], sharing: Sharing
) -> list[tuple[int, ...]]:
    needs = [item.reviews_needed for item in items]
    # Who comes first is chance too: the same person would else get the odd item of every queue.
    Random(f"people {queue.seed}").shuffle(people)
    if queue.distribution == Distribution.ROUND_ROBIN:
        return in_turn(needs, people)
    if queue.distribution == Distribution.BALANCED:
        return by_load(needs, people, open_loads(people))
    if queue.distribution == Distribution.PER_ITEM:
        return [tuple(one.pk for one in sharing.named.get(item.answer_id, ())) for item in items]
    fields = {tag: [one.pk for one in ones] for tag, ones in sharing.fields.items()}
    return by_field(needs, _tags(queue, items), people, fields, open_loads(people))


def _tags(queue: ReviewQueue, items: Sequence[ReviewItem]) -> list[tuple[str, ...]]:
    """Tags and category of each item's question."""
    rows = Answer.objects.filter(items__queue=queue).select_related("question")
    tags = {row.pk: (*row.question.read().tags, row.question.category) for row in rows}
    return [tags[item.answer_id] for item in items]
