"""The answers a run is about, those taken out of its means, chance within a queue, and who has seen a judge's value."""

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
    """One answer of a run. ``group`` names answers that are not independent: the question's group, else the question
    itself, so that several answers to one question belong together. ``failed``: the system gave no answer.
    ``hops``: how many facts have to be linked for an answer, where the question says so."""

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
    """The newest answer to each question and sample of the run, in the order of the question set; or those of them
    with the given keys. One query."""
    wanted = RunConfig.model_validate(run.config).question_ids
    answers = Answer.objects.filter(answer_set_id=run.answer_set_id)
    if wanted:
        answers = answers.filter(question__external_id__in=wanted)
    if answer_ids is not None:  # with the others to the same questions, one of which may be newer
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


def lengths_of(run: Run) -> dict[int, int]:
    """The characters of each rated answer of the run's answer set. One query."""
    rated = Rating.objects.filter(answer__answer_set=run.answer_set_id)
    answers = Answer.objects.filter(answer_set=run.answer_set_id, pk__in=rated.values("answer"))
    return dict(answers.annotate(size=Length("text")).values_list("pk", "size"))


REMOVING = frozenset({FlagKind.BAD_QUESTION.value, FlagKind.BAD_REFERENCE.value})


def upheld_flags() -> QuerySet[EventRuling]:
    """The rulings by which flags of these kinds stand."""
    newer = EventRuling.objects.filter(event=OuterRef("event"), seq__gt=OuterRef("seq"))
    return EventRuling.objects.filter(~Exists(newer), upheld=True, event__verb="flag", event__kind__in=REMOVING)


def removed_answers(answer_set_id: int, answer_ids: Collection[int] | None = None) -> frozenset[int]:
    """The answers of the set (or some of them) with an upheld flag of these kinds. One query."""
    upheld = upheld_flags().filter(event__assignment__item__answer__answer_set_id=answer_set_id)
    if answer_ids is not None:
        upheld = upheld.filter(event__assignment__item__answer__in=answer_ids)
    return frozenset(upheld.values_list("event__assignment__item__answer_id", flat=True))


KEY_BITS = 62  # fits the signed 64-bit integers of both databases
SEED_BITS = 32
APART = 3  # items between two answers to one question, where there are enough others
LOOKED_AT = 50  # items tried for one place, so that a queue about a single question does not take for ever


def new_seed() -> int:
    """A seed for a draw or a queue."""
    return secrets.randbits(SEED_BITS)


def shuffle_keys(seed: int, count: int) -> list[int]:
    """Random keys for so many items."""
    random = Random(f"items {seed}")
    return [random.getrandbits(KEY_BITS) for _ in range(count)]


def kept_apart(questions: Sequence[str]) -> list[int]:
    """The places of a shuffled list in an order in which answers to one question do not follow each other: whoever has
    just read one answer measures the next one by it. Each place in conflict changes with the nearest later one that
    fits; where none does, it stays."""
    order = list(range(len(questions)))
    for i in range(1, len(order)):
        before = {questions[place] for place in order[max(0, i - APART) : i]}
        fits = (j for j in range(i, min(len(order), i + LOOKED_AT)) if questions[order[j]] not in before)
        j = next(fits, i)
        order[i], order[j] = order[j], order[i]
    return order


def ring_offset(seed: int, reviewer_id: int) -> int:
    """Where a reviewer starts on the ring of keys."""
    return _number("offset", seed, reviewer_id) >> (64 - KEY_BITS)


def by_chance(purpose: str, share: float, seed: int, item_id: int, reviewer_id: int) -> bool:
    """Whether this item is among the share of this reviewer's items that chance takes for a purpose."""
    return _number(purpose, seed, item_id, reviewer_id) / 2**64 < share


def repeat_key(seed: int, item_id: int) -> int:
    """The key of a hidden repeat of an item."""
    return _number("again", seed, item_id) >> (64 - KEY_BITS)


def _number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


