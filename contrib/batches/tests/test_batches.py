"""Runs in batches: the same units, attempts, replies and scores as single calls, once each."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from contrib.batches import ledger, runner
from contrib.batches.client import BatchClient
from contrib.batches.feature import runs_with_overdue_batches
from contrib.batches.ledger import BatchSession
from contrib.batches.models import BatchLine, JudgeBatch
from evaluation.core.errors import DomainError
from evaluation.judges.shipped import save_judge
from evaluation.models import Attempt, Endpoint, Reply, Run, Score, WorkUnit
from evaluation.runs.execution import drain
from evaluation.runs.progress import progress, spending
from evaluation.worker.dispatch import requeue_stalled
from evaluation.worker.lifecycle import cancel, pause, resume, start
from tests.evaluation.runs.remote import make_answers, remote_run
from tests.factories import make_answer_set, make_question_set, question_spec
from tests.judge_server import JudgeServer, actions

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def poll_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll batches whenever a worker handles their run."""
    monkeypatch.setattr(ledger, "FIRST_POLL_SECONDS", 0.0)


def start_batch_run(judge: JudgeServer, count: int = 6, **options: Any) -> Run:
    run = remote_run(judge, count, batch=True, **options)
    start(run)
    return run


def drain_run(run: Run, times: int = 2) -> Run:
    for _ in range(times):
        run = drain(run.pk, seconds=20)
    return run


def values(run: Run) -> list[tuple[Any, ...]]:
    rows = Score.objects.filter(run=run).order_by("answer__question__position", "metric__name")
    return list(rows.values_list("answer__question__external_id", "metric__name", "status", "value", "round"))


def outcomes() -> list[str]:
    return sorted(Reply.objects.filter(attempt__unit__kind="judge").values_list("outcome", flat=True))


def test_batch_gives_the_scores_of_single_calls(judge: JudgeServer) -> None:
    answers = make_answers(6)
    run = remote_run(judge, answers, batch=True)
    start(run)
    waiting_run = drain(run.pk, seconds=20)
    assert waiting_run.state == Run.State.RUNNING
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) == {"batched"}
    batch = JudgeBatch.objects.get()
    assert (batch.state, batch.lines, batch.endpoint.base_url) == ("sent", 6, judge.base_url)
    assert batch.expires_at is not None
    assert progress(run).seconds_left is None
    assert Attempt.objects.count() == BatchLine.objects.count() == 6
    assert not Reply.objects.exists()
    completed_run = drain(run.pk, seconds=20)
    assert completed_run.state == Run.State.COMPLETED
    batch.refresh_from_db()
    assert (batch.state, batch.reason, batch.done, batch.failed) == ("ended", "", 6, 0)
    assert judge.calls == 0  # the preflight is counted apart
    assert Attempt.objects.count() == Reply.objects.count() == 6
    single = remote_run(judge, answers, use_cache=False)
    start(single)
    assert drain(single.pk, seconds=20).state == Run.State.COMPLETED
    assert values(run) == values(single)
    assert judge.calls == 6


def test_cached_replies_are_not_sent_in_a_batch(judge: JudgeServer) -> None:
    answers = make_answers(4)
    first = remote_run(judge, answers)
    start(first)
    drain_run(first, 1)
    Endpoint.objects.update(batches=True)
    run = remote_run(judge, answers, batch=True)
    start(run)
    assert drain_run(run, 1).state == Run.State.COMPLETED
    assert not JudgeBatch.objects.filter(state="sent").exists()
    assert judge.batches.request_counts["upload"] == 0


def test_identical_calls_are_in_the_file_once(judge: JudgeServer) -> None:
    run = start_run_of_identical_requests(judge)
    assert BatchLine.objects.filter(in_file=True).count() == 1
    assert BatchLine.objects.filter(in_file=False).count() == 1
    assert drain_run(run, 3).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 1
    assert outcomes() == ["cached", "not_sent", "ok"]


