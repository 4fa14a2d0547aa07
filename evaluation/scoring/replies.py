"""A judge's reply as a row of the ledger, with its tokens and its cost."""

from __future__ import annotations

from evaluation.judges.models import JudgeVersion
from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome
from evaluation.judging.pricing import cost_of
from evaluation.judging.prompt import request_hash
from evaluation.work.models import Attempt, Reply


def reply_row(attempt: Attempt, call: JudgeCall, reply: JudgeReply, outcome: Outcome, judge: JudgeVersion) -> Reply:
    """An unsaved row. Tokens the server did not tell and costs that no price covers stay null: unknown is not 0."""
    return Reply(
        attempt=attempt,
        outcome=outcome,
        http_status=reply.http_status,
        model_returned=reply.model_returned,
        request_hash=request_hash(call, repeat=attempt.unit.repeat),
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        tokens_cached=reply.tokens_cached,
        tokens_reasoning=reply.tokens_reasoning,
        cost=cost_of(judge.model, reply),
        elapsed_seconds=reply.elapsed_seconds,
        raw=reply.raw,
    )
