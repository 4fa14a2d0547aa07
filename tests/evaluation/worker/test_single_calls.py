"""Embeddings and preflights keep within what all workers share of an endpoint, and their rests hold for everybody."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from evaluation.models import Endpoint, Preflight, Reply, Run, WorkUnit
from evaluation.models.work import EndpointQuotaLease
from evaluation.runs.execution import drain
from evaluation.worker.endpoint_quota import QuotaLease, SingleCalls
from evaluation.worker.lifecycle import start
from tests.evaluation.runs.remote import remote_run, worked_off
from tests.evaluation.scoring.embedded import drafted, drained, endpoint_of
from tests.factories import make_draft_run
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
PAIR = [("said", "expected")]


@pytest.fixture
def endpoint(judge_server: JudgeServer, settings: Any) -> Endpoint:
    """It judges and embeds."""
    settings.CONCORD_DISPATCHER = "local"
    return endpoint_of(judge_server, settings)


def rest_of(endpoint: Endpoint) -> float:
    endpoint.refresh_from_db()
    return (endpoint.cooldown_until - timezone.now()).total_seconds() if endpoint.cooldown_until else 0.0


def rests(endpoint: Endpoint, seconds: float) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(cooldown_until=timezone.now() + timedelta(seconds=seconds))


def test_a_rest_that_embeddings_were_told_holds_for_judges(judge_server: JudgeServer, endpoint: Endpoint) -> None:
    judge_server.enqueue_embeddings(actions.status(429, retry_after="300"))
    assert drained(drafted(PAIR)).state == Run.State.RUNNING
    assert 290 < rest_of(endpoint) <= 301
    run = worked_off(remote_run(judge_server, 3))
    assert (run.state, judge_server.calls, judge_server.preflights) == (Run.State.PREFLIGHT, 0, 0)
    rests(endpoint, -1)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_a_rest_that_a_preflight_was_told_holds_for_embeddings(judge_server: JudgeServer, endpoint: Endpoint) -> None:
    judge_server.preflight = actions.status(429, retry_after="300")
    worked_off(remote_run(judge_server, 3))
    assert Preflight.objects.get().outcome == "rate_limited"
    assert 290 < rest_of(endpoint) <= 301
    run = drained(drafted(PAIR))
    assert (run.state, judge_server.embedded) == (Run.State.RUNNING, [])
    unit = WorkUnit.objects.get(run=run, kind="embed")
    assert (unit.state, unit.not_before is not None) == ("todo", True)
    rests(endpoint, -1)
    WorkUnit.objects.update(not_before=None)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_a_rest_that_judges_were_told_holds_for_embeddings_and_short_ones_are_waited_for(
    judge_server: JudgeServer, endpoint: Endpoint
) -> None:
    run = remote_run(judge_server, 3)
    judge_server.enqueue(actions.status(429, retry_after="300"))
    worked_off(run)
    assert 280 < rest_of(endpoint) <= 301
    assert drained(drafted(PAIR)).state == Run.State.RUNNING
    assert judge_server.embedded == []
    rests(endpoint, 0.5)
    assert drained(drafted([("one", "two")])).state == Run.State.COMPLETED
    assert Reply.objects.filter(attempt__unit__kind="embed", outcome="ok").count() == 1


def test_no_call_is_made_while_others_have_all_places(judge_server: JudgeServer, endpoint: Endpoint) -> None:
    Endpoint.objects.update(max_concurrency=1)
    endpoint.refresh_from_db()
    other = QuotaLease(endpoint, make_draft_run().pk, 8)
    other.renew(out=1)
    run = drafted(PAIR)
    start(run)
    assert drain(run.pk, seconds=1).state == Run.State.RUNNING
    assert judge_server.embedded == []
    other.leave()
    WorkUnit.objects.update(not_before=None)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert not EndpointQuotaLease.objects.exists()  # nobody keeps a place


def test_the_place_of_a_call_is_kept_while_it_is_out(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.worker.endpoint_quota.RENEW_SECONDS", 0.05)
    seen: list[tuple[int, int]] = []

    def look() -> None:
        share = EndpointQuotaLease.objects.get()
        seen.append((share.slots, share.in_flight))

    with SingleCalls(endpoint, make_draft_run().pk, on_wait=look) as calls:
        assert calls.wait(time.monotonic() + 5) == 0
        assert calls.run(lambda: time.sleep(0.3) or "done") == "done"
    assert set(seen) == {(1, 1)}


def test_a_call_that_raises_a_timeout_of_its_own_raises_it(endpoint: Endpoint) -> None:
    def fails() -> None:
        raise TimeoutError("its own")

    with SingleCalls(endpoint, make_draft_run().pk) as calls, pytest.raises(TimeoutError, match="its own"):
        calls.run(fails)


def test_rates_of_the_endpoint_are_kept(endpoint: Endpoint) -> None:
    Endpoint.objects.update(requests_per_minute=1, tokens_per_minute=60)
    endpoint.refresh_from_db()
    with SingleCalls(endpoint, make_draft_run().pk) as calls:
        assert calls.wait(time.monotonic() + 5) == 0
        assert calls.wait(time.monotonic() + 5) > 50  # the second of a minute
