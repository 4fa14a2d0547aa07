"""Judges' replies: as rows of the ledger, with their tokens and their cost, and what follows them.

Replies that were paid for already: an identical call is answered from the ledger, in the same run or a later one.

Identical means equal in all that decides a reply: content with rubric, model, parameters, way of asking and the number
of the repeat (``request_hash``), at the same endpoint, in the same project. A failure is never kept: only replies of
units whose every metric came out count, so that a retry asks anew.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from evaluation.judges.prices import price_table
from evaluation.judging.calls import Chances, Heard, JudgeCall, JudgeReply, cost_of, reason_with_words
from evaluation.judging.prompt import repaired, with_first_failure
from evaluation.models import JudgeVersion, Reply, WorkUnit
from evaluation.models.work import ReplyRow
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import REPAIRABLE, Defer, GiveUp, NeedsPerson, Retry, decide
from evaluation.storage.statements import insert_values
from evaluation.worker.sessions import InHands, Sorted
from evaluation.worker.tracing import Spans

_FIELDS = (
    *("attempt_id", "created_at", "outcome", "http_status", "model_returned", "request_hash", "tokens_in"),
    *("tokens_out", "tokens_cached", "tokens_reasoning", "cost", "saved", "elapsed_seconds", "raw", "chances"),
)
Row = tuple[Any, ...]


def reply_row(attempt_id: int, digest: str, reply: JudgeReply, heard: Heard, *, model: str, at: datetime) -> Row:
    """A row to be inserted, with what was heard in the reply; ``digest`` is the request's. Tokens the server did not
    tell and costs that no price covers stay null: unknown is not 0. A reply that the ledger had already is marked so.
    """
    outcome = Outcome.CACHED if reply.cached else heard.outcome
    return (
        *(attempt_id, at, str(outcome), reply.http_status, reply.model_returned),
        *(digest, reply.tokens_in, reply.tokens_out, reply.tokens_cached),
        *(reply.tokens_reasoning, cost_of(model, reply, table=price_table()), reply.saved, reply.elapsed_seconds),
        *(reply.raw, heard.chances or None),
    )


def insert_replies(into: type[ReplyRow], rows: Sequence[Row], *, again: bool = False) -> None:
    """Insert the rows into their ledger's table; with ``again``, after a commit of which one does not know whether it
    happened, those alone whose attempts have no reply yet."""
    if again:
        kept: Any = into._default_manager  # the column is the subclass's
        there = set(kept.filter(attempt_id__in=[row[0] for row in rows]).values_list("attempt_id", flat=True))
        rows = [row for row in rows if row[0] not in there]
    insert_values(into, _FIELDS, rows)


@dataclass(frozen=True, slots=True)
class KeptReplies:
    """The good replies of one endpoint in one project."""

    project_id: int
    endpoint_id: int

    def find(self, digests: Collection[str]) -> dict[str, JudgeReply]:
        """The newest good reply to each of the requests that has one, marked as cached and free. One query."""
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
        found = rows.values_list("request_hash", "raw", "model_returned", "chances", "cost")
        return {digest: kept_reply(raw, model, chances, cost) for digest, raw, model, chances, cost in found}


def kept_for(judge: JudgeVersion, *, use_cache: bool) -> KeptReplies | None:
    """The kept replies of a judge; ``None`` where none are wanted, and for the baseline, whose calls cost nothing."""
    if not use_cache or judge.endpoint_id is None:
        return None
    return KeptReplies(judge.project_id, judge.endpoint_id)


def kept_reply(raw: str, model: str, chances: Chances | None, cost: Decimal | None) -> JudgeReply:
    """A reply out of a ledger, marked as cached and free; ``cost`` is what it had cost."""
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


class Talking(Protocol):
    """Calls in their order: ``call`` is the one to make, ``None`` at the end."""

    call: JudgeCall | None

    def hear(self, heard: Heard) -> None: ...


@dataclass(slots=True, kw_only=True)
class Flight(InHands):
    """A conversation with a judge, and the call of it that is out."""

    talk: Talking
    call: JudgeCall
    repeat: int = 1

    @property
    def about(self) -> dict[str, int]:
        """The ids by which spans tell what the conversation is about."""
        return {}


F = TypeVar("F", bound=Flight)


def trace(flight: Flight, reply: JudgeReply, outcome: Outcome, into: Spans) -> None:
    """Tell of the call that came back."""
    about: dict[str, str | int | None] = {
        **flight.about,
        "concord.attempt": flight.number,
        "gen_ai.request.model": flight.call.model,
        "gen_ai.response.model": reply.model_returned or None,
        "gen_ai.usage.input_tokens": reply.tokens_in,
        "gen_ai.usage.output_tokens": reply.tokens_out,
        "http.response.status_code": reply.http_status,
    }
    into.call(about, str(outcome), reply.ended_at, reply.elapsed_seconds)


def sort_reply(into: Sorted[F], flight: F, reply: JudgeReply, heard: Heard, rng: random.Random, *, down: bool) -> None:
    """Decide what follows a reply, in which ``heard`` was heard; ``down`` where nobody is answered at present."""
    outcome, tries = heard.outcome, len(flight.earlier) + 1
    decision = decide(outcome, tries, reply.retry_after, rng, earlier=flight.earlier, down=down)
    if outcome is Outcome.OK or isinstance(decision, GiveUp):
        flight.talk.hear(with_first_failure(heard, flight.earlier))
        if flight.talk.call is None:
            into.finished.append(flight)
        else:
            flight.call, flight.earlier = flight.talk.call, ()
            into.go_on.append(flight)
        return
    flight.earlier = (*flight.earlier, outcome)
    match decision:
        case NeedsPerson(reason):
            into.needs_person = reason_with_words(reason, reply)
            into.stopped.append(flight)
        case Defer(seconds):
            into.deferred.append((seconds, flight))
        case Retry(seconds):
            if outcome in REPAIRABLE:
                flight.call = repaired(flight.call, outcome)
            into.again.append((seconds, flight))
