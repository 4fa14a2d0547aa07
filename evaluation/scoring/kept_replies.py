"""Replies that were paid for already: an identical call is answered from the ledger, in the same run or a later one.

Identical means equal in all that decides a reply: content with rubric, model, parameters, way of asking and the number
of the repeat (``request_hash``), at the same endpoint, in the same project. A failure is never kept: only replies of
units whose every metric came out count, so that a retry asks anew.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from evaluation.judging.calls import Chances, JudgeReply, Outcome
from evaluation.models import JudgeVersion, Reply, WorkUnit


@dataclass(frozen=True, slots=True)
class KeptReplies:
    """The good replies of one endpoint in one project."""

    project_id: int
    endpoint_id: int

    def find(self, digests: Collection[str]) -> dict[str, JudgeReply]:
        """The newest good reply to each of the requests that has one, marked as cached and free. One query."""
        rows = Reply.objects.filter(
            request_hash__in=digests,
            outcome=Outcome.OK,
            attempt__unit__state=WorkUnit.State.DONE,
            attempt__unit__run__project_id=self.project_id,
            attempt__unit__run_judge__judge_version__endpoint_id=self.endpoint_id,
        ).order_by("id")
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
