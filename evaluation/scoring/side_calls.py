"""Calls to a judge's model about something that is no answer of a run (a rubric to rewrite, questions to write): each
written down in a ledger of its own before it is made, and what it gave and cost after it. A reply that is there is not
asked for again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Count, Q, QuerySet, Sum
from django.utils import timezone

from evaluation.core.errors import Refused
from evaluation.judges.clients import client_of
from evaluation.judging.call_loop import CallLoop
from evaluation.judging.calls import Heard, JudgeCall, JudgeReply, Rung
from evaluation.judging.prompt import hear, request_hash
from evaluation.models import JudgeVersion
from evaluation.models.work import ReplyRow
from evaluation.network.outcomes import Outcome
from evaluation.scoring.aside import PATIENCE_SECONDS
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.worker.shares import ENDPOINT_BUSY, Busy, SharedPool

AT_ONCE = 8
MOST_CALLS = 3  # for one thing


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
    good, failures = dict[str, str](), defaultdict[str, list[Outcome]](list)
    for step, outcome, raw in ledger.kept():
        if outcome == Outcome.OK:
            good[step] = raw
        elif outcome != Outcome.NOT_SENT:
            failures[step].append(Outcome(outcome))
    due = list[str]()
    for step, call in calls.items():
        if step in good:
            yield step, hear(JudgeReply(Outcome.OK, raw=good[step]), call.ask, rung)
        elif len(failures[step]) >= MOST_CALLS:
            yield step, Heard(failures[step][-1], {})
        else:
            due.append(step)
    if not due:
        return

    def record(attempt: int, call: JudgeCall, reply: JudgeReply, heard: Heard) -> None:
        row = reply_row(attempt, request_hash(call), reply, heard, model=call.model, at=timezone.now())
        insert_replies(ledger.replies, [row])

    shared = SharedPool(
        client_of(judge), judge.endpoint, AT_ONCE, project_id=judge.project_id, patience=PATIENCE_SECONDS
    )
    with shared as pool:
        loop = CallLoop[str](
            calls=pool, at_once=AT_ONCE, most_tries=MOST_CALLS, begin=ledger.begin, record=record, more=more
        )
        for step in due:
            loop.add(step, calls[step], failures[step])
        while loop.goes_on:
            try:
                yield from loop.turn()
            except Busy as busy:
                loop.drop(pool.withdraw())
                raise Refused("judge_away", reason=ENDPOINT_BUSY) from busy
    if loop.away:
        raise Refused("judge_away", reason=loop.away)
