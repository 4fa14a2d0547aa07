"""A turn at judges' calls: every reply is heard strictly, and stands in the ledger with what it cost."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.utils import timezone

from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.prompt import hear, request_hash
from evaluation.models.work import ReplyRow
from evaluation.scoring.replies import F, insert_replies, reply_row, sort_reply, trace
from evaluation.work.sessions import Session, Sorted
from evaluation.work.tracing import spans


@dataclass(kw_only=True)
class CallSession(Session[F, JudgeCall, JudgeReply], ABC):
    """A turn at conversations with judges that share a client."""

    replies: ClassVar[type[ReplyRow]]

    def digest_of(self, flight: F) -> str:
        """The hash of the request."""
        return request_hash(flight.call, repeat=flight.repeat)

    def heard(self, done: Sequence[tuple[F, JudgeReply]]) -> tuple[Sorted[F], Callable[[bool], None]]:
        """What follows each reply, read as it was asked for."""
        after, rows, at, told = Sorted[F](), [], timezone.now(), spans()
        for flight, reply in done:
            heard = hear(reply, flight.call.ask, flight.call.rung)
            rows.append(reply_row(flight.attempt_id, flight.digest, reply, heard, model=flight.call.model, at=at))
            if told is not None and reply.ended_at:  # the others, out of the ledger or of the baseline, were no calls
                trace(flight, reply, heard.outcome, told)
            sort_reply(after, flight, reply, heard, self.rng)
        return after, lambda again: insert_replies(self.replies, rows, again=again)
