"""Judges' replies as rows of the ledger, with their tokens and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from evaluation.judges.prices import price_table
from evaluation.judging.asking import Heard
from evaluation.judging.calls import JudgeReply, Outcome
from evaluation.judging.pricing import cost_of
from evaluation.models.work import ReplyRow
from evaluation.storage import bulk

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
    bulk.insert(into, _FIELDS, rows)
