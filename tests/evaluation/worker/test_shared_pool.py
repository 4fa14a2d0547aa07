"""Calls outside runs stay within the shared limits of an endpoint: slots, rates and pauses."""

from __future__ import annotations

import pytest
from django.utils import timezone

from evaluation.judging.calls import JudgeReply
from evaluation.models import Endpoint
from evaluation.models.work import EndpointQuotaLease
from evaluation.network.outcomes import Outcome
from evaluation.worker.endpoint_quota import EndpointBusy, QuotaLease, SharedPool
from tests.evaluation.judging.samples import call
from tests.evaluation.network.test_pool import SlowJudge
from tests.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def endpoint_with(**limits: int) -> Endpoint:
    return Endpoint.objects.create(name="e", base_url="https://e.example/v1", **limits)


def make_pool(judge: SlowJudge, endpoint: Endpoint | None, at_once: int = 4, patience: float = 0.6) -> SharedPool:
    return SharedPool(judge, endpoint, at_once, project_id=make_project().pk, max_wait_seconds=patience)


def collect_keys(pool: SharedPool) -> list[object]:
    keys: list[object] = []
    while pool.outstanding:
        keys += [key for key, _ in pool.collect(1.0)]
    return keys


@pytest.mark.parametrize("limits", [{"requests_per_minute": 1}, {"tokens_per_minute": 1}])
def test_rates_of_the_endpoint_are_obeyed(limits: dict[str, int]) -> None:
    judge = SlowJudge()
    with make_pool(judge, endpoint_with(**limits)) as pool:
        pool.submit((n, call()) for n in range(3))
        with pytest.raises(EndpointBusy):
            collect_keys(pool)
        assert judge.calls == 1  # the rate's first; the next is due in a minute
        assert len(pool.withdraw()) == 2
        assert pool.outstanding == 0
    assert not EndpointQuotaLease.objects.exists()


def test_pool_uses_slots_that_other_workers_leave_free() -> None:
    endpoint, judge = endpoint_with(max_concurrency=4), SlowJudge(0.05)
    other_lease = QuotaLease(endpoint, None, 8)
    other_lease.renew(out=4)
    with make_pool(judge, endpoint) as pool:
        pool.submit((n, call()) for n in range(4))
        with pytest.raises(EndpointBusy):
            collect_keys(pool)
        assert judge.calls == 0
        other_lease.leave()
        assert sorted(map(str, collect_keys(pool))) == ["0", "1", "2", "3"]
    assert judge.peak <= 4


def test_retry_after_pauses_all_workers_and_calls_in_flight_finish() -> None:
    rate_limited = JudgeReply(Outcome.RATE_LIMITED, retry_after=300.0)
    endpoint, judge = endpoint_with(max_concurrency=2), SlowJudge(0.05, {1: rate_limited})
    with make_pool(judge, endpoint) as pool:
        pool.submit((n, call()) for n in range(4))
        with pytest.raises(EndpointBusy):
            collect_keys(pool)
        pool.submit([(9, call())])
        assert pool.collect_sent_calls() == []
    endpoint.refresh_from_db()
    assert endpoint.cooldown_until is not None
    assert 290 < (endpoint.cooldown_until - timezone.now()).total_seconds() <= 301
    assert judge.calls == 2  # those that were out at once


def test_pool_without_an_endpoint_has_no_shared_limits() -> None:
    judge = SlowJudge(0.02)
    with make_pool(judge, None, at_once=2) as pool:
        pool.submit((n, call()) for n in range(6))
        assert len(collect_keys(pool)) == 6
    assert judge.peak == 2
