"""Preflight: a few calls before any work tell how a judge can be asked, and pin it for the whole of that work."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from django.db.models.functions import Now

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.judges.clients import client_of, provider_of
from evaluation.judges.prices import cost_of_all
from evaluation.judging.calls import JudgeClient, reply_words
from evaluation.judging.probing import NO_LOGPROBS, NO_RUNG, Probe, Probed, probe
from evaluation.models import JudgeVersion
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import LONGEST_WAIT_IN_WORKER, Defer, Retry, decide
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.shares import SingleCalls

_RAW_SHOWN = 300
_KEPT = ("http_status", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning")  # of a reply


class Pins(Protocol):
    """Where one judge's preflight is written down; ``run_id`` is the run it is for, if it is for one."""

    @property
    def run_id(self) -> int | None: ...

    def tries(self) -> int:
        """How many tries there were since a person began the work."""

    def keep(self, found: Probed, wait: float | None) -> None:
        """Write down what was found; ``wait`` is in seconds until the judge may be tried again."""

    def stop(self, reason: str) -> None:
        """Stop the work until a person has seen to it."""


def pin(
    judge: JudgeVersion,
    pins: Pins,
    deadline: float,
    rng: random.Random,
    alive: Callable[[], None] = lambda: None,
) -> bool:
    """Whether the judge, which has an endpoint, is pinned now; where it is not, the work was stopped or has to wait.
    ``deadline`` is in monotonic seconds; ``alive`` is called about once a second while one waits."""
    if judge.endpoint is None:
        raise ValueError("a judge without an endpoint is not checked")
    with SingleCalls(judge.endpoint, pins.run_id, alive, project_id=judge.project_id) as calls:
        return _tried(judge, pins, deadline, rng, calls)


def _tried(judge: JudgeVersion, pins: Pins, deadline: float, rng: random.Random, calls: SingleCalls) -> bool:
    tries = retry_on_db_error(pins.tries)
    while time.monotonic() < deadline:
        try:
            client = client_of(judge)
        except Refused as refused:
            retry_on_db_error(partial(pins.stop, refused.code))
            return False
        if calls.wait(deadline):
            return False
        found = probed(client, judge, calls)
        tries += 1
        wait = _wait(found, tries, rng)
        retry_on_db_error(partial(pins.keep, found, wait))
        if found.outcome == Outcome.OK:
            return True
        if wait is None:
            retry_on_db_error(partial(pins.stop, found.reason))
            return False
        if wait > LONGEST_WAIT_IN_WORKER or time.monotonic() + wait > deadline:
            return False
        time.sleep(wait)
    return False


def probed(client: JudgeClient, judge: JudgeVersion, calls: SingleCalls) -> Probed:
    """The few calls that tell how the judge can be asked, with a rest that it asks for kept by everybody."""
    provider = provider_of(judge)

    async def asked() -> Probed:
        async with client as opened:
            return await probe(
                opened,
                judge.model,
                judge.params,
                expects=judge.expects,
                rungs=provider.rungs,
                logprobs=provider.logprobs,
            )

    found = calls.make(lambda: asyncio.run(asked()))
    calls.heard(found.last.outcome, found.last.retry_after)
    return found


def pinned_columns(
    judge: JudgeVersion, found: Probed, wait: float | None, beside: Sequence[object] = ()
) -> dict[str, Any]:
    """The columns of a ``PreflightRow``; ``beside`` goes into the hash of the judge as pinned with what was found."""
    good = found.outcome == Outcome.OK
    pinned = [judge.content_hash, str(found.rung), found.last.model_returned, *beside]
    return {
        "judge_version": judge,
        "outcome": found.outcome,
        "rung": str(found.rung) if found.rung else "",
        "judge_hash": content_hash(pinned) if good else "",
        "model_returned": found.last.model_returned,
        "fingerprint": found.last.fingerprint,
        "usage": found.tells_usage if good else None,
        "logprobs": found.logprobs,
        "calls": len(found.probes),
        "cost": cost_of_all(judge, [one.reply for one in found.probes]),
        "retry_at": Now() + timedelta(seconds=wait) if wait else None,
        "detail": [_told(judge, one) for one in found.probes],
    }


def _wait(found: Probed, tries: int, rng: random.Random) -> float | None:
    """Seconds until the judge may be tried again; ``None`` where nothing is to be tried again."""
    if found.outcome in {Outcome.OK, NO_RUNG, NO_LOGPROBS}:
        return None
    outcome = Outcome(found.outcome)
    decision = decide(outcome, tries, found.last.retry_after, rng, earlier=[outcome] * (tries - 1))
    return decision.seconds if isinstance(decision, Retry | Defer) else None


def _told(judge: JudgeVersion, one: Probe) -> dict[str, object]:
    """One call as it is kept; its text only where it was no verdict."""
    reply, cost = one.reply, cost_of_all(judge, [one.reply])
    told: dict[str, object] = {
        "rung": one.rung,
        "logprobs_asked": one.asked_logprobs,
        "outcome": one.outcome,
        **{name: getattr(reply, name) for name in _KEPT},
        "cost": None if cost is None else str(cost),
    }
    if one.outcome is Outcome.OK:
        return told
    return {**told, "said": reply_words(reply), "raw": reply.raw[:_RAW_SHOWN]}