def start_run_of_identical_requests(judge: JudgeServer) -> Run:
    """A run of two questions with identical requests, sent to the provider."""
    spec = question_spec(1, category="single_hop")
    twins = [spec, spec.model_copy(update={"id": "twin"})]
    answers = make_answer_set(make_question_set(specs=twins), texts=["The capital is city 1."])
    run = remote_run(judge, answers, batch=True)
    start(run)
    return drain_run(run, 1)


def test_line_with_a_transient_fault_is_called_singly(judge: JudgeServer) -> None:
    judge.enqueue(actions.status(500))
    run = drain_run(start_batch_run(judge))
    assert run.state == Run.State.COMPLETED
    assert (len(judge.batches.requests), judge.calls) == (6, 1)
    assert outcomes() == ["ok"] * 6 + ["server_error"]


def test_unreadable_reply_is_repaired_by_a_single_call(judge: JudgeServer) -> None:
    judge.enqueue(actions.FAULTS["prose"], actions.FAULTS["truncated"])
    run = drain_run(start_batch_run(judge))
    assert run.state == Run.State.COMPLETED
    assert judge.calls == 2
    assert outcomes() == ["ok"] * 6 + ["parse", "truncated"]


def test_refusal_fails_as_in_a_single_call(judge: JudgeServer) -> None:
    judge.enqueue(actions.FAULTS["refused"])
    run = drain_run(start_batch_run(judge))
    assert run.state == Run.State.INCOMPLETE
    assert set(WorkUnit.objects.filter(state="failed").values_list("reason", flat=True)) == {"refused"}
    assert judge.calls == 0


