"""Judge calls outside of runs (rewriting a rubric, writing questions). Each attempt is recorded before the call, and
its reply and cost after it. Steps with a stored reply are not called again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Count, Q, QuerySet, Sum
from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.judges.clients import client_of
from evaluation.judging.call_loop import CallLoop
from evaluation.judging.calls import JudgeCall, JudgeReply, ParsedReply, ResponseFormat
from evaluation.judging.prompt import parse_reply, request_hash
from evaluation.models import JudgeVersion
from evaluation.models.work import ReplyRow
from evaluation.network.outcomes import Outcome
from evaluation.scoring.adhoc import MAX_SLOT_WAIT_SECONDS
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.worker.endpoint_quota import ENDPOINT_BUSY, EndpointBusy, SharedPool

CONCURRENT_CALLS = 8
# Tries per step.
MAX_TRIES = 3


@dataclass(frozen=True, slots=True)
class CallLedger:
    """The tables that record calls. ``begin`` inserts the attempt of a step and returns its key; ``load_replies``
    returns step, outcome and text of stored replies, in order; ``reply_table`` is the table of replies."""

    begin: Callable[[str], int]
    load_replies: Callable[[], Iterable[tuple[str, str, str]]]
    reply_table: type[ReplyRow]


def estimated_cost(calls: QuerySet[Any]) -> Decimal:
    """The cost of recorded calls in US dollars; calls of unknown cost count as the mean of the others."""
    unknown_cost = Q(reply=None) | Q(reply__cost=None)
    totals = calls.aggregate(
        known=Sum("reply__cost"), mean=Avg("reply__cost"), unknown_count=Count("id", filter=unknown_cost)
    )
    return Decimal(totals["known"] or 0) + Decimal(totals["mean"] or 0) * int(totals["unknown_count"])


def run_calls(
    ledger: CallLedger,
    judge: JudgeVersion,
    calls: Mapping[str, JudgeCall],
    *,
    response_format: ResponseFormat,
    may_start: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[str, ParsedReply]]:
    """The parsed reply to each step's call, stored ones first. A step whose tries all failed yields its last failure.
    ``may_start`` is called before each call; once it is false, calls in flight are finished and others left out.

    :raises DomainError: ``judge_away`` if a person has to act first or the endpoint stays busy; replies so far are
    stored."""
    good_replies, failures = dict[str, str](), defaultdict[str, list[Outcome]](list)
    for step, outcome, raw in ledger.load_replies():
        if outcome == Outcome.OK:
            good_replies[step] = raw
        elif outcome != Outcome.NOT_SENT:
            failures[step].append(Outcome(outcome))
    pending = list[str]()
    for step, call in calls.items():
        if step in good_replies:
            yield step, parse_reply(JudgeReply(Outcome.OK, raw=good_replies[step]), call.judge_request, response_format)
        elif len(failures[step]) >= MAX_TRIES:
            yield step, ParsedReply(failures[step][-1], {})
        else:
            pending.append(step)
    if not pending:
        return

    def record(attempt: int, call: JudgeCall, reply: JudgeReply, parsed: ParsedReply) -> None:
        row = reply_row(attempt, request_hash(call), reply, parsed, model=call.model, received_at=timezone.now())
        insert_replies(ledger.reply_table, [row])

    shared_pool = SharedPool(
        client_of(judge),
        judge.endpoint,
        CONCURRENT_CALLS,
        project_id=judge.project_id,
        max_wait_seconds=MAX_SLOT_WAIT_SECONDS,
    )
    with shared_pool as pool:
        loop = CallLoop[str](
            calls=pool,
            max_in_flight=CONCURRENT_CALLS,
            max_tries=MAX_TRIES,
            begin=ledger.begin,
            record=record,
            may_continue=may_start,
        )
        for step in pending:
            loop.add(step, calls[step], failures[step])
        while loop.active:
            try:
                yield from loop.step()
            except EndpointBusy as busy:
                loop.discard(pool.withdraw())
                raise DomainError("judge_away", reason=ENDPOINT_BUSY) from busy
    if loop.blocked_reason:
        raise DomainError("judge_away", reason=loop.blocked_reason)
