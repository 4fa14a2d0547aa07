"""A turn at judges' calls: every reply is heard strictly, and stands in the ledger with what it cost."""

from __future__ import annotations

from abc import ABC
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.utils import timezone

from evaluation.judging.calls import JudgeCall, JudgeReply, reason_with_words
from evaluation.judging.prompt import hear, request_hash
from evaluation.models.work import ReplyRow
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import PASSING, REPAIRABLE
from evaluation.scoring.replies import F, insert_replies, reply_row, sort_reply, trace
from evaluation.worker.sessions import Session, Sorted
from evaluation.worker.tracing import spans

UNREADABLE = "unreadable"  # why work stops
LATELY = 50  # replies, of which more than half have to be of use
_NOT_READ = REPAIRABLE | {Outcome.UNKNOWN_ENDING, Outcome.WRONG_CONTENT}


@dataclass(kw_only=True)
class CallSession(Session[F, JudgeCall, JudgeReply], ABC):
    """A turn at conversations with judges that share a client."""

    replies: ClassVar[type[ReplyRow]]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lately: deque[bool] = deque(maxlen=LATELY)  # whether a reply could not be read

    def count(self, outcomes: Iterable[Outcome]) -> bool:
        """Count how replies were read, in their order; whether most of the last ones could not be."""
        self._lately.extend(one in _NOT_READ for one in outcomes if one not in PASSING)
        return len(self._lately) == LATELY and 2 * sum(self._lately) > LATELY

    def digest_of(self, flight: F) -> str:
        """The hash of the request."""
        return request_hash(flight.call, repeat=flight.repeat)

    def heard(self, done: Sequence[tuple[F, JudgeReply]]) -> tuple[Sorted[F], Callable[[bool], None]]:
        """What follows each reply, read as it was asked for."""
        after, rows, at, told = Sorted[F](), [], timezone.now(), spans()
        outcomes: list[Outcome] = []
        unread: JudgeReply | None = None
        for flight, reply in done:
            heard = hear(reply, flight.call.ask, flight.call.rung)
            outcomes += [] if reply.cached else [heard.outcome]
            unread = reply if heard.outcome in _NOT_READ else unread
            rows.append(reply_row(flight.attempt_id, flight.digest, reply, heard, model=flight.call.model, at=at))
            if told is not None and reply.ended_at:  # the others, out of the ledger or of the baseline, were no calls
                trace(flight, reply, heard.outcome, told)
            sort_reply(after, flight, reply, heard, self.rng, down=self.down)
        if self.count(outcomes):
            unreadable = reason_with_words(UNREADABLE, unread) if unread else UNREADABLE
            after.needs_person = after.needs_person or unreadable
        return after, lambda again: insert_replies(self.replies, rows, again=again)
