"""Calls to a judge's model about something that is no answer of a run (a rubric to rewrite, questions to write): each
written down in a ledger of its own before it is made, and what it gave and cost after it. A reply that is there is not
asked for again."""

from __future__ import annotations

import heapq
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Count, Q, QuerySet, Sum
from django.utils import timezone

from evaluation.core.errors import Refused
from evaluation.judges.clients import client_of
from evaluation.judging.calls import Heard, JudgeCall, JudgeReply, Rung, reason_with_words
from evaluation.judging.prompt import hear, repaired, request_hash, with_first_failure
from evaluation.models import JudgeVersion
from evaluation.models.work import ReplyRow
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import REPAIRABLE, GiveUp, NeedsPerson, decide
from evaluation.scoring.aside import PATIENCE_SECONDS
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.worker.shares import ENDPOINT_BUSY, Busy, SharedPool

AT_ONCE = 8
MOST_CALLS = 3  # for one thing
_WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where calls are written down. ``begin`` inserts the attempt for a step and gives its key; ``kept`` are step,
    outcome and text of the replies that are there, in order; ``replies`` is their table."""

    begin: Callable[[str], int]
    kept: Callable[[], Iterable[tuple[str, str, str]]]
    replies: type[ReplyRow]


def spent_on(calls: QuerySet[Any]) -> Decimal:
    """US dollars of the calls of such a ledger, a call whose cost is unknown at the mean of the others."""
    unknown = Q(reply=None) | Q(reply__cost=None)
    told = calls.aggregate(known=Sum("reply__cost"), mean=Avg("reply__cost"), out=Count("id", filter=unknown))
    return Decimal(told["known"] or 0) + Decimal(told["mean"] or 0) * int(told["out"])


def hear_all(
    ledger: Ledger,
    judge: JudgeVersion,
    calls: Mapping[str, JudgeCall],
    *,
    rung: Rung,
    more: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[str, Heard]]:
    """What was heard to each step's call, those that are in the ledger first; one that came to nothing in the tries
    it has is heard as its last failure. ``more`` is asked before every call whether to make it; after it said no, the
    calls that are out are heard, and steps without a word are left out.

    :raises Refused: ``judge_away`` where somebody has to act first or the endpoint stays busy; what was heard before
        is kept.
    """
    asking = _Asking(ledger, judge, dict(calls), rung)
    yield from asking.heard_before()
    yield from asking.go_on(more)


@dataclass
class _Asking:
    ledger: Ledger
    judge: JudgeVersion
    calls: dict[str, JudgeCall]
    rung: Rung
    earlier: dict[str, list[Outcome]] = field(default_factory=lambda: defaultdict(list))
    due: list[tuple[float, str]] = field(default_factory=list)  # monotonic seconds, step
    out: dict[int, str] = field(default_factory=dict)  # attempt -> step
    away: str = ""  # why nothing more is asked
    rng: random.Random = field(default_factory=random.Random)

    def heard_before(self) -> Iterator[tuple[str, Heard]]:
        """The good replies of the ledger, and the failures of steps that had all their tries; the rest is due."""
        good = dict[str, str]()
        for step, outcome, raw in self.ledger.kept():
            if outcome == Outcome.OK:
                good[step] = raw
            elif outcome != Outcome.NOT_SENT:
                self.earlier[step].append(Outcome(outcome))
        for step, call in self.calls.items():
            if step in good:
                yield step, hear(JudgeReply(Outcome.OK, raw=good[step]), call.ask, self.rung)
            elif len(self.earlier[step]) >= MOST_CALLS:
                yield step, Heard(self.earlier[step][-1], {})
            else:
                self.due.append((0.0, step))

    def go_on(self, more: Callable[[], bool]) -> Iterator[tuple[str, Heard]]:
        """Ask what is due."""
        if not self.due:
            return
        with SharedPool(
            client_of(self.judge),
            self.judge.endpoint,
            AT_ONCE,
            project_id=self.judge.project_id,
            patience=PATIENCE_SECONDS,
        ) as pool:
            while self.due or self.out:
                self._send(pool, more)
                if not pool.in_hands:
                    continue
                try:
                    done = pool.collect(_WAIT_SECONDS)
                except Busy as busy:
                    for unsent in pool.withdraw():
                        self._keep(int(str(unsent)), JudgeReply(Outcome.NOT_SENT), Heard(Outcome.NOT_SENT, {}))
                    raise Refused("judge_away", reason=ENDPOINT_BUSY) from busy
                for attempt, reply in done:
                    step = self.out[int(str(attempt))]
                    if (heard := self._hear(int(str(attempt)), reply)) is not None:
                        yield step, heard
        if self.away:
            raise Refused("judge_away", reason=self.away)

    def _send(self, pool: SharedPool, more: Callable[[], bool]) -> None:
        now, ready = time.monotonic(), list[tuple[int, JudgeCall]]()
        while self.due and self.due[0][0] <= now and len(self.out) < AT_ONCE:
            if self.away or not more():
                self.due.clear()
                break
            _, step = heapq.heappop(self.due)
            attempt = self.ledger.begin(step)
            self.out[attempt] = step
            ready.append((attempt, self.calls[step]))
        pool.submit(ready)
        if not pool.in_hands and self.due:
            time.sleep(min(_WAIT_SECONDS, max(0.0, self.due[0][0] - now)))

    def _hear(self, attempt: int, reply: JudgeReply) -> Heard | None:
        """What is heard of a step, once it comes to its end."""
        step = self.out[attempt]
        call = self.calls[step]
        heard = hear(reply, call.ask, self.rung)
        self._keep(attempt, reply, heard)
        del self.out[attempt]
        tries = self.earlier[step]
        decision = decide(heard.outcome, len(tries) + 1, reply.retry_after, self.rng, earlier=tries)
        before = tuple(tries)
        tries.append(heard.outcome)
        if heard.outcome is Outcome.OK:
            return heard
        if isinstance(decision, NeedsPerson):
            self.away = reason_with_words(decision.reason, reply)
            return None
        if isinstance(decision, GiveUp) or len(tries) >= MOST_CALLS:
            return with_first_failure(heard, before)
        if heard.outcome in REPAIRABLE:
            self.calls[step] = repaired(call, heard.outcome)
        heapq.heappush(self.due, (time.monotonic() + decision.seconds, step))
        return None

    def _keep(self, attempt: int, reply: JudgeReply, heard: Heard) -> None:
        call = self.calls[self.out[attempt]]
        row = reply_row(attempt, request_hash(call), reply, heard, model=call.model, at=timezone.now())
        insert_replies(self.ledger.replies, [row])
