"""Quotas of an endpoint or system: workers on all hosts share its slots, rates and cooldowns. Also single calls within
a quota (embeddings, preflights), and pools of calls that are not recorded (checks of judges, trials of criteria).

During an outage, the worker that notices it sets a cooldown for all. After the cooldown one slot is open, and its call
decides: all slots return, or the cooldown grows to the length of the outage, between a second and five minutes.

Each worker has a row that it renews about once a second. It takes its fair share of slots and rates, but never more
than the others leave. A worker above its new quota gives the surplus back at its next renewal; the new worker waits
until then. The limits therefore hold at every moment. Workers not seen for a while count as gone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import Event
from typing import Any, Self, TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from evaluation.judging.calls import JudgeCall, JudgeClient, JudgeReply
from evaluation.models import Endpoint, System
from evaluation.models.work import EndpointQuotaLease
from evaluation.network.outcomes import Outcome
from evaluation.network.pacing import INITIAL_PAUSE_SECONDS, Allowance, OutageDetector, OutageNotice, Rate
from evaluation.network.pool import CallPool
from evaluation.network.retrying import MAX_WORKER_WAIT_SECONDS
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.steps import Steps, complete, delay, run_in_thread

RENEW_SECONDS = 1.0
# Between renewals, while a worker has less than its fair share.
RETRY_RENEW_SECONDS = 0.25
LEASE_SECONDS = 15.0
MIN_REST, MAX_REST = timedelta(seconds=INITIAL_PAUSE_SECONDS), timedelta(seconds=300)


@dataclass(frozen=True, slots=True)
class Quota:
    """The quota of a worker. ``rest_seconds`` is the cooldown of the endpoint. ``complete`` is true if the worker gets
    no more while the same workers take part. ``down_seconds`` is the duration of the outage with its last ``fault``;
    ``None`` without one."""

    allowance: Allowance
    rest_seconds: float = 0.0
    complete: bool = True
    down_seconds: float | None = None
    fault: str = ""


class QuotaLease:
    """A worker's lease of slots and rates of an endpoint or system, for a run or other work of a project. Begins with
    the first renewal and ends with ``leave``."""

    def __init__(
        self, resource: Endpoint | System, run_id: int | None, requested: int, *, project_id: int | None = None
    ) -> None:
        self._resource_rows: QuerySet[Any] = type(resource)._default_manager.filter(pk=resource.pk)
        self._resource_filter = {"system" if isinstance(resource, System) else "endpoint": resource}
        self._run_id, self._project_id, self._requested = run_id, project_id, requested
        self._worker = uuid.uuid4()

    def renew(self, out: int = 0, limit: int = 0) -> Quota:
        """Take the fair share anew. The slots of ``out`` calls in flight cannot be handed over yet."""
        with transaction.atomic():
            resource = self._resource_rows.select_for_update().annotate(now=Now()).get()
            lease_rows = EndpointQuotaLease.objects.filter(**self._resource_filter)
            lease_rows.exclude(_recently_seen()).exclude(worker=self._worker).delete()
            rows = list(lease_rows.order_by("id"))
            own_row = next((row for row in rows if row.worker == self._worker), None)
            other_rows = [row for row in rows if row.worker != self._worker]
            requests = [*(row.requested for row in rows), *([] if own_row else [self._requested])]
            own_index = rows.index(own_row) if own_row else len(rows)
            max_slots = 1 if resource.down_since else resource.max_concurrency
            fair_slots = fair_shares(max_slots, requests)[own_index]
            slots = min(fair_slots, max(0, max_slots - sum(row.slots for row in other_rows)))
            fair_fraction = 1.0 / len(requests)
            fraction = max(0.0, min(fair_fraction, 1.0 - sum(row.fraction for row in other_rows)))
            EndpointQuotaLease.objects.update_or_create(
                worker=self._worker,
                defaults={
                    **self._resource_filter,
                    "run_id": self._run_id,
                    "project_id": self._project_id,
                    "requested": self._requested,
                    "slots": max(slots, min(out, own_row.slots if own_row else 0)),
                    "fraction": fraction,
                    "in_flight": out,
                    "limit": min(limit, slots) if limit else slots,
                    "seen_at": Now(),
                },
            )
            now = resource.now
        rest_seconds = (resource.cooldown_until - now).total_seconds() if resource.cooldown_until else 0.0
        tokens = resource.tokens_per_minute if isinstance(resource, Endpoint) else None
        allowance = Allowance(
            slots, _scaled_rate(resource.requests_per_minute, fraction), _scaled_rate(tokens, fraction)
        )
        complete = slots == fair_slots and fraction > fair_fraction * 0.99
        down = (now - resource.down_since).total_seconds() if resource.down_since else None
        return Quota(allowance, max(0.0, rest_seconds), complete, down, resource.fault)

    def rest(self, seconds: float) -> None:
        """Set a cooldown for all workers; a longer one stays."""
        until = Now() + timedelta(seconds=seconds)
        shorter = Q(cooldown_until__isnull=True) | Q(cooldown_until__lt=until)
        self._resource_rows.filter(shorter).update(cooldown_until=until)

    def report_outage(self, notice: OutageNotice) -> None:
        """Report to all workers whether the endpoint answers. Calls sent before the last cooldown are ignored."""
        with transaction.atomic():
            resource = self._resource_rows.select_for_update().annotate(now=Now()).get()
            # Subtracts the time spent waiting for the row.
            sent_at = resource.now - timedelta(seconds=time.monotonic() - notice.sent_at)
            if resource.cooldown_until and resource.cooldown_until > sent_at:
                return
            if notice.fault is None:
                self._resource_rows.exclude(down_since=None).update(down_since=None, fault="")
                return
            since = resource.down_since or resource.now
            rest = min(max(resource.now - since, MIN_REST), MAX_REST)
            self._resource_rows.update(down_since=since, fault=notice.fault, cooldown_until=resource.now + rest)

    def leave(self) -> None:
        """Give up the whole quota."""
        EndpointQuotaLease.objects.filter(worker=self._worker).delete()


def active_quota_leases() -> QuerySet[EndpointQuotaLease]:
    """The leases of workers seen recently."""
    return EndpointQuotaLease.objects.filter(_recently_seen())


def _recently_seen() -> Q:
    """Seen recently, and not in the future, as rows of dead workers are after the clock was set back."""
    slack = timedelta(seconds=LEASE_SECONDS)
    return Q(seen_at__gt=Now() - slack, seen_at__lt=Now() + slack)


def _scaled_rate(rate: int | None, fraction: float) -> float | None:
    return None if rate is None else rate * fraction


def fair_shares(total: int, requests: Sequence[int]) -> list[int]:
    """Divide ``total`` slots: nobody gets more than requested, unused slots go to the others, and the shares of
    unsatisfied requests differ by at most one, the earlier getting more."""
    shares = [0] * len(requests)
    remaining = min(total, sum(requests))
    while remaining > 0:
        unsatisfied = [i for i, request in enumerate(requests) if shares[i] < request]
        slots_each = max(1, remaining // len(unsatisfied))
        for i in unsatisfied:
            extra = min(slots_each, requests[i] - shares[i], remaining)
            shares[i] += extra
            remaining -= extra
    return shares


T = TypeVar("T")


class SingleCalls:
    """One slot of an endpoint, claimed for each call. Use as a context manager. ``on_wait`` is called about once a
    second while waiting, for callers with leases to extend."""

    def __init__(
        self,
        endpoint: Endpoint,
        run_id: int | None,
        on_wait: Callable[[], None] = lambda: None,
        *,
        project_id: int | None = None,
    ) -> None:
        self._quota_lease = QuotaLease(endpoint, run_id, 1, project_id=project_id)
        self._on_wait = on_wait
        now = time.monotonic()
        self._requests, self._tokens = Rate(None, now), Rate(None, now)
        self._pulse, self._sent_at = OutageDetector(), now

    def wait(self, deadline: float, tokens: float = 0.0) -> float:
        """Wait until a call of about ``tokens`` tokens may be made, and count it; returns 0. If that takes too long for
        a worker or passes ``deadline`` (monotonic seconds), returns the seconds after which to try again."""
        return complete(self.wait_steps(deadline, tokens))

    def wait_steps(self, deadline: float, tokens: float = 0.0) -> Steps[float]:
        """:meth:`wait` in steps."""
        while True:
            quota = self._renew(0)
            now = time.monotonic()
            rates = max(self._requests.wait_seconds(1, now), self._tokens.wait_seconds(tokens, now))
            seconds = max(quota.rest_seconds, rates)
            if quota.allowance.calls and seconds <= 0:
                self._requests.consume(1)
                self._tokens.consume(tokens)
                return 0.0
            seconds = max(seconds, RETRY_RENEW_SECONDS)
            if seconds > MAX_WORKER_WAIT_SECONDS or now + seconds > deadline:
                return seconds
            yield from delay(min(seconds, RENEW_SECONDS))
            self._on_wait()

    @property
    def is_down(self) -> bool:
        """Return whether an outage lasts."""
        return self._pulse.is_down

    def run(self, call: Callable[[], T]) -> T:
        """The result of the call. It runs in its own thread, so that the slot is renewed meanwhile."""
        wake = Event()
        return complete(self.run_steps(call, wake), wake)

    def run_steps(self, call: Callable[[], T], wake: Event) -> Steps[T]:
        """:meth:`run` in steps."""
        self._sent_at = time.monotonic()

        def renew() -> None:
            self._renew(1)
            self._on_wait()

        return (yield from run_in_thread(call, wake, RENEW_SECONDS, renew))

    def record_outcome(self, outcome: Outcome, retry_after: float | None) -> None:
        """Report to all workers whether the endpoint answers, and set the cooldown it asked for."""
        self._pulse.record_outcome(outcome, self._sent_at)
        if notice := self._pulse.take_notice():
            retry_on_db_error(lambda: self._quota_lease.report_outage(notice))
            self._pulse.is_down = notice.fault is not None
        if retry_after:
            retry_on_db_error(lambda: self._quota_lease.rest(retry_after))

    def _renew(self, out: int) -> Quota:
        quota = retry_on_db_error(lambda: self._quota_lease.renew(out, 1))
        self._pulse.is_down = quota.down_seconds is not None
        now = time.monotonic()
        self._requests.set_rate(quota.allowance.requests_per_minute, now)
        self._tokens.set_rate(quota.allowance.tokens_per_minute, now)
        return quota

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: Any) -> None:
        retry_on_db_error(self._quota_lease.leave)


ENDPOINT_BUSY = "endpoint_busy"


class EndpointBusy(Exception):
    """No call can be sent for a long time: the endpoint is cooling down, or others use all of its slots or rates."""


class SharedPool:
    """A pool of at most ``max_calls`` calls of a client. Without an endpoint (the offline baseline) nothing is shared.
    ``max_wait_seconds`` is the longest time until a call can be sent. Use as a context manager."""

    def __init__(
        self,
        client: JudgeClient,
        endpoint: Endpoint | None,
        max_calls: int,
        *,
        project_id: int,
        max_wait_seconds: float = MAX_WORKER_WAIT_SECONDS,
    ) -> None:
        self._quota_lease = QuotaLease(endpoint, None, max_calls, project_id=project_id) if endpoint else None
        self._quota = Quota(Allowance(0 if endpoint else max_calls))
        self._pool = CallPool(client, self._quota.allowance)
        self._max_wait_seconds = max_wait_seconds
        self._renew_at = float("-inf")
        # The last time a call was in flight.
        self._sent_at = time.monotonic()
        # Until this time (monotonic seconds) the others know of the cooldown.
        self._shared_rest_until = float("-inf")

    @property
    def outstanding(self) -> int:
        """Submitted calls that are neither collected nor withdrawn."""
        return self._pool.outstanding

    def submit(self, calls: Iterable[tuple[Hashable, JudgeCall]]) -> None:
        """Queue calls in order."""
        if not self._pool.queued:
            self._sent_at = time.monotonic()
        self._pool.submit(calls)

    def withdraw(self) -> list[Hashable]:
        """Withdraw all unsent calls; their keys."""
        return self._pool.withdraw()

    def collect(self, timeout: float) -> list[tuple[Hashable, JudgeReply]]:
        """The finished calls, after waiting up to ``timeout`` seconds.

        :raises EndpointBusy: if queued calls cannot be sent within ``max_wait_seconds``."""
        self._renew_quota()
        done = self._pool.collect(min(timeout, RENEW_SECONDS if self._quota.complete else RETRY_RENEW_SECONDS))
        self._report_outage()
        now = time.monotonic()
        if self._pool.in_flight or done or not self._pool.queued:
            self._sent_at = now
        elif self._pool.pause_seconds > self._max_wait_seconds or now - self._sent_at > self._max_wait_seconds:
            raise EndpointBusy
        return done

    def collect_sent_calls(self) -> list[JudgeReply]:
        """Send nothing more, and wait for the calls in flight, because they are paid for."""
        self._pool.withdraw()
        replies: list[JudgeReply] = []
        while self._pool.outstanding:
            replies += [reply for _, reply in self.collect(RENEW_SECONDS)]
        return replies

    def _renew_quota(self) -> None:
        now = time.monotonic()
        if self._quota_lease is None or now < self._renew_at:
            return
        quota_lease = self._quota_lease
        self._quota = retry_on_db_error(
            lambda: quota_lease.renew(self._pool.max_in_flight, self._pool.pace.limit.current)
        )
        self._pool.pace.outage.is_down = self._quota.down_seconds is not None
        self._pool.set_allowance(self._quota.allowance, self._quota.rest_seconds)
        self._shared_rest_until = max(self._shared_rest_until, now + self._quota.rest_seconds)
        self._renew_at = now + (RENEW_SECONDS if self._quota.complete else RETRY_RENEW_SECONDS)

    def _report_outage(self) -> None:
        """Report to all workers whether the endpoint answers, and set the cooldown it asked for."""
        quota_lease = self._quota_lease
        if quota_lease is not None and (notice := self._pool.pace.outage.take_notice()):
            retry_on_db_error(lambda: quota_lease.report_outage(notice))
            self._renew_at = float("-inf")
            return
        rest_seconds, now = self._pool.pause_seconds, time.monotonic()
        if (
            quota_lease is not None
            and rest_seconds
            and now + rest_seconds > self._shared_rest_until + RETRY_RENEW_SECONDS
        ):
            retry_on_db_error(lambda: quota_lease.rest(rest_seconds))
            self._shared_rest_until = now + rest_seconds

    def __enter__(self) -> Self:
        self._pool.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        try:
            self._pool.__exit__(*details)
        finally:
            if self._quota_lease is not None:
                retry_on_db_error(self._quota_lease.leave)
