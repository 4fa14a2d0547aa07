"""Judge replies: rows with tokens and cost, the next step after each, and reuse of paid replies.

An identical call is answered by a stored reply of the same project and endpoint. Identical means equal content, rubric,
model, parameters, response format and repeat number (``request_hash``). Only replies of units whose metrics all came
out are reused, so that a retry calls again."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from evaluation.judges.prices import price_table
from evaluation.judging.calls import Chances, JudgeCall, JudgeReply, ParsedReply, call_cost, reason_with_message
from evaluation.judging.prompt import repair_call, with_first_failure
from evaluation.models import JudgeVersion, Reply, WorkUnit
from evaluation.models.work import ReplyRow
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import REPAIRABLE, Defer, GiveUp, NeedsAction, Retry, decide
from evaluation.storage.statements import insert_values
from evaluation.worker.sessions import InFlight, Triage
from evaluation.worker.tracing import Spans

_FIELDS = (
    *("attempt_id", "created_at", "outcome", "http_status", "model_returned", "request_hash", "tokens_in"),
    *("tokens_out", "tokens_cached", "tokens_reasoning", "cost", "saved", "elapsed_seconds", "raw", "chances"),
)
Row = tuple[Any, ...]


def reply_row(
    attempt_id: int, digest: str, reply: JudgeReply, parsed: ParsedReply, *, model: str, received_at: datetime
) -> Row:
    """A row for a parsed reply; ``digest`` is the hash of the request. Unreported tokens and unpriced costs stay null,
    since unknown is not 0. Reused replies are marked as cached."""
    outcome = Outcome.CACHED if reply.cached else parsed.outcome
    return (
        *(attempt_id, received_at, str(outcome), reply.http_status, reply.model_returned),
        *(digest, reply.tokens_in, reply.tokens_out, reply.tokens_cached),
        *(reply.tokens_reasoning, call_cost(model, reply, table=price_table()), reply.saved, reply.elapsed_seconds),
        *(reply.raw, parsed.chances or None),
    )


def insert_replies(model: type[ReplyRow], rows: Sequence[Row], *, is_retry: bool = False) -> None:
    """Insert rows into the reply table. With ``is_retry``, after a commit of unknown outcome, insert only those whose
    attempts have no reply yet."""
    if is_retry:
        # The column is defined by the subclass.
        manager: Any = model._default_manager
        existing = set(manager.filter(attempt_id__in=[row[0] for row in rows]).values_list("attempt_id", flat=True))
        rows = [row for row in rows if row[0] not in existing]
    insert_values(model, _FIELDS, rows)


@dataclass(frozen=True, slots=True)
class CachedReplies:
    """The reusable replies of one endpoint in one project."""

    project_id: int
    endpoint_id: int

    def find(self, digests: Collection[str]) -> dict[str, JudgeReply]:
        """The newest good reply to each request, marked as cached and free. One query."""
        rows = (
            Reply.objects.filter(
                request_hash__in=digests,
                outcome=Outcome.OK,
                attempt__unit__state=WorkUnit.State.DONE,
                attempt__unit__run__project_id=self.project_id,
                attempt__unit__run_judge__judge_version__endpoint_id=self.endpoint_id,
            )
            .exclude(raw="")
            .order_by("id")
        )
        columns = rows.values_list("request_hash", "raw", "model_returned", "chances", "cost")
        return {digest: cached_reply(raw, model, chances, cost) for digest, raw, model, chances, cost in columns}


def cached_replies(judge: JudgeVersion, *, use_cache: bool) -> CachedReplies | None:
    """The reusable replies of a judge; ``None`` without ``use_cache``, and for the free baseline."""
    if not use_cache or judge.endpoint_id is None:
        return None
    return CachedReplies(judge.project_id, judge.endpoint_id)


def cached_reply(raw: str, model: str, chances: Chances | None, cost: Decimal | None) -> JudgeReply:
    """A stored reply, marked as cached and free; ``cost`` is its original cost."""
    return JudgeReply(
        Outcome.OK,
        raw=raw,
        model_returned=model,
        tokens_in=0,
        tokens_out=0,
        tokens_cached=0,
        tokens_reasoning=0,
        free=True,
        cached=True,
        chances=chances,
        saved=cost,
    )


class JudgeConversation(Protocol):
    """A sequence of calls: ``call`` is the next one, ``None`` at the end."""

    call: JudgeCall | None

    def receive(self, parsed: ParsedReply) -> None: ...


@dataclass(slots=True, kw_only=True)
class JudgeConversationCall(InFlight):
    """A conversation with a judge and its call in flight."""

    conversation: JudgeConversation
    call: JudgeCall
    repeat: int = 1

    @property
    def trace_ids(self) -> dict[str, int]:
        """Ids for the tracing spans of the call."""
        return {}


F = TypeVar("F", bound=JudgeConversationCall)


def trace_call(flight: JudgeConversationCall, reply: JudgeReply, outcome: Outcome, tracer: Spans) -> None:
    """Record a span for the returned call."""
    attributes: dict[str, str | int | None] = {
        **flight.trace_ids,
        "concord.attempt": flight.number,
        "gen_ai.request.model": flight.call.model,
        "gen_ai.response.model": reply.model_returned or None,
        "gen_ai.usage.input_tokens": reply.tokens_in,
        "gen_ai.usage.output_tokens": reply.tokens_out,
        "http.response.status_code": reply.http_status,
    }
    tracer.call(attributes, str(outcome), reply.ended_at, reply.elapsed_seconds)


def triage_reply(
    triage: Triage[F], flight: F, reply: JudgeReply, parsed: ParsedReply, rng: random.Random, *, down: bool
) -> None:
    """Decide the next step after a parsed reply; ``down`` is true while the endpoint does not answer."""
    outcome, tries = parsed.outcome, len(flight.earlier) + 1
    decision = decide(outcome, tries, reply.retry_after, rng, earlier=flight.earlier, endpoint_down=down)
    if outcome is Outcome.OK or isinstance(decision, GiveUp):
        flight.conversation.receive(with_first_failure(parsed, flight.earlier))
        if flight.conversation.call is None:
            triage.finished.append(flight)
        else:
            flight.call, flight.earlier = flight.conversation.call, ()
            triage.continue_now.append(flight)
        return
    flight.earlier = (*flight.earlier, outcome)
    match decision:
        case NeedsAction(reason):
            triage.needs_person = reason_with_message(reason, reply)
            triage.stopped.append(flight)
        case Defer(seconds):
            triage.deferred.append((seconds, flight))
        case Retry(seconds):
            if outcome in REPAIRABLE:
                flight.call = repair_call(flight.call, outcome)
            triage.retry_later.append((seconds, flight))
