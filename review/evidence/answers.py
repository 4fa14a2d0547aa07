"""Answers of a run, answers excluded from its means, random order within a queue, and exposure to judge values."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Length

from evaluation.accounts.access import projects_with
from evaluation.core.roles import Action
from evaluation.models import Answer, Run, User
from evaluation.worker.lifecycle import RunConfig
from review.evidence.rating_input import FlagKind
from review.models import EventRuling, Exposure, QueueMember, Rating, ReviewItem, ReviewQueue
from review.models.statements import EXPOSED


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """Answer of a run.

    ``group`` names answers that are not independent: the question's group, or the question itself, so that several
    answers to one question belong together. ``failed``: the system gave no answer. ``hops``: number of facts to link
    for the answer, if the question states it."""

    answer_id: int
    question_pk: int
    question_id: str
    question: str
    category: str
    difficulty: str
    group: str
    sample: int
    failed: bool
    latency_seconds: float | None
    hops: int | None = None


_FIELDS = (
    "id",
    "question_id",
    "question__external_id",
    "question__text",
    "question__category",
    "question__difficulty",
    "question__group",
    "sample",
    "status",
    "latency_seconds",
    "question__spec__hops",
)


def run_answers(run: Run, answer_ids: Collection[int] | None = None) -> list[RunAnswer]:
    """Newest answer to each question and sample of the run, in the order of the question set; optionally only these
    answers.

    One query."""
    question_ids = RunConfig.model_validate(run.config).question_ids
    answers = Answer.objects.filter(answer_set_id=run.answer_set_id)
    if question_ids:
        answers = answers.filter(question__external_id__in=question_ids)
    # Other answers to the same questions are read too, because one of them may be newer.
    if answer_ids is not None:
        answers = answers.filter(question__in=Answer.objects.filter(pk__in=answer_ids).values("question"))
    rows = answers.order_by("question__position", "sample", "round").values_list(*_FIELDS)
    newest = {(row[1], row[7]): row for row in rows}.values()
    return [
        RunAnswer(
            *(pk, question_pk, external_id, text, category, difficulty),
            group=f"group:{group}" if group else f"question:{external_id}",
            sample=sample,
            failed=status == "failed",
            latency_seconds=latency,
            hops=hops if isinstance(hops, int) else None,
        )
        for pk, question_pk, external_id, text, category, difficulty, group, sample, status, latency, hops in newest
        if answer_ids is None or pk in answer_ids
    ]


def answer_lengths(run: Run) -> dict[int, int]:
    """Number of characters of each rated answer of the run's answer set. One query."""
    rated = Rating.objects.filter(answer__answer_set=run.answer_set_id)
    answers = Answer.objects.filter(answer_set=run.answer_set_id, pk__in=rated.values("answer"))
    return dict(answers.annotate(size=Length("text")).values_list("pk", "size"))


EXCLUDING_FLAGS = frozenset({FlagKind.BAD_QUESTION.value, FlagKind.BAD_REFERENCE.value})


def upheld_flags() -> QuerySet[EventRuling]:
    """Rulings that uphold a flag of a bad question or a bad reference."""
    newer = EventRuling.objects.filter(event=OuterRef("event"), seq__gt=OuterRef("seq"))
    return EventRuling.objects.filter(~Exists(newer), upheld=True, event__verb="flag", event__kind__in=EXCLUDING_FLAGS)


def excluded_answers(answer_set_id: int, answer_ids: Collection[int] | None = None) -> frozenset[int]:
    """Answers of the set (or some of them) with an upheld flag of a bad question or reference. One query."""
    upheld = upheld_flags().filter(event__assignment__item__answer__answer_set_id=answer_set_id)
    if answer_ids is not None:
        upheld = upheld.filter(event__assignment__item__answer__in=answer_ids)
    return frozenset(upheld.values_list("event__assignment__item__answer_id", flat=True))


# Fits the signed 64-bit integers of both databases.
KEY_BITS = 62
SEED_BITS = 32
# Items between two answers to one question, if there are enough others.
MIN_SPACING = 3
# Limits the search per position, for queues about a single question.
MAX_CANDIDATES = 50


def new_seed() -> int:
    return secrets.randbits(SEED_BITS)


def shuffle_keys(seed: int, count: int) -> list[int]:
    random = Random(f"items {seed}")
    return [random.getrandbits(KEY_BITS) for _ in range(count)]


def spaced_order(questions: Sequence[str]) -> list[int]:
    """Order of a shuffled list in which answers to one question are spaced out.

    A reviewer who has just read one answer would compare the next one with it. Each conflicting position is swapped
    with the nearest later one that fits, or stays if none does."""
    order = list(range(len(questions)))
    for i in range(1, len(order)):
        recent_questions = {questions[position] for position in order[max(0, i - MIN_SPACING) : i]}
        candidates = (
            j for j in range(i, min(len(order), i + MAX_CANDIDATES)) if questions[order[j]] not in recent_questions
        )
        j = next(candidates, i)
        order[i], order[j] = order[j], order[i]
    return order


