"""Embedding calls and preflights stay within the shared limits of an endpoint, and their pauses apply to all
workers."""

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
from tests.evaluation.runs.remote import remote_run, start_and_drain
from tests.evaluation.scoring.embedded import complete_run, draft_similarity_run, make_endpoint
from tests.factories import make_draft_run
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
PAIR = [("said", "expected")]


@pytest.fixture
def endpoint(judge_server: JudgeServer, settings: Any) -> Endpoint:
    """An endpoint for judge calls and embeddings."""
    settings.CONCORD_DISPATCHER = "local"
    return make_endpoint(judge_server, settings)


def pause_seconds(endpoint: Endpoint) -> float:
    endpoint.refresh_from_db()
    return (endpoint.cooldown_until - timezone.now()).total_seconds() if endpoint.cooldown_until else 0.0


def set_pause(endpoint: Endpoint, seconds: float) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(cooldown_until=timezone.now() + timedelta(seconds=seconds))


def test_retry_after_of_embeddings_applies_to_judges(judge_server: JudgeServer, endpoint: Endpoint) -> None:
    judge_server.enqueue_embeddings(actions.status(429, retry_after="300"))
    assert complete_run(draft_similarity_run(PAIR)).state == Run.State.RUNNING
    assert 290 < pause_seconds(endpoint) <= 301
    run = start_and_drain(remote_run(judge_server, 3))
    assert (run.state, judge_server.calls, judge_server.preflights) == (Run.State.PREFLIGHT, 0, 0)
    set_pause(endpoint, -1)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_retry_after_of_a_preflight_applies_to_embeddings(judge_server: JudgeServer, endpoint: Endpoint) -> None:
    judge_server.preflight = actions.status(429, retry_after="300")
    start_and_drain(remote_run(judge_server, 3))
    assert Preflight.objects.get().outcome == "rate_limited"
    assert 290 < pause_seconds(endpoint) <= 301
    run = complete_run(draft_similarity_run(PAIR))
    assert (run.state, judge_server.embedded) == (Run.State.RUNNING, [])
    unit = WorkUnit.objects.get(run=run, kind="embed")
    assert (unit.state, unit.not_before is not None) == ("todo", True)
    set_pause(endpoint, -1)
    WorkUnit.objects.update(not_before=None)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_retry_after_of_judges_applies_to_embeddings(judge_server: JudgeServer, endpoint: Endpoint) -> None:
    run = remote_run(judge_server, 3)
    judge_server.enqueue(actions.status(429, retry_after="300"))
    start_and_drain(run)
    assert 280 < pause_seconds(endpoint) <= 301
    assert complete_run(draft_similarity_run(PAIR)).state == Run.State.RUNNING
    assert judge_server.embedded == []
    set_pause(endpoint, 0.5)
    assert complete_run(draft_similarity_run([("one", "two")])).state == Run.State.COMPLETED
    assert Reply.objects.filter(attempt__unit__kind="embed", outcome="ok").count() == 1


def test_no_call_is_made_while_other_workers_hold_all_slots(judge_server: JudgeServer, endpoint: Endpoint) -> None:
    Endpoint.objects.update(max_concurrency=1)
    endpoint.refresh_from_db()
    other_lease = QuotaLease(endpoint, make_draft_run().pk, 8)
    other_lease.renew(out=1)
    run = draft_similarity_run(PAIR)
    start(run)
    assert drain(run.pk, seconds=1).state == Run.State.RUNNING
    assert judge_server.embedded == []
    other_lease.leave()
    WorkUnit.objects.update(not_before=None)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert not EndpointQuotaLease.objects.exists()  # nobody keeps a place


def test_slot_is_renewed_during_a_call(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.worker.endpoint_quota.RENEW_SECONDS", 0.05)
    slot_states: list[tuple[int, int]] = []

    def record_share() -> None:
        share = EndpointQuotaLease.objects.get()
        slot_states.append((share.slots, share.in_flight))

    with SingleCalls(endpoint, make_draft_run().pk, on_wait=record_share) as calls:
        assert calls.wait(time.monotonic() + 5) == 0
        assert calls.run(lambda: time.sleep(0.3) or "done") == "done"
    assert set(slot_states) == {(1, 1)}


def test_timeout_raised_by_a_call_is_propagated(endpoint: Endpoint) -> None:
    def raise_timeout() -> None:
        raise TimeoutError("its own")

    with SingleCalls(endpoint, make_draft_run().pk) as calls, pytest.raises(TimeoutError, match="its own"):
        calls.run(raise_timeout)


def test_rates_of_the_endpoint_are_obeyed(endpoint: Endpoint) -> None:
    Endpoint.objects.update(requests_per_minute=1, tokens_per_minute=60)
    endpoint.refresh_from_db()
    with SingleCalls(endpoint, make_draft_run().pk) as calls:
        assert calls.wait(time.monotonic() + 5) == 0
        assert calls.wait(time.monotonic() + 5) > 50  # the second of a minute