def test_expired_batch_keeps_its_replies_and_resends_the_others(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.max_lines = "expired", 2
    run = start_batch_run(judge)
    drain_run(run)
    first, second = JudgeBatch.objects.order_by("id")
    assert (first.state, first.reason, second.state, second.lines) == ("ended", "batch_expired", "sent", 4)
    assert outcomes() == ["not_sent"] * 4 + ["ok"] * 2
    assert set(Reply.objects.filter(outcome="not_sent").values_list("cost", flat=True)) == {0}
    judge.batches.ending = "completed"
    assert drain_run(run, 1).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 6


@pytest.mark.slow
def test_lines_without_replies_in_two_batches_are_called_singly(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.max_lines = "expired", 0
    run = drain_run(start_batch_run(judge), 3)
    assert run.state == Run.State.COMPLETED
    assert (JudgeBatch.objects.count(), judge.calls) == (2, 6)


def test_missing_repeated_or_invalid_lines_leave_each_score_once(
    judge: JudgeServer,
) -> None:
    strange = {"custom_id": "nobody", "response": {"status_code": 200, "body": {}}}
    judge.batches.alter = lambda lines: [lines[0], lines[0], "{nonsense", strange, *lines[1:4], {"custom_id": 5}]
    run = start_batch_run(judge)
    drain_run(run)
    judge.batches.alter = list
    assert drain_run(run, 1).state == Run.State.COMPLETED
    assert [batch.lines for batch in JudgeBatch.objects.order_by("id")] == [6, 2]
    assert outcomes() == ["ok"] * 6
    assert spending(run).unknown_calls >= 2  # the two whose replies never came
    assert Attempt.objects.filter(reply__isnull=True).count() == 2


def test_temporarily_refused_batch_is_created_from_the_same_file(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.status(429, retry_after="0"), actions.status(429, retry_after="0"))
    run = drain_run(start_batch_run(judge), 4)
    assert run.state == Run.State.COMPLETED
    assert (
        judge.batches.request_counts["upload"],
        judge.batches.request_counts["create"],
        len(judge.batches.stored),
    ) == (1, 3, 1)
    assert judge.batches.request_counts["list"] == 0  # nobody has to look for what was refused


def test_batch_with_a_lost_id_is_found_again(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.status(502), after_action=True)
    run = drain_run(start_batch_run(judge), 3)
    assert run.state == Run.State.COMPLETED
    assert (judge.batches.request_counts["create"], len(judge.batches.stored), len(judge.batches.requests)) == (1, 1, 6)


def test_batch_that_was_not_created_is_created_again(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.status(502))
    run = drain_run(start_batch_run(judge), 3)
    assert run.state == Run.State.COMPLETED
    assert (judge.batches.request_counts["list"], len(judge.batches.stored)) == (1, 1)


def test_unknown_creation_without_a_list_waits_for_a_person(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.disconnect(), after_action=True)
    judge.batches.script("list", actions.status(404))
    run = drain_run(start_batch_run(judge))
    assert (run.state, run.reason) == (Run.State.PAUSED, "batch_unknown")
    assert JudgeBatch.objects.get().state == "lost"
    assert Attempt.objects.filter(reply__isnull=True).count() == 6  # their cost stays unknown
    assert resume(run)
    assert drain_run(run).state == Run.State.COMPLETED
    assert spending(run).unknown_calls >= 6


def test_batch_unknown_to_the_provider_waits_for_a_person(judge: JudgeServer) -> None:
    run = start_batch_run(judge)
    drain_run(run, 1)
    judge.batches.script("look", actions.status(404))
    run = drain_run(run, 1)
    assert (run.state, run.reason) == (Run.State.PAUSED, "batch_lost")
    assert resume(run)
    assert drain_run(run).state == Run.State.COMPLETED


def test_replies_of_an_ended_batch_are_read_later_when_unavailable(judge: JudgeServer) -> None:
    run = start_batch_run(judge)
    judge.batches.script("content", actions.status(503), actions.disconnect())
    run = drain_run(run, 4)
    assert run.state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [("upload", 401, "unauthorised"), ("upload", 404, "no_batches"), ("create", 403, "forbidden"),
     ("create", 400, "bad_request"), ("look", 401, "unauthorised")],
)  # fmt: skip
def test_fault_for_a_person_pauses_the_run_and_loses_nothing(
    judge: JudgeServer, kind: str, status: int, reason: str
) -> None:
    judge.batches.script(kind, actions.status(status))
    run = drain_run(start_batch_run(judge))
    assert (run.state, run.reason) == (Run.State.PAUSED, reason)
    WorkUnit.objects.update(not_before=None)
    assert resume(run)
    assert drain_run(run, 3).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 6


def test_missing_credit_pauses_and_the_file_is_used_later(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.status(429, error_code="insufficient_quota"))
    run = drain_run(start_batch_run(judge))
    assert (run.state, run.reason) == (Run.State.PAUSED, "no_credit")
    assert resume(run)
    assert drain_run(run).state == Run.State.COMPLETED
    assert judge.batches.request_counts["upload"] == 1


def test_cancelling_a_run_cancels_its_batch_and_keeps_finished_calls(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.max_lines = "stuck", 2
    run = start_batch_run(judge)
    drain_run(run, 1)
    assert cancel(run)
    run = drain_run(run, 2)
    assert (run.state, judge.batches.request_counts["cancel"]) == (Run.State.CANCELLED, 1)
    batch = JudgeBatch.objects.get()
    assert (batch.state, batch.reason) == ("ended", "batch_cancelled")
    states = sorted(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True))
    assert states == ["done"] * 2 + ["skipped"] * 4
    assert outcomes() == ["not_sent"] * 4 + ["ok"] * 2


def test_paused_run_sends_and_reads_nothing_until_resumed(judge: JudgeServer) -> None:
    run = start_batch_run(judge)
    drain_run(run, 1)
    assert pause(run)
    drain_run(run)
    assert judge.batches.request_counts["look"] == 0
    assert resume(run)
    assert drain_run(run, 1).state == Run.State.COMPLETED


def test_wholly_refused_batch_costs_nothing_and_names_the_reason(judge: JudgeServer) -> None:
    judge.batches.ending = "failed"
    run = start_batch_run(judge)
    drain_run(run)
    first = JudgeBatch.objects.order_by("id")[0]
    assert (first.state, first.reason) == ("ended", "batch_failed: invalid_json_line")
    assert outcomes() == ["not_sent"] * 6
    assert drain_run(run, 3).state == Run.State.COMPLETED
    assert judge.calls == 6  # after two of them, singly


def test_run_in_batches_requires_an_endpoint_with_batches(judge: JudgeServer) -> None:
    remote_run(judge, 1)
    with pytest.raises(DomainError, match="no_batches"):
        remote_run(judge, 1, batch=True)


def test_endpoint_without_batches_is_called_singly_and_sent_batches_are_read(
    judge: JudgeServer,
) -> None:
    judge.batches.ending, judge.batches.max_lines = "expired", 4
    run = start_batch_run(judge)
    drain_run(run, 1)
    Endpoint.objects.update(batches=False)
    assert drain_run(run).state == Run.State.COMPLETED
    assert (len(judge.batches.requests), judge.calls, JudgeBatch.objects.count()) == (4, 2, 1)


@pytest.mark.slow
def test_interrupted_reading_continues_at_its_position(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start_batch_run(judge)
    drain_run(run, 1)
    monkeypatch.setattr(runner, "CHUNK", 2)
    receive, received_lines = BatchSession.receive_replies, []

    def receive_and_break(self: BatchSession, lines: Any, replies: Any) -> None:
        received_lines.append([line.pk for line in lines])
        if len(received_lines) == 3:
            raise KeyboardInterrupt
        receive(self, lines, replies)

    monkeypatch.setattr(BatchSession, "receive_replies", receive_and_break)
    with pytest.raises(KeyboardInterrupt):
        drain(run.pk, seconds=20)
    assert Reply.objects.count() == 4
    JudgeBatch.objects.update(busy_until=None)  # its lease is over
    assert drain_run(run, 1).state == Run.State.COMPLETED
    assert received_lines[3:] == received_lines[2:3]
    assert outcomes() == ["ok"] * 6
    assert Attempt.objects.count() == 6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["upload", "create"])
def test_batch_of_a_dead_worker_is_sent_once(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    original_method = getattr(BatchClient, method)

    def call_and_die(*arguments: Any) -> Any:
        original_method(*arguments)
        raise KeyboardInterrupt

    run = start_batch_run(judge)
    with monkeypatch.context() as patched:
        patched.setattr(BatchClient, method, call_and_die)
        with pytest.raises(KeyboardInterrupt):
            drain(run.pk, seconds=20)
    assert drain_run(run, 1).state == Run.State.RUNNING
    assert len(judge.batches.stored) == (method == "create")  # others leave it to him while he may be alive
    JudgeBatch.objects.update(busy_until=None)
    assert drain_run(run, 3).state == Run.State.COMPLETED
    assert (len(judge.batches.stored), len(judge.batches.requests)) == (1, 6)


@pytest.mark.slow
def test_worker_without_its_lease_sends_nothing(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    upload, claimed_batches = BatchClient.upload, []

    def upload_after_lease(self: BatchClient, lines: bytes) -> str:
        JudgeBatch.objects.update(busy_until=None)  # the lease was over
        claimed_batches.append(JudgeBatch.objects.get())
        assert ledger.claim_batch(claimed_batches[0])
        return upload(self, lines)

    run = start_batch_run(judge)
    with monkeypatch.context() as patched:
        patched.setattr(BatchClient, "upload", upload_after_lease)
        drain(run.pk, seconds=20)
    assert judge.batches.stored == []
    ledger.end_batch(claimed_batches[0], "dropped", "batch_interrupted", unpaid=True)
    assert drain_run(run).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 6


@pytest.mark.slow
def test_reply_stored_before_its_repair_is_not_stored_again(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.enqueue(actions.FAULTS["prose"])
    run = start_batch_run(judge)
    drain_run(run, 1)

    def die(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ledger.units, "lease_again", die)
        with pytest.raises(KeyboardInterrupt):
            drain(run.pk, seconds=20)
    JudgeBatch.objects.update(busy_until=None)
    assert drain_run(run).state == Run.State.COMPLETED
    assert outcomes() == ["ok"] * 6 + ["parse"]


def test_batch_lease_is_held_by_a_single_worker(judge: JudgeServer) -> None:
    drain_run(start_batch_run(judge), 1)
    batch, other_batch = JudgeBatch.objects.get(), JudgeBatch.objects.get()
    assert ledger.claim_batch(batch)
    assert not ledger.claim_batch(other_batch)
    ledger.release_batch(batch, after_seconds=3600)
    assert not ledger.claim_batch(other_batch)  # not due


@pytest.mark.slow
def test_conversations_of_several_calls_continue_in_the_next_batch(judge: JudgeServer) -> None:
    answers = make_answers(3)
    run = remote_run(judge, answers, batch=True, metrics=("claim_support",))
    start(run)
    completed_run = drain_run(run, 6)
    assert completed_run.state in {Run.State.COMPLETED, Run.State.INCOMPLETE}
    assert judge.calls == 0
    assert len(judge.batches.stored) > 1
    single = remote_run(judge, answers, use_cache=False, metrics=("claim_support",))
    start(single)
    drain_run(single, 1)
    assert values(run) == values(single)


def test_each_model_of_an_endpoint_has_its_own_batch(judge: JudgeServer) -> None:
    answers = make_answers(3)
    remote_run(judge, answers, batch=True)
    endpoint = Endpoint.objects.get()
    other_judge = save_judge(answers.project, "other", endpoint, model="judge-2", language="en")
    run = remote_run(judge, answers, batch=True, beside=[other_judge])
    start(run)
    assert drain_run(run).state == Run.State.COMPLETED
    assert set(JudgeBatch.objects.values_list("model", "lines")) == {("judge-1", 3), ("judge-2", 3)}


def test_large_run_is_split_into_several_batches(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MAX_LINES", 4)
    monkeypatch.setattr(ledger, "CHUNK", 3)
    run = drain_run(start_batch_run(judge, 10), 1)
    assert [batch.lines for batch in JudgeBatch.objects.order_by("id")] == [4, 4, 2]
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) == {"batched"}
    assert drain_run(run, 1).state == Run.State.COMPLETED
    assert outcomes() == ["ok"] * 10


def test_periodic_task_enqueues_due_batches_only(judge: JudgeServer) -> None:
    judge.batches.ending = "stuck"
    run = start_batch_run(judge)
    drain_run(run, 1)
    JudgeBatch.objects.update(next_at=timezone.now() + timedelta(hours=1))
    assert requeue_stalled() == []
    JudgeBatch.objects.update(next_at=timezone.now())
    judge.batches.ending = "completed"
    assert requeue_stalled() == [run.pk]
    assert runs_with_overdue_batches() == []
    JudgeBatch.objects.update(next_at=timezone.now() - timedelta(hours=1))
    assert runs_with_overdue_batches() == [run.pk]
    assert drain_run(run, 1).state == Run.State.COMPLETED
    assert requeue_stalled() == []


def test_call_in_a_batch_costs_its_share_of_the_price(judge: JudgeServer, settings: Any, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    entry = 'prices: [{model: judge-1, since: 2026-01-01, input: "1", output: "2"%s}]'
    for price_suffix, expected in ((', batch: "0.5"', Decimal("0.003060")), ("", None)):
        file = tmp_path / f"prices{expected}.yaml"
        file.write_text(entry % price_suffix)
        settings.CONCORD_PRICES = str(file)
        run = drain_run(start_batch_run(judge, 6))
        costs = Reply.objects.filter(attempt__unit__run=run).values_list("cost", flat=True)
        # 6 x (900 x 1 + 60 x 2) / 10^6 / 2 = 6 x 0.00102 / 2
        assert (None if None in costs else sum(costs)) == expected


def test_reply_to_an_outdated_request_is_stored_and_requested_again(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start_batch_run(judge, 2)
    drain_run(run, 1)
    with monkeypatch.context() as patched:  # as after an update that words the requests otherwise
        patched.setattr(ledger, "request_hash", lambda call, repeat: "another")
        drain_run(run, 1)
    assert outcomes() == ["wrong_content"] * 2
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) == {"batched"}
    assert drain_run(run, 1).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 4
