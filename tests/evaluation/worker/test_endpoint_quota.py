"""Workers share an endpoint: fair quotas, never more than the total, and one pause for all."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import Sum
from django.db.models.functions import Now
from hypothesis import given
from hypothesis import strategies as st

from evaluation.models import Endpoint, Run
from evaluation.models.work import EndpointQuotaLease
from evaluation.worker.endpoint_quota import LEASE_SECONDS, Quota, QuotaLease, fair_shares
from tests.factories import make_draft_run

pytestmark = pytest.mark.both_databases


@pytest.mark.parametrize(
    ("total", "requested", "expected"),
    [
        (32, [32], [32]),
        (32, [32, 32], [16, 16]),
        (32, [32, 4], [28, 4]),
        (10, [9, 9, 9], [4, 3, 3]),
        (2, [5, 5, 5], [1, 1, 0]),
        (32, [8, 8], [8, 8]),
        (7, [1, 9, 3], [1, 3, 3]),
    ],
)
def test_fair_shares_by_hand(total: int, requested: list[int], expected: list[int]) -> None:
    assert fair_shares(total, requested) == expected


@given(st.integers(1, 100), st.lists(st.integers(1, 100), min_size=1, max_size=12))
def test_fair_shares_use_the_total_evenly(total: int, requested: list[int]) -> None:
    shares = fair_shares(total, requested)
    assert sum(shares) == min(total, sum(requested))
    assert all(0 <= share <= request for share, request in zip(shares, requested, strict=True))
    limited_shares = [share for share, request in zip(shares, requested, strict=True) if share < request]
    assert not limited_shares or max(shares) - min(limited_shares) <= 1


@pytest.fixture
def run(db: None) -> Run:
    return make_draft_run()


@pytest.fixture
def endpoint(db: None) -> Endpoint:
    fields = {"max_concurrency": 10, "requests_per_minute": 600, "tokens_per_minute": 60_000}
    return Endpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1", **fields)


def quota_limits(quota: Quota) -> tuple[int, float | None, float | None]:
    allowance = quota.allowance
    return allowance.calls, allowance.requests_per_minute, allowance.tokens_per_minute


def test_single_worker_gets_all_it_requests(run: Run, endpoint: Endpoint) -> None:
    assert quota_limits(QuotaLease(endpoint, run.pk, 32).renew()) == (10, 600, 60_000)
    EndpointQuotaLease.objects.all().delete()
    assert quota_limits(QuotaLease(endpoint, run.pk, 4).renew()) == (4, 600, 60_000)


def test_new_worker_waits_until_slots_are_released(run: Run, endpoint: Endpoint) -> None:
    first_lease, second_lease = QuotaLease(endpoint, run.pk, 32), QuotaLease(endpoint, run.pk, 32)
    first_lease.renew()
    initial_quota = second_lease.renew()
    assert quota_limits(initial_quota) == (0, 0, 0)
    assert not initial_quota.complete
    # The first has eight calls out: it may send no further one above five, but their places stay its own.
    assert quota_limits(first_lease.renew(out=8)) == (5, 300, 30_000)
    assert quota_limits(second_lease.renew()) == (2, 300, 30_000)
    first_lease.renew(out=5)
    assert quota_limits(second_lease.renew()) == (5, 300, 30_000)
    assert second_lease.renew().complete


def test_leaving_worker_releases_its_slots(run: Run, endpoint: Endpoint) -> None:
    first_lease, second_lease = QuotaLease(endpoint, run.pk, 32), QuotaLease(endpoint, run.pk, 32)
    first_lease.renew()
    second_lease.renew()
    first_lease.leave()
    assert quota_limits(second_lease.renew()) == (10, 600, 60_000)


def test_expired_share_is_released(run: Run, endpoint: Endpoint) -> None:
    first_lease, second_lease = QuotaLease(endpoint, run.pk, 32), QuotaLease(endpoint, run.pk, 32)
    first_lease.renew()
    EndpointQuotaLease.objects.update(seen_at=Now() - timedelta(seconds=LEASE_SECONDS + 1))
    assert quota_limits(second_lease.renew()) == (10, 600, 60_000)
    assert EndpointQuotaLease.objects.count() == 1


def test_shares_never_exceed_the_total_in_any_order(run: Run, endpoint: Endpoint) -> None:
    workers = [QuotaLease(endpoint, run.pk, 7) for _ in range(5)]
    for step in (0, 1, 0, 2, 1, 3, 4, 0, 2, 4, 1, 3, 0, 1, 2, 3, 4):
        workers[step].renew(out=3)
        totals = EndpointQuotaLease.objects.aggregate(slots=Sum("slots"), fraction=Sum("fraction"))
        assert totals["slots"] <= 10
        assert totals["fraction"] <= 1.0 + 1e-9
    for worker in (*workers, *workers):
        worker.renew()
    assert list(EndpointQuotaLease.objects.values_list("slots", flat=True)) == [2] * 5


def test_an_endpoint_without_rates_sets_none(run: Run, endpoint: Endpoint) -> None:
    Endpoint.objects.update(requests_per_minute=None, tokens_per_minute=None)
    assert quota_limits(QuotaLease(endpoint, run.pk, 32).renew()) == (10, None, None)


def test_pause_applies_to_all_workers_and_is_never_shortened(run: Run, endpoint: Endpoint) -> None:
    first_lease, second_lease = QuotaLease(endpoint, run.pk, 32), QuotaLease(endpoint, run.pk, 32)
    assert first_lease.renew().rest_seconds == 0
    first_lease.rest(300)
    second_lease.rest(5)
    assert 290 < second_lease.renew().rest_seconds <= 300


def test_past_pause_is_ignored(run: Run, endpoint: Endpoint) -> None:
    Endpoint.objects.update(cooldown_until=Now() - timedelta(seconds=5))
    assert QuotaLease(endpoint, run.pk, 32).renew().rest_seconds == 0
