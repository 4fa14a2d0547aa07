"""The asking step of a run: claimed units become questions to the system, replies become answers.

A reply is written in one transaction with its answer, the end of its unit, and the waking of the units that wait for
the answer. A question that finally failed has an answer too: one with the reason, which every metric fails with.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluation.connectors.protocol import SystemCall, SystemReply, failed
from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec
from evaluation.models import Answer, AnswerSet, Context, Reply, Run, RunEvent, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import Defer, NeedsPerson, Retry, decide
from evaluation.worker import units
from evaluation.worker.sessions import InHands, Session, Sorted
from evaluation.worker.unit_calls import UnitCalls, is_suspect
from evaluation.worker.units import HELD, State

#: What no question of the run can be answered before somebody has seen to; any other failure is the answer's.
FOR_A_PERSON = frozenset({Outcome.UNAUTHORISED, Outcome.NO_CREDIT, Outcome.BLOCKED, Outcome.TLS})
_OPEN = (State.BLOCKED, State.TODO, *HELD)


@dataclass(slots=True, kw_only=True)
class AskFlight(InHands):
    """A question that is out, and the last reply to it."""

    unit: WorkUnit
    call: SystemCall
    reply: SystemReply | None = None


@dataclass(kw_only=True)
class AskSession(UnitCalls, Session[AskFlight, SystemCall, SystemReply]):
    """One worker's turn at the questions of a run."""

    run: Run
    _version: str = field(default="", init=False)

    def __post_init__(self) -> None:
        Session.__post_init__(self)
        self._version = self.run.answer_set.system_version.content_hash

    def digest_of(self, flight: AskFlight) -> str:
        """The hash of system version, question and what is wanted."""
        call = flight.call
        return content_hash([self._version, call.question.id, call.k, call.evaluation_type, call.sample])

    def is_claimable(self) -> bool:
        """Whether a question could be taken."""
        return open_questions(self.run).filter(units.claimable()).exists()

    def take(self, size: int) -> Sequence[AskFlight] | None:
        """Claim questions; one that may have killed its worker is claimed when nothing else can be, and alone."""
        asks = [WorkUnit.Kind.ASK]
        claimed = units.claim(self.run.pk, asks, size, related=["question"], shuffled=self.down)
        if not claimed and not self._hands:
            claimed = units.claim(self.run.pk, asks, 1, suspects=True, related=["question"])
        if not claimed:
            return None
        attempts, now = units.first_attempts(claimed), time.monotonic()
        ready: list[AskFlight] = []
        for unit in claimed:
            if (mine := self._hands.get(unit.pk)) is not None:
                # Its lease lapsed while its question is out (a clock that jumped): that call counts.
                mine.unit, mine.claimed_at, mine.suspect = unit, now, is_suspect(unit)
                units.mark_unsent([attempts[unit.pk]])
                continue
            flight = AskFlight(
                key=unit.pk,
                attempt_id=attempts[unit.pk],
                call=call_for(self.run, unit),
                claimed_at=now,
                suspect=is_suspect(unit),
                unit=unit,
            )
            ready.append(flight)
        self.recall(ready)
        return ready

    def heard(self, done: Sequence[tuple[AskFlight, SystemReply]]) -> tuple[Sorted[AskFlight], Callable[[bool], None]]:
        """What follows each reply: an answer, another try, or a pause where a person is needed."""
        after = Sorted[AskFlight]()
        rows = [_reply_row(flight, reply) for flight, reply in done]
        for flight, reply in done:
            flight.reply = reply
            if reply.outcome is Outcome.OK:
                after.finished.append(flight)
                continue
            tries = len(flight.earlier) + 1
            decision = decide(
                reply.outcome,
                tries,
                reply.retry_after,
                self.rng,
                earlier=flight.earlier,
                for_a_person=FOR_A_PERSON,
                down=self.down,
            )
            flight.earlier = (*flight.earlier, reply.outcome)
            match decision:
                case NeedsPerson(reason):
                    after.needs_person = reason
                    after.stopped.append(flight)
                case Defer(seconds):
                    after.deferred.append((seconds, flight))
                case Retry(seconds):
                    after.again.append((seconds, flight))
                case _:
                    after.finished.append(flight)
        return after, lambda again: _insert(rows)

    def end(self, flights: Sequence[AskFlight]) -> None:
        """Write the answers."""
        write_answers(self.run, {f.unit: f.reply for f in flights if f.reply is not None})


def call_for(run: Run, unit: WorkUnit) -> SystemCall:
    """What is asked for a unit that came with its question."""
    answers = run.answer_set
    return SystemCall(unit.question.read(), answers.k, answers.evaluation_type, unit.sample)


def open_questions(run: Run) -> QuerySet[WorkUnit]:
    """The run's questions that are not answered yet."""
    return WorkUnit.objects.filter(run=run, kind=WorkUnit.Kind.ASK, state__in=_OPEN)


def write_answers(run: Run, replies: Mapping[WorkUnit, SystemReply]) -> int:
    """End each unit with its answer, and wake what waits for it; how many units were still held. In one transaction.

    Who lost his claim meanwhile writes nothing: whoever holds it now will.
    """
    with transaction.atomic():
        kept = units.end({unit: reply.reason for unit, reply in replies.items()})
        made = Answer.objects.bulk_create(_answer(run, unit, replies[unit]) for unit in kept)
        contexts = [
            context
            for answer, unit in zip(made, kept, strict=True)
            if (told := replies[unit].told) is not None
            for context in contexts_of(answer, told.answer)
        ]
        Context.objects.bulk_create(contexts, batch_size=500)
        _wake(run, kept, made)
    return len(kept)


