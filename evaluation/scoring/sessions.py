"""A worker's loop of judge calls: strict parsing, and a stored reply with its cost for each call."""

from __future__ import annotations

from abc import ABC
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.utils import timezone

from evaluation.judging.calls import JudgeCall, JudgeReply, reason_with_message
from evaluation.judging.prompt import parse_reply, request_hash
from evaluation.models.work import ReplyRow
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import REPAIRABLE, TRANSIENT
from evaluation.scoring.replies import F, insert_replies, reply_row, trace_call, triage_reply
from evaluation.worker.sessions import Triage, WorkerSession
from evaluation.worker.tracing import spans

# The reason for stopping.
UNREADABLE = "unreadable"
# The last replies, more than half of which must be readable.
RECENT_REPLIES = 50
_UNREADABLE_OUTCOMES = REPAIRABLE | {Outcome.UNKNOWN_ENDING, Outcome.WRONG_CONTENT}


@dataclass(kw_only=True)
class CallSession(WorkerSession[F, JudgeCall, JudgeReply], ABC):
    """A worker's loop of judge conversations that share a client."""

    replies: ClassVar[type[ReplyRow]]

    def __post_init__(self) -> None:
        super().__post_init__()
        # True for unreadable replies.
        self._recent_unreadable: deque[bool] = deque(maxlen=RECENT_REPLIES)

    def count(self, outcomes: Iterable[Outcome]) -> bool:
        """Count the outcomes of replies, in order; true if most of the last ones were unreadable."""
        self._recent_unreadable.extend(
            outcome in _UNREADABLE_OUTCOMES for outcome in outcomes if outcome not in TRANSIENT
        )
        return len(self._recent_unreadable) == RECENT_REPLIES and 2 * sum(self._recent_unreadable) > RECENT_REPLIES

    def digest_of(self, flight: F) -> str:
        return request_hash(flight.call, repeat=flight.repeat)

    def triage(self, done: Sequence[tuple[F, JudgeReply]]) -> tuple[Triage[F], Callable[[bool], None]]:
        """Parse the replies and decide the next step of each."""
        triage, rows, received_at, tracer = Triage[F](), [], timezone.now(), spans()
        outcomes: list[Outcome] = []
        unreadable_reply: JudgeReply | None = None
        for flight, reply in done:
            parsed = parse_reply(reply, flight.call.judge_request, flight.call.response_format)
            outcomes += [] if reply.cached else [parsed.outcome]
            unreadable_reply = reply if parsed.outcome in _UNREADABLE_OUTCOMES else unreadable_reply
            rows.append(
                reply_row(
                    flight.attempt_id, flight.digest, reply, parsed, model=flight.call.model, received_at=received_at
                )
            )
            # Cached replies and the baseline made no call.
            if tracer is not None and reply.ended_at:
                trace_call(flight, reply, parsed.outcome, tracer)
            triage_reply(triage, flight, reply, parsed, self.rng, down=self.is_down)
        if self.count(outcomes):
            unreadable = reason_with_message(UNREADABLE, unreadable_reply) if unreadable_reply else UNREADABLE
            triage.needs_person = triage.needs_person or unreadable
        return triage, lambda is_retry: insert_replies(self.replies, rows, is_retry=is_retry)
