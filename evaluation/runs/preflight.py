"""The preflight of a run: a few small calls per judge, what they told as a row, and then the run goes on or pauses."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta
from decimal import Decimal
from functools import partial

from django.db.models.functions import Now

from evaluation.canonical import content_hash
from evaluation.errors import Refused
from evaluation.judges.clients import client_of
from evaluation.judges.models import JudgeVersion
from evaluation.judges.prices import price_table
from evaluation.judging.calls import JudgeClient, Outcome, Rung
from evaluation.judging.pricing import cost_of
from evaluation.judging.probing import NO_LOGPROBS, NO_RUNG, Probe, Probed, probe
from evaluation.judging.retrying import LONGEST_WAIT_IN_WORKER, Defer, Retry, decide
from evaluation.runs.config import RunConfig
from evaluation.runs.lifecycle import begin, pause, unpinned
from evaluation.runs.models import Preflight, Run, RunEvent
from evaluation.work.patience import patiently
from evaluation.work.single_calls import SingleCalls

_RAW_SHOWN = 300


def preflight(run: Run, deadline: float, rng: random.Random | None = None) -> None:
    """Pin every judge of the run that is not pinned yet, then let the run begin; pause it with the reason where one
    cannot be. A run in another state is left alone, and so is a server that asked for more time.

    ``deadline`` is in monotonic seconds: when it is over the rest is left to the next worker.
    """
    if run.state != Run.State.PREFLIGHT or patiently(lambda: _asked_to_wait(run)):
        return
    for judge in patiently(lambda: unpinned(run)):
        if not _pinned(run, judge, deadline, rng or random.Random()):
            return
    patiently(lambda: begin(run))


def rung_of(run: Run, judge: JudgeVersion) -> Rung:
    """The way of asking that is pinned for the run. The baseline is not asked; a run made before there were preflights
    asks by strict schema, as it did then."""
    pinned = Preflight.objects.filter(run=run, judge_version=judge, outcome=Outcome.OK).values_list("rung", flat=True)
    return Rung(next(iter(pinned), Rung.JSON_SCHEMA))


def _pinned(run: Run, judge: JudgeVersion, deadline: float, rng: random.Random) -> bool:
    """Whether the judge is pinned now; where it is not, the run was paused or has to wait."""
    if judge.endpoint is None:
        raise ValueError("a judge without an endpoint is not checked")
    with SingleCalls(judge.endpoint, run.pk) as calls:
        return _tried(run, judge, deadline, rng, calls)


def _tried(run: Run, judge: JudgeVersion, deadline: float, rng: random.Random, calls: SingleCalls) -> bool:
    tries = patiently(partial(_failed_tries, run, judge))
    while time.monotonic() < deadline:
        try:
            client = client_of(judge)
        except Refused as refused:
            patiently(partial(pause, run, reason=refused.code))
            return False
        if calls.wait(deadline):
            return False
        found = calls.make(lambda: asyncio.run(_probed(client, judge)))  # noqa: B023 -- awaited within the round
        calls.heard(found.last.retry_after)
        tries += 1
        wait = _wait(found, tries, rng)
        patiently(partial(_keep, run, judge, found, wait))
        if found.outcome == Outcome.OK:
            return True
        if wait is None:
            patiently(partial(pause, run, reason=found.outcome))
            return False
        if wait > LONGEST_WAIT_IN_WORKER or time.monotonic() + wait > deadline:
            return False
        time.sleep(wait)
    return False


def _wait(found: Probed, tries: int, rng: random.Random) -> float | None:
    """Seconds until the judge may be tried again; ``None`` where nothing is to be tried again."""
    if found.outcome in {Outcome.OK, NO_RUNG, NO_LOGPROBS}:
        return None
    outcome = Outcome(found.outcome)
    decision = decide(outcome, tries, found.last.retry_after, rng, earlier=[outcome] * (tries - 1))
    return decision.seconds if isinstance(decision, Retry | Defer) else None


async def _probed(client: JudgeClient, judge: JudgeVersion) -> Probed:
    async with client as opened:
        return await probe(opened, judge.model, judge.params, expects=judge.expects)


def _asked_to_wait(run: Run) -> bool:
    return Preflight.objects.filter(run=run, retry_at__gt=Now()).exists()


def _failed_tries(run: Run, judge: JudgeVersion) -> int:
    """Tries since a person started or resumed the run."""
    by_hand = RunEvent.objects.filter(run=run, verb__in=["started", "resumed", "retried"]).order_by("-id").first()
    rows = Preflight.objects.filter(run=run, judge_version=judge)
    return (rows.filter(created_at__gte=by_hand.created_at) if by_hand else rows).count()


def _keep(run: Run, judge: JudgeVersion, found: Probed, wait: float | None) -> None:
    """Write down what was found. Where two workers pinned at once the first one's rung holds for both."""
    good = found.outcome == Outcome.OK
    pinned = [judge.content_hash, str(found.rung), found.last.model_returned, *_repeats(run)]
    row = Preflight(
        run=run,
        judge_version=judge,
        outcome=found.outcome,
        rung=str(found.rung) if found.rung else "",
        judge_hash=content_hash(pinned) if good else "",
        model_returned=found.last.model_returned,
        fingerprint=found.last.fingerprint,
        usage=found.tells_usage if good else None,
        logprobs=found.logprobs,
        calls=len(found.probes),
        cost=_cost(judge, found.probes),
        retry_at=Now() + timedelta(seconds=wait) if wait else None,
        detail=[_told(judge, one) for one in found.probes],
    )
    Preflight.objects.bulk_create([row], ignore_conflicts=good)


def _repeats(run: Run) -> list[int]:
    """Their number where there are several: a mean of repeats is another judge than a single verdict."""
    repeats = RunConfig.model_validate(run.config).repeat
    return [repeats] if repeats > 1 else []


def _cost(judge: JudgeVersion, probes: tuple[Probe, ...]) -> Decimal | None:
    costs = [_cost_of_call(judge, one) for one in probes]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


def _cost_of_call(judge: JudgeVersion, one: Probe) -> Decimal | None:
    return cost_of(judge.model, one.reply, table=price_table())


def _told(judge: JudgeVersion, one: Probe) -> dict[str, object]:
    """One call as it is kept; its text only where it was no verdict."""
    reply, cost = one.reply, _cost_of_call(judge, one)
    told: dict[str, object] = {
        "rung": one.rung,
        "logprobs_asked": one.asked_logprobs,
        "outcome": one.outcome,
        "http_status": reply.http_status,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "tokens_cached": reply.tokens_cached,
        "tokens_reasoning": reply.tokens_reasoning,
        "cost": None if cost is None else str(cost),
    }
    return told if one.outcome is Outcome.OK else {**told, "raw": reply.raw[:_RAW_SHOWN]}
