"""Runs in message batches of Anthropic: each call once, and no call again whose batch may exist."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrib.batches import ledger
from contrib.batches.anthropic import AnthropicBatchClient, read_batch, read_result
from contrib.batches.client import read_lines
from contrib.batches.models import JudgeBatch
from contrib.batches.runner import CLIENTS
from evaluation.judges.shipped import profile_row, save_judge
from evaluation.judging.providers.catalogue import endpoint_providers
from evaluation.models import Endpoint, Reply, Run, Score, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.network.outcomes import Outcome
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import cancel, resume, start
from tests.evaluation.runs.remote import make_answers
from tests.judge_server import JudgeServer, actions
from tests.judge_server.wire import native_reply, respond

PRICES = 'prices:\n- {model: m-1, since: 2026-01-01, input: 1, output: 10, batch: "0.5"}\n'
database = pytest.mark.django_db


@pytest.fixture(autouse=True)
def poll_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> None:
    monkeypatch.setattr(ledger, "FIRST_POLL_SECONDS", 0.0)
    settings.CONCORD_PRICES = str(tmp_path / "prices.yaml")
    (tmp_path / "prices.yaml").write_text(PRICES)


def start_run(judge: JudgeServer, count: int = 4) -> Run:
    judge.behave(native_reply())
    answers = make_answers(count)
    url = f"{judge.origin}/other"
    endpoint = Endpoint.objects.create(name="e", provider="anthropic", base_url=url, batches=True)
    endpoint.full_clean()
    claude = save_judge(answers.project, "claude", endpoint, model="m-1", language="en", params={"temperature": 0})
    profile = profile_row(answers.project, "graphrag")
    run = prepare_run(answers, profile, RunSpec(batch=True), judge=claude)
    start(run)
    return run


def judge_replies() -> Any:
    return Reply.objects.filter(attempt__unit__kind="judge")


@database
def test_batch_gives_scores_at_the_price_of_batches(judge: JudgeServer) -> None:
    run = drain(start_run(judge).pk, seconds=20)
    batch = JudgeBatch.objects.get()
    assert (run.state, batch.state, batch.lines, batch.provider_id) == (Run.State.RUNNING, "sent", 4, "msgbatch_1")
    assert batch.expires_at is not None
    run = drain(run.pk, seconds=20)
    batch.refresh_from_db()
    assert (run.state, batch.state, batch.reason, batch.done) == (Run.State.COMPLETED, "ended", "", 4)
    assert (judge.preflights, judge.calls, len(judge.batches.requests)) == (1, 0, 4)
    assert {request.body["output_config"]["format"]["type"] for request in judge.batches.requests} == {"json_schema"}
    assert Score.objects.filter(run=run, metric__name="correctness", status="scored").count() == 4
    # Half of (900 * 1 + 60 * 10) / 1,000,000 dollars.
    assert set(judge_replies().values_list("outcome", "cost")) == {("ok", Decimal("0.00075"))}


@database
def test_calls_of_an_expired_batch_are_sent_again_and_those_that_ran_are_kept(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.max_lines = "expired", 1
    run = start_run(judge)
    for _ in range(2):
        drain(run.pk, seconds=20)
    judge.batches.ending, judge.batches.max_lines = "completed", 10
    for _ in range(3):
        run = drain(run.pk, seconds=20)
    assert run.state == Run.State.COMPLETED
    first, second = JudgeBatch.objects.order_by("pk")
    assert (first.reason, first.lines, second.lines) == ("batch_expired", 4, 3)
    assert judge_replies().filter(outcome="ok").count() == 4


@database
def test_refused_creation_drops_the_batch_and_sends_its_calls_in_another(judge: JudgeServer) -> None:
    judge.batches.script("create", respond(529, {"type": "error", "error": {"type": "overloaded_error"}}))
    run = start_run(judge)
    for _ in range(4):
        run = drain(run.pk, seconds=20)
    assert run.state == Run.State.COMPLETED
    assert list(JudgeBatch.objects.order_by("pk").values_list("state", "reason")) == [
        ("dropped", "batch_interrupted"),
        ("ended", ""),
    ]
    assert len(judge.batches.requests) == 4


@database
def test_run_pauses_if_the_batch_may_exist_because_it_has_no_mark(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.disconnect(), after_action=True)
    run = start_run(judge)
    for _ in range(2):
        run = drain(run.pk, seconds=20)
    assert (run.state, run.reason) == (Run.State.PAUSED, "batch_unknown")
    assert len(judge.batches.stored) == 1
    assert not judge_replies().exists()
    # Only a person has the calls repeated.
    resume(run)
    for _ in range(2):
        run = drain(run.pk, seconds=20)
    assert (run.state, len(judge.batches.stored)) == (Run.State.COMPLETED, 2)


@database
def test_cancelled_run_cancels_its_batch(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.max_lines = "stuck", 1
    run = drain(start_run(judge).pk, seconds=20)
    cancel(run)
    for _ in range(2):
        drain(run.pk, seconds=20)
    batch = JudgeBatch.objects.get()
    assert (batch.state, batch.reason, batch.cancel_requested) == ("ended", "batch_cancelled", True)
    assert not WorkUnit.objects.filter(state="batched").exists()


def test_every_provider_with_batches_has_a_client() -> None:
    assert set(CLIENTS) == {provider.name for provider in endpoint_providers() if provider.batches}


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"type": "succeeded", "message": {"content": [{"type": "text", "text": "{}"}]}}, Outcome.OK),
        ({"type": "succeeded", "message": None}, Outcome.WRONG_CONTENT),
        ({"type": "errored", "error": {"type": "error", "error": {"type": "invalid_request_error"}}}, "bad_request"),
        ({"type": "errored", "error": {"type": "error", "error": {"type": "overloaded_error"}}}, "overloaded"),
        ({"type": "canceled"}, Outcome.NOT_SENT),
        ({"type": "expired"}, Outcome.NOT_SENT),
        ({"type": "else"}, None),
        ([], None),
    ],
)
def test_results_are_read_like_single_replies(result: Any, outcome: str | None) -> None:
    reply = read_result({"custom_id": "a", "result": result})
    assert (reply and reply.outcome) == outcome


@pytest.mark.parametrize(
    ("counts", "processing", "status"),
    [
        ({"succeeded": 3}, "ended", "completed"),
        ({"succeeded": 3, "errored": 1}, "ended", "completed"),
        ({"succeeded": 3, "expired": 1}, "ended", "expired"),
        ({"canceled": 1}, "ended", "cancelled"),
        ({"processing": 3}, "in_progress", "in_progress"),
        ({"processing": 3}, "canceling", "in_progress"),
        # A name that ends batches of other servers.
        ({"processing": 3}, "completed", "in_progress"),
    ],
)
def test_status_of_a_batch(counts: dict[str, int], processing: str, status: str) -> None:
    batch = {"id": "msgbatch_1", "processing_status": processing, "request_counts": counts}
    parsed = read_batch(json.dumps(batch | {"expires_at": "2026-01-02T00:00:00Z"}).encode())
    assert parsed is not None
    assert (parsed.status, parsed.ended, parsed.expires_at) == (status, processing == "ended", 1_767_312_000)


@given(st.binary() | st.text().map(lambda text: json.dumps({"id": text, "processing_status": text}).encode()))
def test_no_body_raises(body: bytes) -> None:
    read_batch(body)
    read_lines(body, read_result)


def test_client_keeps_calls_until_their_batch_is_created(judge: JudgeServer) -> None:
    with AnthropicBatchClient(base_url=judge.origin, allowed_origins=[judge.origin]) as client:
        file_id = client.upload(b"{}\n")
        assert (client.has_file(file_id), client.has_file("other")) == (True, False)
