"""Calls for no ledger keep within what all workers share of an endpoint: places, both rates, and the rest."""

from __future__ import annotations

import pytest
from django.utils import timezone

from evaluation.judging.calls import JudgeReply
from evaluation.models import Endpoint
from evaluation.models.work import EndpointQuotaLease
from evaluation.network.outcomes import Outcome
from evaluation.worker.endpoint_quota import EndpointBusy, QuotaLease, SharedPool
from tests.evaluation.judging.samples import call
from tests.evaluation.network.test_pool import Scripted
from tests.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def endpoint_with(**limits: int) -> Endpoint:
    return Endpoint.objects.create(name="e", base_url="https://e.example/v1", **limits)


def pooled(judge: Scripted, endpoint: Endpoint | None, at_once: int = 4, patience: float = 0.6) -> SharedPool:
    return SharedPool(judge, endpoint, at_once, project_id=make_project().pk, patience=patience)


def all_of(pool: SharedPool) -> list[object]:
    found: list[object] = []
    while pool.outstanding:
        found += [key for key, _ in pool.collect(1.0)]
    return found


@pytest.mark.parametrize("limits", [{"requests_per_minute": 1}, {"tokens_per_minute": 1}])
def test_the_rates_of_the_endpoint_are_kept(limits: dict[str, int]) -> None:
    judge = Scripted()
    with pooled(judge, endpoint_with(**limits)) as pool:
        pool.submit((n, call()) for n in range(3))
        with pytest.raises(EndpointBusy):
            all_of(pool)
        assert judge.calls == 1  # the rate's first; the next is due in a minute
        assert len(pool.withdraw()) == 2
        assert pool.outstanding == 0
    assert not EndpointQuotaLease.objects.exists()


def test_it_has_the_places_that_others_leave_over_and_gets_more_when_they_go() -> None:
    endpoint, judge = endpoint_with(max_concurrency=4), Scripted(0.05)
    other = QuotaLease(endpoint, None, 8)
    other.renew(out=4)
    with pooled(judge, endpoint) as pool:
        pool.submit((n, call()) for n in range(4))
        with pytest.raises(EndpointBusy):
            all_of(pool)
        assert judge.calls == 0
        other.leave()
        assert sorted(map(str, all_of(pool))) == ["0", "1", "2", "3"]
    assert judge.peak <= 4


def test_a_rest_is_told_to_everybody_and_what_is_out_is_waited_for() -> None:
    told = JudgeReply(Outcome.RATE_LIMITED, retry_after=300.0)
    endpoint, judge = endpoint_with(max_concurrency=2), Scripted(0.05, {1: told})
    with pooled(judge, endpoint) as pool:
        pool.submit((n, call()) for n in range(4))
        with pytest.raises(EndpointBusy):
            all_of(pool)
        pool.submit([(9, call())])
        assert pool.finish_sent() == []
    endpoint.refresh_from_db()
    assert endpoint.cooldown_until is not None
    assert 290 < (endpoint.cooldown_until - timezone.now()).total_seconds() <= 301
    assert judge.calls == 2  # those that were out at once


def test_without_an_endpoint_there_is_nothing_to_share() -> None:
    judge = Scripted(0.02)
    with pooled(judge, None, at_once=2) as pool:
        pool.submit((n, call()) for n in range(6))
        assert len(all_of(pool)) == 6
    assert judge.peak == 2
