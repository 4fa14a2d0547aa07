"""Workers share an endpoint: fair parts, never more than the whole, one rest for all."""

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
    ("whole", "wants", "parts"),
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
def test_fair_parts_by_hand(whole: int, wants: list[int], parts: list[int]) -> None:
    assert fair_shares(whole, wants) == parts


@given(st.integers(1, 100), st.lists(st.integers(1, 100), min_size=1, max_size=12))
def test_fair_parts_use_all_that_is_wanted_and_favour_nobody(whole: int, wants: list[int]) -> None:
    parts = fair_shares(whole, wants)
    assert sum(parts) == min(whole, sum(wants))
    assert all(0 <= part <= want for part, want in zip(parts, wants, strict=True))
    short = [part for part, want in zip(parts, wants, strict=True) if part < want]
    assert not short or max(parts) - min(short) <= 1


@pytest.fixture
def run(db: None) -> Run:
    return make_draft_run()


@pytest.fixture
def endpoint(db: None) -> Endpoint:
    fields = {"max_concurrency": 10, "requests_per_minute": 600, "tokens_per_minute": 60_000}
    return Endpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1", **fields)


def told(granted: Quota) -> tuple[int, float | None, float | None]:
    allowance = granted.allowance
    return allowance.calls, allowance.requests_per_minute, allowance.tokens_per_minute


def test_a_worker_alone_gets_all_it_wants(run: Run, endpoint: Endpoint) -> None:
    assert told(QuotaLease(endpoint, run.pk, 32).renew()) == (10, 600, 60_000)
    EndpointQuotaLease.objects.all().delete()
    assert told(QuotaLease(endpoint, run.pk, 4).renew()) == (4, 600, 60_000)


def test_a_newcomer_waits_until_his_part_is_handed_over(run: Run, endpoint: Endpoint) -> None:
    first, second = QuotaLease(endpoint, run.pk, 32), QuotaLease(endpoint, run.pk, 32)
    first.renew()
    waiting = second.renew()
    assert told(waiting) == (0, 0, 0)
    assert not waiting.complete
    # The first has eight calls out: it may send no further one above five, but their places stay its own.
    assert told(first.renew(out=8)) == (5, 300, 30_000)
    assert told(second.renew()) == (2, 300, 30_000)
    first.renew(out=5)
    assert told(second.renew()) == (5, 300, 30_000)
    assert second.renew().complete


def test_who_leaves_hands_everything_over(run: Run, endpoint: Endpoint) -> None:
    first, second = QuotaLease(endpoint, run.pk, 32), QuotaLease(endpoint, run.pk, 32)
    first.renew()
    second.renew()
    first.leave()
    assert told(second.renew()) == (10, 600, 60_000)


def test_who_was_not_seen_for_long_counts_as_gone(run: Run, endpoint: Endpoint) -> None:
    first, second = QuotaLease(endpoint, run.pk, 32), QuotaLease(endpoint, run.pk, 32)
    first.renew()
    EndpointQuotaLease.objects.update(seen_at=Now() - timedelta(seconds=LEASE_SECONDS + 1))
    assert told(second.renew()) == (10, 600, 60_000)
    assert EndpointQuotaLease.objects.count() == 1


def test_no_order_of_coming_and_going_gives_out_more_than_the_whole(run: Run, endpoint: Endpoint) -> None:
    workers = [QuotaLease(endpoint, run.pk, 7) for _ in range(5)]
    for step in (0, 1, 0, 2, 1, 3, 4, 0, 2, 4, 1, 3, 0, 1, 2, 3, 4):
        workers[step].renew(out=3)
        whole = EndpointQuotaLease.objects.aggregate(slots=Sum("slots"), fraction=Sum("fraction"))
        assert whole["slots"] <= 10
        assert whole["fraction"] <= 1.0 + 1e-9
    for worker in (*workers, *workers):
        worker.renew()
    assert list(EndpointQuotaLease.objects.values_list("slots", flat=True)) == [2] * 5


def test_an_endpoint_without_rates_sets_none(run: Run, endpoint: Endpoint) -> None:
    Endpoint.objects.update(requests_per_minute=None, tokens_per_minute=None)
    assert told(QuotaLease(endpoint, run.pk, 32).renew()) == (10, None, None)


def test_one_rest_holds_for_every_worker_and_a_shorter_one_does_not_cut_it(run: Run, endpoint: Endpoint) -> None:
    first, second = QuotaLease(endpoint, run.pk, 32), QuotaLease(endpoint, run.pk, 32)
    assert first.renew().rest_seconds == 0
    first.rest(300)
    second.rest(5)
    assert 290 < second.renew().rest_seconds <= 300


def test_a_rest_that_is_over_is_none(run: Run, endpoint: Endpoint) -> None:
    Endpoint.objects.update(cooldown_until=Now() - timedelta(seconds=5))
    assert QuotaLease(endpoint, run.pk, 32).renew().rest_seconds == 0
