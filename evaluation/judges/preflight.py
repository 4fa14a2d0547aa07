"""Preflight: probe a judge with a few calls before work starts, and pin the result for all of that work."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any, Protocol

from django.db.models.functions import Now

from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError
from evaluation.judges.clients import client_of, provider_of
from evaluation.judges.prices import total_cost
from evaluation.judging.calls import JudgeClient, quote_server_message
from evaluation.judging.probing import NO_LOGPROBS, NO_RESPONSE_FORMAT, Probe, ProbeResult, probe_judge
from evaluation.models import JudgeVersion
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import MAX_WORKER_WAIT_SECONDS, Defer, Retry, decide
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.endpoint_quota import SingleCalls
from evaluation.worker.steps import Steps, complete, delay

_MAX_RAW = 300
# Fields of a reply that are stored.
_STORED_FIELDS = ("http_status", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning")


class PreflightStore(Protocol):
    """Store of one judge's preflight; ``run_id`` is the run it is for, if any."""

    @property
    def run_id(self) -> int | None: ...

    def attempt_count(self) -> int:
        """Number of attempts since a person started the work."""

    def save_result(self, result: ProbeResult, wait_seconds: float | None) -> None:
        """Store the result; ``wait_seconds`` is the time until the next attempt."""

    def stop(self, reason: str) -> None:
        """Stop the work until a person intervenes."""


def pin_judge(
    judge: JudgeVersion,
    store: PreflightStore,
    deadline: float,
    rng: random.Random,
    heartbeat: Callable[[], None] = lambda: None,
) -> bool:
    """Pin a judge that has an endpoint. Returns false if the work was stopped or must wait.

    ``deadline`` is in monotonic seconds; ``heartbeat`` is called about once a second while waiting."""
    wake = Event()
    return complete(pin_steps(judge, store, deadline, rng, wake, heartbeat), wake)


def pin_steps(
    judge: JudgeVersion,
    store: PreflightStore,
    deadline: float,
    rng: random.Random,
    wake: Event,
    heartbeat: Callable[[], None] = lambda: None,
) -> Steps[bool]:
    """:func:`pin_judge` in steps, so that several judges are pinned at once."""
    if judge.endpoint is None:
        raise ValueError("a judge without an endpoint is not checked")
    with SingleCalls(judge.endpoint, store.run_id, heartbeat, project_id=judge.project_id) as calls:
        return (yield from _pin_until(judge, store, deadline, rng, calls, wake))


def _pin_until(
    judge: JudgeVersion, store: PreflightStore, deadline: float, rng: random.Random, calls: SingleCalls, wake: Event
) -> Steps[bool]:
    attempts = retry_on_db_error(store.attempt_count)
    while time.monotonic() < deadline:
        try:
            client = client_of(judge)
        except DomainError as refusal:
            retry_on_db_error(partial(store.stop, refusal.code))
            return False
        if (yield from calls.wait_steps(deadline)):
            return False
        result = yield from _probe_steps(client, judge, calls, wake)
        attempts += 1
        wait_seconds = _seconds_until_retry(result, attempts, rng)
        retry_on_db_error(partial(store.save_result, result, wait_seconds))
        if result.outcome == Outcome.OK:
            return True
        if wait_seconds is None:
            retry_on_db_error(partial(store.stop, result.reason))
            return False
        if wait_seconds > MAX_WORKER_WAIT_SECONDS or time.monotonic() + wait_seconds > deadline:
            return False
        yield from delay(wait_seconds)
    return False


def probe_endpoint(
    client: JudgeClient, judge: JudgeVersion, calls: SingleCalls, max_seconds: float | None = None
) -> ProbeResult:
    """Probe the judge. A pause that the server requests applies to all workers.

    :raises TimeoutError: if the calls together take longer than ``max_seconds``."""
    wake = Event()
    return complete(_probe_steps(client, judge, calls, wake, max_seconds), wake)


def _probe_steps(
    client: JudgeClient, judge: JudgeVersion, calls: SingleCalls, wake: Event, max_seconds: float | None = None
) -> Steps[ProbeResult]:
    provider = provider_of(judge)

    async def run_probe() -> ProbeResult:
        async with asyncio.timeout(max_seconds), client as open_client:
            return await probe_judge(
                open_client,
                judge.model,
                judge.params,
                require_logprobs=judge.expects,
                response_formats=provider.response_formats,
                logprobs=provider.logprobs,
            )

    result = yield from calls.run_steps(lambda: asyncio.run(run_probe()), wake)
    calls.record_outcome(result.last.outcome, result.last.retry_after)
    return result


def pinned_columns(
    judge: JudgeVersion, result: ProbeResult, wait_seconds: float | None, extra_hash_parts: Sequence[object] = ()
) -> dict[str, Any]:
    """Columns of a ``PreflightRow``. ``extra_hash_parts`` enter the hash of the pinned judge."""
    succeeded = result.outcome == Outcome.OK
    hash_parts = [judge.content_hash, str(result.response_format), result.last.model_returned, *extra_hash_parts]
    return {
        "judge_version": judge,
        "outcome": result.outcome,
        "response_format": str(result.response_format) if result.response_format else "",
        "judge_hash": content_hash(hash_parts) if succeeded else "",
        "model_returned": result.last.model_returned,
        "fingerprint": result.last.fingerprint,
        "usage": result.has_usage if succeeded else None,
        "logprobs": result.logprobs,
        "calls": len(result.probes),
        "cost": total_cost(judge, [probe.reply for probe in result.probes]),
        "retry_at": Now() + timedelta(seconds=wait_seconds) if wait_seconds else None,
        "detail": [_call_record(judge, probe) for probe in result.probes],
    }


def _seconds_until_retry(result: ProbeResult, attempts: int, rng: random.Random) -> float | None:
    """Seconds until the next attempt; ``None`` if there is none."""
    if result.outcome in {Outcome.OK, NO_RESPONSE_FORMAT, NO_LOGPROBS}:
        return None
    outcome = Outcome(result.outcome)
    decision = decide(outcome, attempts, result.last.retry_after, rng, earlier=[outcome] * (attempts - 1))
    return decision.seconds if isinstance(decision, Retry | Defer) else None


def _call_record(judge: JudgeVersion, probe: Probe) -> dict[str, object]:
    """Record of one call, with the reply's text if the call failed."""
    reply, cost = probe.reply, total_cost(judge, [probe.reply])
    record: dict[str, object] = {
        "response_format": probe.response_format,
        "logprobs_asked": probe.logprobs_requested,
        "outcome": probe.outcome,
        **{name: getattr(reply, name) for name in _STORED_FIELDS},
        "cost": None if cost is None else str(cost),
    }
    if probe.outcome is Outcome.OK:
        return record
    return {**record, "said": quote_server_message(reply), "raw": reply.raw[:_MAX_RAW]}