def _wake(run: Run, asked: Sequence[WorkUnit], answers: Sequence[Answer]) -> None:
    """Give each answer to its question and to the units that score it; those that wait for the question alone can be
    taken now, also where there is no answer: they fail with its reason."""
    of_place = {(unit.question_id, unit.sample): answer for unit, answer in zip(asked, answers, strict=True)}
    of_questions = WorkUnit.objects.filter(run=run, question_id__in={unit.question_id for unit in asked})
    scoring = of_questions.exclude(kind=WorkUnit.Kind.ASK).only("question_id", "sample")
    waiting = [unit for unit in (*scoring, *asked) if (unit.question_id, unit.sample) in of_place]
    for unit in waiting:
        unit.answer = of_place[unit.question_id, unit.sample]
    WorkUnit.objects.bulk_update(waiting, ["answer"])
    WorkUnit.objects.filter(needs__in=asked, state=State.BLOCKED).update(state=State.TODO)


def fail_questions(run: Run, found: Sequence[WorkUnit], reason: str) -> int:
    """Give up questions that are in nobody's hands, such as those that killed their workers; how many."""
    return write_answers(run, {unit: failed(Outcome.NOT_SENT, reason) for unit in found})


def complete_answers(run: Run) -> None:
    """Once every question of the run has been asked: fill the answer set's content hash, of the newest answers, failed
    ones included. Asking failed ones again fills it anew."""
    asked = WorkUnit.objects.filter(run=run, kind=WorkUnit.Kind.ASK)
    if not asked.exists() or asked.exclude(state__in=[State.DONE, State.FAILED]).exists():
        return
    answers = Answer.objects.filter(answer_set=run.answer_set_id).select_related("question").order_by("round")
    newest = {(a.question_id, a.sample): a for a in answers.prefetch_related("contexts")}
    contents = sorted((_content(a) for a in newest.values()), key=lambda c: (str(c["question"]), str(c["sample"])))
    digest = content_hash([run.answer_set.question_set.content_hash, contents])
    if AnswerSet.objects.filter(pk=run.answer_set_id, content_hash=digest).exists():
        return
    lost = Counter(a.reason.partition(": ")[0] for a in newest.values() if a.status == "failed")
    said = ", ".join(f"{reason} {count}" for reason, count in sorted(lost.items()))
    with transaction.atomic():
        AnswerSet.objects.filter(pk=run.answer_set_id).update(content_hash=digest)
        missing = f"{lost.total()} of {len(newest)} without an answer: {said}" if lost else ""
        RunEvent.objects.create(run=run, verb="asked", reason=missing)


def _content(answer: Answer) -> dict[str, object]:
    spec = answer.read()
    contexts = None if spec.contexts is None else [[c.chunk_id, c.text, c.score, c.source] for c in spec.contexts]
    return {
        "question": answer.question.external_id,
        "sample": answer.sample,
        "text": spec.text if answer.status == "ok" else None,
        "contexts": contexts,
        "retrieved_ids": None if spec.retrieved_ids is None else list(spec.retrieved_ids),
        "latency_seconds": spec.latency_seconds,
        "confidence": answer.confidence,
        "error": answer.reason,
    }


def contexts_of(answer: Answer, spec: AnswerSpec) -> list[Context]:
    """The passages of an answer as rows."""
    return [
        Context(
            answer=answer,
            position=position,
            chunk_id=context.chunk_id,
            text=context.text,
            score=context.score,
            source=context.source,
            metadata=dict(context.metadata),
        )
        for position, context in enumerate(spec.contexts or ())
    ]


def _answer(run: Run, unit: WorkUnit, reply: SystemReply) -> Answer:
    told = reply.told
    spec = told.answer if told else AnswerSpec("")
    metadata = dict(told.metadata) if told else {}
    if told:
        usage = {"tokens_in": told.tokens_in, "tokens_out": told.tokens_out, "model": told.model or None}
        metadata |= {name: value for name, value in usage.items() if value is not None}
    return Answer(
        answer_set_id=run.answer_set_id,
        question_id=unit.question_id,
        sample=unit.sample,
        round=unit.round,
        status="ok" if told else "failed",
        reason="" if told else reply.reason,
        text=spec.text,
        text_hash=hashlib.sha256(spec.text.encode()).hexdigest(),
        latency_seconds=spec.latency_seconds,
        confidence=told.confidence if told else None,
        retrieves=spec.contexts is not None,
        retrieved_ids=None if spec.retrieved_ids is None else list(spec.retrieved_ids),
        metadata=metadata,
    )


def _reply_row(flight: AskFlight, reply: SystemReply) -> Reply:
    """A row of the ledger. What the system's own calls cost is unknown."""
    told = reply.told
    return Reply(
        attempt_id=flight.attempt_id,
        created_at=timezone.now(),
        outcome=str(reply.outcome),
        http_status=reply.http_status,
        model_returned=told.model[:200] if told else "",
        request_hash=flight.digest,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost=None,
        elapsed_seconds=reply.elapsed_seconds,
        raw="" if told else reply.raw,
    )


def _insert(rows: Sequence[Reply]) -> None:
    """Insert the replies that are not there yet, as after a commit of which one does not know whether it happened."""
    Reply.objects.bulk_create(rows, ignore_conflicts=True)
