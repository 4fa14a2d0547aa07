"""Runs whose calls go out in batches: the same units, attempts, replies and scores as by single calls, once each."""

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
from tests.evaluation.runs.remote import answers_to, remote_run
from tests.factories import make_answer_set, make_question_set, question_spec
from tests.judge_server import JudgeServer, actions

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are looked at whenever somebody works on their run."""
    monkeypatch.setattr(ledger, "FIRST_POLL_SECONDS", 0.0)


def started(judge: JudgeServer, count: int = 6, **options: Any) -> Run:
    run = remote_run(judge, count, batch=True, **options)
    start(run)
    return run


def drained(run: Run, times: int = 2) -> Run:
    for _ in range(times):
        run = drain(run.pk, seconds=20)
    return run


def values(run: Run) -> list[tuple[Any, ...]]:
    rows = Score.objects.filter(run=run).order_by("answer__question__position", "metric__name")
    return list(rows.values_list("answer__question__external_id", "metric__name", "status", "value", "round"))


def outcomes() -> list[str]:
    return sorted(Reply.objects.filter(attempt__unit__kind="judge").values_list("outcome", flat=True))


def test_a_batch_gives_the_scores_that_single_calls_give(judge: JudgeServer) -> None:
    answers = answers_to(6)
    run = remote_run(judge, answers, batch=True)
    start(run)
    out = drain(run.pk, seconds=20)
    assert out.state == Run.State.RUNNING
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) == {"batched"}
    batch = JudgeBatch.objects.get()
    assert (batch.state, batch.lines, batch.endpoint.base_url) == ("sent", 6, judge.base_url)
    assert batch.expires_at is not None
    assert progress(run).seconds_left is None
    assert Attempt.objects.count() == BatchLine.objects.count() == 6
    assert not Reply.objects.exists()
    done = drain(run.pk, seconds=20)
    assert done.state == Run.State.COMPLETED
    batch.refresh_from_db()
    assert (batch.state, batch.reason, batch.done, batch.failed) == ("ended", "", 6, 0)
    assert judge.calls == 0  # the preflight is counted apart
    assert Attempt.objects.count() == Reply.objects.count() == 6
    single = remote_run(judge, answers, use_cache=False)
    start(single)
    assert drain(single.pk, seconds=20).state == Run.State.COMPLETED
    assert values(run) == values(single)
    assert judge.calls == 6


def test_what_was_paid_for_before_is_answered_from_the_ledger_and_never_sent(judge: JudgeServer) -> None:
    answers = answers_to(4)
    first = remote_run(judge, answers)
    start(first)
    drained(first, 1)
    Endpoint.objects.update(batches=True)
    run = remote_run(judge, answers, batch=True)
    start(run)
    assert drained(run, 1).state == Run.State.COMPLETED
    assert not JudgeBatch.objects.filter(state="sent").exists()
    assert judge.batches.asked["upload"] == 0


def test_identical_calls_stand_in_the_file_once(judge: JudgeServer) -> None:
    run = started_twins(judge)
    assert BatchLine.objects.filter(in_file=True).count() == 1
    assert BatchLine.objects.filter(in_file=False).count() == 1
    assert drained(run, 3).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 1
    assert outcomes() == ["cached", "not_sent", "ok"]


def started_twins(judge: JudgeServer) -> Run:
    """A run of two questions whose requests are the same to the letter, in the hands of the provider."""
    spec = question_spec(1, category="single_hop")
    twins = [spec, spec.model_copy(update={"id": "twin"})]
    answers = make_answer_set(make_question_set(specs=twins), texts=["The capital is city 1."])
    run = remote_run(judge, answers, batch=True)
    start(run)
    return drained(run, 1)


def test_a_line_that_failed_by_a_passing_fault_is_called_for_singly(judge: JudgeServer) -> None:
    judge.enqueue(actions.status(500))
    run = drained(started(judge))
    assert run.state == Run.State.COMPLETED
    assert (len(judge.batches.requests), judge.calls) == (6, 1)
    assert outcomes() == ["ok"] * 6 + ["server_error"]


def test_a_reply_that_does_not_read_is_repaired_by_a_single_call(judge: JudgeServer) -> None:
    judge.enqueue(actions.FAULTS["prose"], actions.FAULTS["truncated"])
    run = drained(started(judge))
    assert run.state == Run.State.COMPLETED
    assert judge.calls == 2
    assert outcomes() == ["ok"] * 6 + ["parse", "truncated"]


def test_a_refusal_fails_as_that_of_a_single_call(judge: JudgeServer) -> None:
    judge.enqueue(actions.FAULTS["refused"])
    run = drained(started(judge))
    assert run.state == Run.State.INCOMPLETE
    assert set(WorkUnit.objects.filter(state="failed").values_list("reason", flat=True)) == {"refused"}
    assert judge.calls == 0


def test_an_expired_batch_is_used_as_far_as_it_came_and_the_rest_goes_out_again(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.most = "expired", 2
    run = started(judge)
    drained(run)
    first, second = JudgeBatch.objects.order_by("id")
    assert (first.state, first.reason, second.state, second.lines) == ("ended", "batch_expired", "sent", 4)
    assert outcomes() == ["not_sent"] * 4 + ["ok"] * 2
    assert set(Reply.objects.filter(outcome="not_sent").values_list("cost", flat=True)) == {0}
    judge.batches.ending = "completed"
    assert drained(run, 1).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 6


def test_what_came_to_nothing_in_two_batches_is_called_for_singly(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.most = "expired", 0
    run = drained(started(judge), 3)
    assert run.state == Run.State.COMPLETED
    assert (JudgeBatch.objects.count(), judge.calls) == (2, 6)


def test_lines_that_are_missing_repeated_or_garbage_leave_each_score_once_and_unknown_costs(
    judge: JudgeServer,
) -> None:
    strange = {"custom_id": "nobody", "response": {"status_code": 200, "body": {}}}
    judge.batches.alter = lambda lines: [lines[0], lines[0], "{nonsense", strange, *lines[1:4], {"custom_id": 5}]
    run = started(judge)
    drained(run)
    judge.batches.alter = list
    assert drained(run, 1).state == Run.State.COMPLETED
    assert [batch.lines for batch in JudgeBatch.objects.order_by("id")] == [6, 2]
    assert outcomes() == ["ok"] * 6
    assert spending(run).unknown_calls >= 2  # the two whose replies never came
    assert Attempt.objects.filter(reply__isnull=True).count() == 2


def test_a_batch_that_was_refused_for_now_is_created_of_the_same_file(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.status(429, retry_after="0"), actions.status(429, retry_after="0"))
    run = drained(started(judge), 4)
    assert run.state == Run.State.COMPLETED
    assert (judge.batches.asked["upload"], judge.batches.asked["create"], len(judge.batches.made)) == (1, 3, 1)
    assert judge.batches.asked["list"] == 0  # nobody has to look for what was refused


def test_a_batch_whose_id_was_lost_on_the_way_is_found_again(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.status(502), done=True)
    run = drained(started(judge), 3)
    assert run.state == Run.State.COMPLETED
    assert (judge.batches.asked["create"], len(judge.batches.made), len(judge.batches.requests)) == (1, 1, 6)


def test_a_batch_that_never_came_to_be_is_created_again(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.status(502))
    run = drained(started(judge), 3)
    assert run.state == Run.State.COMPLETED
    assert (judge.batches.asked["list"], len(judge.batches.made)) == (1, 1)


def test_without_a_list_an_unknown_creation_waits_for_a_person(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.disconnect(), done=True)
    judge.batches.script("list", actions.status(404))
    run = drained(started(judge))
    assert (run.state, run.reason) == (Run.State.PAUSED, "batch_unknown")
    assert JudgeBatch.objects.get().state == "lost"
    assert Attempt.objects.filter(reply__isnull=True).count() == 6  # their cost stays unknown
    assert resume(run)
    assert drained(run).state == Run.State.COMPLETED
    assert spending(run).unknown_calls >= 6


def test_a_batch_the_provider_no_longer_knows_waits_for_a_person(judge: JudgeServer) -> None:
    run = started(judge)
    drained(run, 1)
    judge.batches.script("look", actions.status(404))
    run = drained(run, 1)
    assert (run.state, run.reason) == (Run.State.PAUSED, "batch_lost")
    assert resume(run)
    assert drained(run).state == Run.State.COMPLETED


def test_an_ended_batch_whose_replies_cannot_be_had_at_the_moment_is_read_later(judge: JudgeServer) -> None:
    run = started(judge)
    judge.batches.script("content", actions.status(503), actions.disconnect())
    run = drained(run, 4)
    assert run.state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 6


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [("upload", 401, "unauthorised"), ("upload", 404, "no_batches"), ("create", 403, "forbidden"),
     ("create", 400, "bad_request"), ("look", 401, "unauthorised")],
)  # fmt: skip
def test_what_a_person_has_to_see_to_pauses_the_run_and_loses_nothing(
    judge: JudgeServer, kind: str, status: int, reason: str
) -> None:
    judge.batches.script(kind, actions.status(status))
    run = drained(started(judge))
    assert (run.state, run.reason) == (Run.State.PAUSED, reason)
    WorkUnit.objects.update(not_before=None)
    assert resume(run)
    assert drained(run, 3).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 6


def test_no_credit_pauses_and_the_file_is_used_once_there_is_some(judge: JudgeServer) -> None:
    judge.batches.script("create", actions.status(429, error_code="insufficient_quota"))
    run = drained(started(judge))
    assert (run.state, run.reason) == (Run.State.PAUSED, "no_credit")
    assert resume(run)
    assert drained(run).state == Run.State.COMPLETED
    assert judge.batches.asked["upload"] == 1


def test_cancelling_a_run_cancels_its_batch_and_keeps_what_was_done(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.most = "stuck", 2
    run = started(judge)
    drained(run, 1)
    assert cancel(run)
    run = drained(run, 2)
    assert (run.state, judge.batches.asked["cancel"]) == (Run.State.CANCELLED, 1)
    batch = JudgeBatch.objects.get()
    assert (batch.state, batch.reason) == ("ended", "batch_cancelled")
    states = sorted(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True))
    assert states == ["done"] * 2 + ["skipped"] * 4
    assert outcomes() == ["not_sent"] * 4 + ["ok"] * 2


def test_a_paused_run_sends_and_reads_nothing_until_it_is_resumed(judge: JudgeServer) -> None:
    run = started(judge)
    drained(run, 1)
    assert pause(run)
    drained(run)
    assert judge.batches.asked["look"] == 0
    assert resume(run)
    assert drained(run, 1).state == Run.State.COMPLETED


def test_a_batch_refused_as_a_whole_costs_nothing_and_says_why(judge: JudgeServer) -> None:
    judge.batches.ending = "failed"
    run = started(judge)
    drained(run)
    first = JudgeBatch.objects.order_by("id")[0]
    assert (first.state, first.reason) == ("ended", "batch_failed: invalid_json_line")
    assert outcomes() == ["not_sent"] * 6
    assert drained(run, 3).state == Run.State.COMPLETED
    assert judge.calls == 6  # after two of them, singly


def test_without_an_endpoint_that_takes_batches_such_a_run_is_refused(judge: JudgeServer) -> None:
    remote_run(judge, 1)
    with pytest.raises(DomainError, match="no_batches"):
        remote_run(judge, 1, batch=True)


def test_an_endpoint_that_takes_none_any_more_is_called_singly_and_what_is_out_still_comes_back(
    judge: JudgeServer,
) -> None:
    judge.batches.ending, judge.batches.most = "expired", 4
    run = started(judge)
    drained(run, 1)
    Endpoint.objects.update(batches=False)
    assert drained(run).state == Run.State.COMPLETED
    assert (len(judge.batches.requests), judge.calls, JudgeBatch.objects.count()) == (4, 2, 1)


@pytest.mark.slow
def test_a_reading_that_was_broken_off_goes_on_where_it_stood(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started(judge)
    drained(run, 1)
    monkeypatch.setattr(runner, "CHUNK", 2)
    hear, heard = BatchSession.receive_replies, []

    def breaking(self: BatchSession, lines: Any, replies: Any) -> None:
        heard.append([line.pk for line in lines])
        if len(heard) == 3:
            raise KeyboardInterrupt
        hear(self, lines, replies)

    monkeypatch.setattr(BatchSession, "receive_replies", breaking)
    with pytest.raises(KeyboardInterrupt):
        drain(run.pk, seconds=20)
    assert Reply.objects.count() == 4
    JudgeBatch.objects.update(busy_until=None)  # its lease is over
    assert drained(run, 1).state == Run.State.COMPLETED
    assert heard[3:] == heard[2:3]
    assert outcomes() == ["ok"] * 6
    assert Attempt.objects.count() == 6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["upload", "create"])
def test_a_batch_whose_worker_died_in_the_middle_is_sent_once(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    done = getattr(BatchClient, method)

    def dying(*arguments: Any) -> Any:
        done(*arguments)
        raise KeyboardInterrupt

    run = started(judge)
    with monkeypatch.context() as patched:
        patched.setattr(BatchClient, method, dying)
        with pytest.raises(KeyboardInterrupt):
            drain(run.pk, seconds=20)
    assert drained(run, 1).state == Run.State.RUNNING
    assert len(judge.batches.made) == (method == "create")  # others leave it to him while he may be alive
    JudgeBatch.objects.update(busy_until=None)
    assert drained(run, 3).state == Run.State.COMPLETED
    assert (len(judge.batches.made), len(judge.batches.requests)) == (1, 6)


@pytest.mark.slow
def test_who_has_lost_his_turn_sends_nothing(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    upload, others = BatchClient.upload, []

    def slow(self: BatchClient, lines: bytes) -> str:
        JudgeBatch.objects.update(busy_until=None)  # the lease was over
        others.append(JudgeBatch.objects.get())
        assert ledger.claim_batch(others[0])
        return upload(self, lines)

    run = started(judge)
    with monkeypatch.context() as patched:
        patched.setattr(BatchClient, "upload", slow)
        drain(run.pk, seconds=20)
    assert judge.batches.made == []
    ledger.end_batch(others[0], "dropped", "batch_interrupted", unpaid=True)
    assert drained(run).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 6


@pytest.mark.slow
def test_a_reply_that_was_written_before_its_repair_could_begin_is_not_written_again(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.enqueue(actions.FAULTS["prose"])
    run = started(judge)
    drained(run, 1)

    def dying(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ledger.units, "lease_again", dying)
        with pytest.raises(KeyboardInterrupt):
            drain(run.pk, seconds=20)
    JudgeBatch.objects.update(busy_until=None)
    assert drained(run).state == Run.State.COMPLETED
    assert outcomes() == ["ok"] * 6 + ["parse"]


def test_a_turn_is_had_by_one_at_a_time(judge: JudgeServer) -> None:
    drained(started(judge), 1)
    one, other = JudgeBatch.objects.get(), JudgeBatch.objects.get()
    assert ledger.claim_batch(one)
    assert not ledger.claim_batch(other)
    ledger.release_batch(one, after_seconds=3600)
    assert not ledger.claim_batch(other)  # not due


@pytest.mark.slow
def test_conversations_of_several_calls_go_on_in_the_next_batch(judge: JudgeServer) -> None:
    answers = answers_to(3)
    run = remote_run(judge, answers, batch=True, also=["claim_support"])
    start(run)
    done = drained(run, 6)
    assert done.state in {Run.State.COMPLETED, Run.State.INCOMPLETE}
    assert judge.calls == 0
    assert len(judge.batches.made) > 1
    single = remote_run(judge, answers, use_cache=False, also=["claim_support"])
    start(single)
    drained(single, 1)
    assert values(run) == values(single)


def test_each_model_of_an_endpoint_has_a_batch_of_its_own(judge: JudgeServer) -> None:
    answers = answers_to(3)
    remote_run(judge, answers, batch=True)
    endpoint = Endpoint.objects.get()
    other = save_judge(answers.project, "other", endpoint, model="judge-2", language="en")
    run = remote_run(judge, answers, batch=True, beside=[other])
    start(run)
    assert drained(run).state == Run.State.COMPLETED
    assert set(JudgeBatch.objects.values_list("model", "lines")) == {("judge-1", 3), ("judge-2", 3)}


def test_a_run_is_more_than_one_batch_where_it_does_not_fit_into_one(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MAX_LINES", 4)
    monkeypatch.setattr(ledger, "CHUNK", 3)
    run = drained(started(judge, 10), 1)
    assert [batch.lines for batch in JudgeBatch.objects.order_by("id")] == [4, 4, 2]
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) == {"batched"}
    assert drained(run, 1).state == Run.State.COMPLETED
    assert outcomes() == ["ok"] * 10


def test_the_sweep_rings_for_a_batch_that_is_due_and_for_nothing_before(judge: JudgeServer) -> None:
    judge.batches.ending = "stuck"
    run = started(judge)
    drained(run, 1)
    JudgeBatch.objects.update(next_at=timezone.now() + timedelta(hours=1))
    assert requeue_stalled() == []
    JudgeBatch.objects.update(next_at=timezone.now())
    judge.batches.ending = "completed"
    assert requeue_stalled() == [run.pk]
    assert runs_with_overdue_batches() == []
    JudgeBatch.objects.update(next_at=timezone.now() - timedelta(hours=1))
    assert runs_with_overdue_batches() == [run.pk]
    assert drained(run, 1).state == Run.State.COMPLETED
    assert requeue_stalled() == []


def test_a_call_in_a_batch_costs_its_part_of_the_price(judge: JudgeServer, settings: Any, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    entry = 'prices: [{model: judge-1, since: 2026-01-01, input: "1", output: "2"%s}]'
    for known, expected in ((', batch: "0.5"', Decimal("0.003060")), ("", None)):
        file = tmp_path / f"prices{expected}.yaml"
        file.write_text(entry % known)
        settings.CONCORD_PRICES = str(file)
        run = drained(started(judge, 6))
        costs = Reply.objects.filter(attempt__unit__run=run).values_list("cost", flat=True)
        # 6 x (900 x 1 + 60 x 2) / 10^6 / 2 = 6 x 0.00102 / 2
        assert (None if None in costs else sum(costs)) == expected


def test_a_reply_to_a_request_that_is_no_longer_made_is_kept_and_asked_for_again(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started(judge, 2)
    drained(run, 1)
    with monkeypatch.context() as patched:  # as after an update that words the requests otherwise
        patched.setattr(ledger, "request_hash", lambda call, repeat: "another")
        drained(run, 1)
    assert outcomes() == ["wrong_content"] * 2
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) == {"batched"}
    assert drained(run, 1).state == Run.State.COMPLETED
    assert len(judge.batches.requests) == 4
