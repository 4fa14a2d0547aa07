"""The collection step of a run: claimed units become questions to the system, and replies become answers.

A reply is stored in one transaction with its answer and the end of its unit, and releases the units that wait for the
answer. A question that finally fails gets an answer with the reason, which fails every metric."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluation.connectors.protocol import SystemCall, SystemReply, failed_reply
from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec
from evaluation.models import Answer, AnswerSet, Context, Reply, Run, RunEvent, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import Defer, NeedsAction, Retry, decide
from evaluation.worker import units
from evaluation.worker.sessions import InFlight, Triage, WorkerSession
from evaluation.worker.unit_calls import UnitCalls, is_suspect
from evaluation.worker.units import HELD_STATES, State

#: Outcomes that a person has to resolve before the run can continue. Any other failure is the answer's.
NEEDS_PERSON_OUTCOMES = frozenset({Outcome.UNAUTHORISED, Outcome.NO_CREDIT, Outcome.BLOCKED, Outcome.TLS})
_OPEN_STATES = (State.BLOCKED, State.TODO, *HELD_STATES)


@dataclass(slots=True, kw_only=True)
class QuestionInFlight(InFlight):
    """A question in flight, and its last reply."""

    unit: WorkUnit
    call: SystemCall
    reply: SystemReply | None = None


@dataclass(kw_only=True)
class CollectionSession(UnitCalls, WorkerSession[QuestionInFlight, SystemCall, SystemReply]):
    """A worker's loop over the questions of a run."""

    run: Run
    _version: str = field(default="", init=False)

    def __post_init__(self) -> None:
        WorkerSession.__post_init__(self)
        self._version = self.run.answer_set.system_version.content_hash

    def digest_of(self, flight: QuestionInFlight) -> str:
        """The hash of system version, question and options."""
        call = flight.call
        return content_hash([self._version, call.question.id, call.k, call.evaluation_type, call.sample])

    def is_claimable(self) -> bool:
        return open_questions(self.run).filter(units.claimable()).exists()

    def take(self, size: int) -> Sequence[QuestionInFlight] | None:
        """Claim questions. One that may have crashed its worker is claimed alone, and only if no other is claimable."""
        kinds = [WorkUnit.Kind.ASK]
        claimed = units.claim(self.run.pk, kinds, size, related=["question"], shuffled=self.is_down)
        if not claimed and not self._flights:
            claimed = units.claim(self.run.pk, kinds, 1, suspects=True, related=["question"])
        if not claimed:
            return None
        now = time.monotonic()
        for unit in claimed:
            if (in_flight := self._flights.get(unit.pk)) is not None:
                # The lease expired during the call, for example because the clock jumped. That call counts.
                in_flight.unit, in_flight.claimed_at, in_flight.suspect = unit, now, is_suspect(unit)
        new_units = [unit for unit in claimed if unit.pk not in self._flights]
        attempts = units.record_first_attempts(new_units)
        new_flights = [
            QuestionInFlight(
                key=unit.pk,
                attempt_id=attempts[unit.pk],
                call=system_call(self.run, unit),
                claimed_at=now,
                suspect=is_suspect(unit),
                unit=unit,
            )
            for unit in new_units
        ]
        self.load_earlier_outcomes(new_flights)
        return new_flights

    def triage(
        self, done: Sequence[tuple[QuestionInFlight, SystemReply]]
    ) -> tuple[Triage[QuestionInFlight], Callable[[bool], None]]:
        """Decide the next step of each reply: an answer, a retry, or a pause for a person."""
        triage = Triage[QuestionInFlight]()
        rows = [_reply_row(flight, reply) for flight, reply in done]
        for flight, reply in done:
            flight.reply = reply
            if reply.outcome is Outcome.OK:
                triage.finished.append(flight)
                continue
            tries = len(flight.earlier) + 1
            decision = decide(
                reply.outcome,
                tries,
                reply.retry_after,
                self.rng,
                earlier=flight.earlier,
                needs_action=NEEDS_PERSON_OUTCOMES,
                endpoint_down=self.is_down,
            )
            flight.earlier = (*flight.earlier, reply.outcome)
            match decision:
                case NeedsAction(reason):
                    triage.needs_person = reason
                    triage.stopped.append(flight)
                case Defer(seconds):
                    triage.deferred.append((seconds, flight))
                case Retry(seconds):
                    triage.retry_later.append((seconds, flight))
                case _:
                    triage.finished.append(flight)
        return triage, lambda is_retry: _insert_replies(rows)

    def end(self, flights: Sequence[QuestionInFlight]) -> None:
        write_answers(self.run, {f.unit: f.reply for f in flights if f.reply is not None})


def system_call(run: Run, unit: WorkUnit) -> SystemCall:
    """The call for a unit that comes with its question."""
    answers = run.answer_set
    return SystemCall(unit.question.read(), answers.k, answers.evaluation_type, unit.sample)


def open_questions(run: Run) -> QuerySet[WorkUnit]:
    """The run's unanswered questions."""
    return WorkUnit.objects.filter(run=run, kind=WorkUnit.Kind.ASK, state__in=_OPEN_STATES)