ANSWER, RUN = "answer", "run"


def expose(user: User | AnonymousUser, subject: Answer | Run, via: str) -> None:
    """Record that the person was shown the judge's value of an answer, or of a whole run as an export does.

    Only members of an open queue that holds such an answer or an equal one, and leads who may have to decide on it, are
    recorded, once. Every page, endpoint and export that shows a judge's value calls this before it answers; ``via``
    names it in a word.
    """
    if isinstance(subject, Answer):
        expose_answers(user, [subject.pk], via)
    elif isinstance(user, User):
        shown = _reviewed_like(user, Answer.objects.filter(answer_set=subject.answer_set_id), Q())
        own = {answer for answer, of in shown if of == subject.answer_set_id}
        _record(user, RUN, [subject.pk] if own else [], via)
        _record(user, ANSWER, sorted({answer for answer, _ in shown} - own), via)


def expose_answers(user: User | AnonymousUser, answer_ids: Collection[int], via: str) -> None:
    """The same for a page that shows the judge's values of several answers."""
    if isinstance(user, User) and answer_ids:
        some = Answer.objects.filter(pk__in=answer_ids)
        shown = _reviewed_like(user, some, Q(answer__question__in=some.values("question")))
        _record(user, ANSWER, sorted({answer for answer, _ in shown}), via)


def expose_item(user: User, answer: Answer, via: str) -> None:
    """The same for an item in its reviewer's hands, which shows the judge's value of this answer and nobody's rating:
    answers equal to it stay unseen."""
    if _reviewed_by(user).filter(answer=answer).exists():
        _record(user, ANSWER, [answer.pk], via)


def expose_queue(user: User | AnonymousUser, queue: ReviewQueue) -> None:
    """The same for an export of a queue's items: of every run behind it."""
    for run in Run.objects.filter(items__queue=queue).distinct():
        expose(user, run, "items")


def exposed(user: User, answer_id: int) -> bool:
    """Whether the person is recorded as having seen a judge's value of the answer, by itself or with a run."""
    return EXPOSED.first(user=user.pk, answer=answer_id) is not None


def _reviewed_by(user: User) -> QuerySet[ReviewItem]:
    """The items the person may still have to rate, or as a lead to decide on."""
    mine = QueueMember.objects.filter(reviewer=user, queue__state=ReviewQueue.State.OPEN)
    led = projects_with(user, Action.ADJUDICATE)
    return ReviewItem.objects.filter(Q(queue__in=mine.values("queue")) | Q(queue__project__in=led.values("pk")))


def same_text(at: str = "") -> Q:
    """That an answer (``at`` leads to it) is the ``answer`` of the outer query, or says the same to the same question;
    answers without a text say nothing."""
    path = f"{at}__" if at else ""
    same = {f"{path}question": OuterRef("answer__question"), f"{path}text_hash": OuterRef("answer__text_hash")}
    return Q(**{f"{path}pk": OuterRef("answer")}) | ~Q(**{f"{path}text": ""}) & Q(**same)


def _reviewed_like(user: User, answers: QuerySet[Answer], near: Q) -> list[tuple[int, int]]:
    """Answer and answer set of those items whose answer is among these, or has the same text to the same question:
    there the ratings of these would tell what others think of it. ``near`` holds for all of them: few
    answers are found sooner than all items are walked."""
    # Each half by its own index; as one condition every item would have all answers of a run read.
    same = answers.exclude(text="").filter(
        question=OuterRef("answer__question"), text_hash=OuterRef("answer__text_hash")
    )
    items = _reviewed_by(user).filter(near, Q(answer__in=answers.values("pk")) | Exists(same))
    return list(items.values_list("answer_id", "answer__answer_set_id"))


def _record(user: User, scope: str, object_ids: Collection[int], via: str) -> None:
    Exposure.objects.bulk_create(
        [Exposure(user=user, scope=scope, object_id=one, via=via) for one in object_ids], ignore_conflicts=True
    )