def ring_offset(seed: int, reviewer_id: int) -> int:
    """Start of a reviewer on the ring of keys."""
    return _hash_number("offset", seed, reviewer_id) >> (64 - KEY_BITS)


def is_sampled(purpose: str, share: float, seed: int, item_id: int, reviewer_id: int) -> bool:
    """Return whether this item belongs to the random share of the reviewer's items for a purpose."""
    return _hash_number(purpose, seed, item_id, reviewer_id) / 2**64 < share


def repeat_key(seed: int, item_id: int) -> int:
    """Key of a hidden repeat of an item."""
    return _hash_number("again", seed, item_id) >> (64 - KEY_BITS)


def _hash_number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


ANSWER, RUN = "answer", "run"


def record_exposure(user: User | AnonymousUser, subject: Answer | Run, via: str) -> None:
    """Record that a person has seen the judge's value of an answer, or of a whole run as in an export.

    Call it before any page, endpoint or export shows a judge's value; ``via`` names that place in a word. Only members
    of a queue that holds such an answer or an equal one are recorded, and leads who may decide on it, once each."""
    if isinstance(subject, Answer):
        record_answer_exposure(user, [subject.pk], via)
    elif isinstance(user, User):
        reviewed = _reviewed_equal_answers(user, Answer.objects.filter(answer_set=subject.answer_set_id), Q())
        own_answers = {answer for answer, answer_set in reviewed if answer_set == subject.answer_set_id}
        _record(user, RUN, [subject.pk] if own_answers else [], via)
        _record(user, ANSWER, sorted({answer for answer, _ in reviewed} - own_answers), via)


def record_answer_exposure(user: User | AnonymousUser, answer_ids: Collection[int], via: str) -> None:
    """Record that a person has seen the judge's values of several answers."""
    if isinstance(user, User) and answer_ids:
        answers = Answer.objects.filter(pk__in=answer_ids)
        reviewed = _reviewed_equal_answers(user, answers, Q(answer__question__in=answers.values("question")))
        _record(user, ANSWER, sorted({answer for answer, _ in reviewed}), via)


def record_item_exposure(user: User, answer: Answer, via: str) -> None:
    """Record that a reviewer has seen the judge's value of the answer of their current item.

    The item shows nobody's rating, so equal answers stay unseen."""
    if _reviewed_by(user).filter(answer=answer).exists():
        _record(user, ANSWER, [answer.pk], via)


def record_queue_exposure(user: User | AnonymousUser, queue: ReviewQueue) -> None:
    """Record an export of a queue's items as exposure to every run of the queue."""
    for run in Run.objects.filter(items__queue=queue).distinct():
        record_exposure(user, run, "items")


def was_exposed(user: User, answer_id: int) -> bool:
    """Return whether the person is recorded as having seen a judge's value of the answer, alone or with a run."""
    return EXPOSED.first(user=user.pk, answer=answer_id) is not None


def _reviewed_by(user: User) -> QuerySet[ReviewItem]:
    """Items that the person may still have to rate, or to decide on as a lead."""
    # A closed queue may be opened again.
    memberships = QueueMember.objects.filter(reviewer=user)
    led_projects = projects_with(user, Action.ADJUDICATE)
    return ReviewItem.objects.filter(
        Q(queue__in=memberships.values("queue")) | Q(queue__project__in=led_projects.values("pk"))
    )


def has_same_text(prefix: str = "") -> Q:
    """Condition that an answer equals the outer query's ``answer``, or has the same text for the same question.

    ``prefix`` is the lookup path to the answer. Answers without a text equal no other."""
    path = f"{prefix}__" if prefix else ""
    equal_fields = {f"{path}question": OuterRef("answer__question"), f"{path}text_hash": OuterRef("answer__text_hash")}
    return Q(**{f"{path}pk": OuterRef("answer")}) | ~Q(**{f"{path}text": ""}) & Q(**equal_fields)


def _reviewed_equal_answers(user: User, answers: QuerySet[Answer], restriction: Q) -> list[tuple[int, int]]:
    """Answer and answer set of the person's items whose answer is one of these or equal to one.

    Ratings of equal answers would reveal the opinions of others. ``restriction`` holds for all these items and lets the
    database start from the few answers instead of all items."""
    # Each half uses its own index. As one condition, every item would read all answers of a run.
    equal_answers = answers.exclude(text="").filter(
        question=OuterRef("answer__question"), text_hash=OuterRef("answer__text_hash")
    )
    items = _reviewed_by(user).filter(restriction, Q(answer__in=answers.values("pk")) | Exists(equal_answers))
    return list(items.values_list("answer_id", "answer__answer_set_id"))


def _record(user: User, scope: str, object_ids: Collection[int], via: str) -> None:
    Exposure.objects.bulk_create(
        [Exposure(user=user, scope=scope, object_id=object_id, via=via) for object_id in object_ids],
        ignore_conflicts=True,
    )