def write_answers(run: Run, replies: Mapping[WorkUnit, SystemReply]) -> int:
    """End each unit with its answer, and release the units that wait for it, in one transaction; the number of units
    still held. Units whose claim was lost are not changed."""
    with transaction.atomic():
        ended = units.end({unit: reply.reason for unit, reply in replies.items()})
        answers = Answer.objects.bulk_create(_answer(run, unit, replies[unit]) for unit in ended)
        contexts = [
            context
            for answer, unit in zip(answers, ended, strict=True)
            if (trace := replies[unit].content) is not None
            for context in contexts_of(answer, trace.answer)
        ]
        Context.objects.bulk_create(contexts, batch_size=500)
        _release_waiting_units(run, ended, answers)
    return len(ended)


def _release_waiting_units(run: Run, collected: Sequence[WorkUnit], answers: Sequence[Answer]) -> None:
    """Link each answer to its question's unit and to the units that score it. Units that wait only for the question
    become claimable, even after a failure: they fail with its reason."""
    answer_by_key = {(unit.question_id, unit.sample): answer for unit, answer in zip(collected, answers, strict=True)}
    of_questions = WorkUnit.objects.filter(run=run, question_id__in={unit.question_id for unit in collected})
    scoring = of_questions.exclude(kind=WorkUnit.Kind.ASK).only("question_id", "sample")
    waiting = [unit for unit in (*scoring, *collected) if (unit.question_id, unit.sample) in answer_by_key]
    for unit in waiting:
        unit.answer = answer_by_key[unit.question_id, unit.sample]
    WorkUnit.objects.bulk_update(waiting, ["answer"])
    WorkUnit.objects.filter(needs__in=collected, state=State.BLOCKED).update(state=State.TODO)


def give_up_questions(run: Run, failed_units: Sequence[WorkUnit], reason: str) -> int:
    """Fail questions that no worker holds, such as those that crashed their workers; their number."""
    return write_answers(run, {unit: failed_reply(Outcome.NOT_SENT, reason) for unit in failed_units})


def finish_collection(run: Run) -> None:
    """Set the content hash of the answer set once all questions are answered or failed. A retry of failed questions
    updates it."""
    collecting = WorkUnit.objects.filter(run=run, kind=WorkUnit.Kind.ASK)
    if not collecting.exists() or collecting.exclude(state__in=[State.DONE, State.FAILED]).exists():
        return
    answers = Answer.objects.filter(answer_set=run.answer_set_id).select_related("question").order_by("round")
    newest = {(a.question_id, a.sample): a for a in answers.prefetch_related("contexts")}
    contents = sorted((_content(a) for a in newest.values()), key=lambda c: (str(c["question"]), str(c["sample"])))
    digest = content_hash([run.answer_set.question_set.content_hash, contents])
    if AnswerSet.objects.filter(pk=run.answer_set_id, content_hash=digest).exists():
        return
    lost_reasons = Counter(a.reason.partition(": ")[0] for a in newest.values() if a.status == "failed")
    breakdown = ", ".join(f"{reason} {count}" for reason, count in sorted(lost_reasons.items()))
    with transaction.atomic():
        AnswerSet.objects.filter(pk=run.answer_set_id).update(content_hash=digest)
        missing = f"{lost_reasons.total()} of {len(newest)} without an answer: {breakdown}" if lost_reasons else ""
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
    """The passages of an answer as unsaved rows."""
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
    trace = reply.content
    spec = trace.answer if trace else AnswerSpec("")
    metadata = dict(trace.metadata) if trace else {}
    if trace:
        usage = {"tokens_in": trace.tokens_in, "tokens_out": trace.tokens_out, "model": trace.model or None}
        metadata |= {name: value for name, value in usage.items() if value is not None}
    return Answer(
        answer_set_id=run.answer_set_id,
        question_id=unit.question_id,
        sample=unit.sample,
        round=unit.round,
        status="ok" if trace else "failed",
        reason="" if trace else reply.reason,
        text=spec.text,
        text_hash=hashlib.sha256(spec.text.encode()).hexdigest(),
        latency_seconds=spec.latency_seconds,
        confidence=trace.confidence if trace else None,
        retrieves=spec.contexts is not None,
        retrieved_ids=None if spec.retrieved_ids is None else list(spec.retrieved_ids),
        metadata=metadata,
    )


def _reply_row(flight: QuestionInFlight, reply: SystemReply) -> Reply:
    """A row for a system's reply. The cost of the system's own calls is unknown."""
    trace = reply.content
    return Reply(
        attempt_id=flight.attempt_id,
        created_at=timezone.now(),
        outcome=str(reply.outcome),
        http_status=reply.http_status,
        model_returned=trace.model[:200] if trace else "",
        request_hash=flight.digest,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost=None,
        elapsed_seconds=reply.elapsed_seconds,
        raw="" if trace else reply.raw,
    )


def _insert_replies(rows: Sequence[Reply]) -> None:
    """Insert replies that do not exist yet, as after a commit of unknown outcome."""
    Reply.objects.bulk_create(rows, ignore_conflicts=True)
