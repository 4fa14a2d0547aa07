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

from evaluation.models import Answer, Run, User
from evaluation.worker.lifecycle import RunConfig
from review.evidence.rating_input import FlagKind
from review.models import EventRuling, Exposure, Rating, ReviewQueue
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
NO_TEXT = hashlib.sha256().hexdigest()


def record_exposure(user: User | AnonymousUser, subject: Answer | Run, via: str) -> None:
    """Record that a person has seen the judge's value of an answer, or of a whole run as in an export.

    Call it before any page, endpoint or export shows a judge's value; ``via`` names that place in a word. Everybody is
    recorded, once each, because whoever looks today may be asked to rate tomorrow."""
    _record(user, ANSWER if isinstance(subject, Answer) else RUN, [subject.pk], via)


def record_answer_exposure(user: User | AnonymousUser, answer_ids: Collection[int], via: str) -> None:
    """Record that a person has seen the judge's values of several answers."""
    _record(user, ANSWER, answer_ids, via)


def record_queue_exposure(user: User | AnonymousUser, queue: ReviewQueue) -> None:
    """Record an export of a queue's items as exposure to every run of the queue."""
    for run in Run.objects.filter(items__queue=queue).distinct():
        record_exposure(user, run, "items")


def was_exposed(user: User, answer_id: int) -> bool:
    """Return whether the person is recorded as having seen a judge's value of the answer or of an equal one."""
    return EXPOSED.first(user=user.pk, answer=answer_id) is not None


def exposed_answers(user_ids: Collection[int], answer_ids: Collection[int]) -> dict[int, set[int]]:
    """Those of the answers of which a judge's value, or one of an equal answer, was seen, by user. Three queries."""
    questions = Answer.objects.filter(pk__in=answer_ids).values("question")
    candidates = Answer.objects.filter(question__in=questions)
    runs = Run.objects.filter(answer_set__in=candidates.values("answer_set"))
    shown = Q(scope=ANSWER, object_id__in=candidates.values("pk")) | Q(scope=RUN, object_id__in=runs.values("pk"))
    exposures = list(Exposure.objects.filter(shown, user__in=user_ids).values_list("user_id", "scope", "object_id"))
    if not exposures:
        return {}
    answer_sets = dict(runs.values_list("pk", "answer_set_id"))
    equal_answers: dict[tuple[int, str | int], list[tuple[int, int]]] = {}
    for pk, answer_set, question, digest in candidates.values_list("pk", "answer_set_id", "question_id", "text_hash"):
        # Answers without a text equal no other.
        equal_answers.setdefault((question, pk if digest == NO_TEXT else digest), []).append((pk, answer_set))
    exposed: dict[int, set[int]] = {}
    for user in {user for user, _, _ in exposures}:
        own_exposures = {(scope, object_id) for by, scope, object_id in exposures if by == user}
        sets = {answer_sets[object_id] for scope, object_id in own_exposures if scope == RUN}
        for group in equal_answers.values():
            if any((ANSWER, pk) in own_exposures or answer_set in sets for pk, answer_set in group):
                exposed.setdefault(user, set()).update(pk for pk, _ in group)
    return {user: seen.intersection(answer_ids) for user, seen in exposed.items()}


def has_same_text(prefix: str = "") -> Q:
    """Condition that an answer equals the outer query's ``answer``, or has the same text for the same question.

    ``prefix`` is the lookup path to the answer. Answers without a text equal no other."""
    path = f"{prefix}__" if prefix else ""
    equal_fields = {f"{path}question": OuterRef("answer__question"), f"{path}text_hash": OuterRef("answer__text_hash")}
    return Q(**{f"{path}pk": OuterRef("answer")}) | ~Q(**{f"{path}text": ""}) & Q(**equal_fields)


def _record(user: User | AnonymousUser, scope: str, object_ids: Collection[int], via: str) -> None:
    # Service users never rate blind.
    if not isinstance(user, User) or user.is_service or not object_ids:
        return
    known = Exposure.objects.filter(user=user, scope=scope, object_id__in=object_ids)
    new_ids = set(object_ids) - set(known.values_list("object_id", flat=True))
    rows = [Exposure(user=user, scope=scope, object_id=object_id, via=via) for object_id in sorted(new_ids)]
    if rows:
        Exposure.objects.bulk_create(rows, ignore_conflicts=True)
