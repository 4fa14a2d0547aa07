"""Asking is work: each question once, within the system's limits, with a state for every failure."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection

from evaluation.connectors.catalogue import CONNECTORS, InvalidSettings
from evaluation.core.errors import DomainError
from evaluation.judges.shipped import judge_row, profile_row
from evaluation.models import Answer, Attempt, Reply, Run, Score, System, WorkUnit
from evaluation.runs.answer_files import recorded_version
from evaluation.runs.creation import CollectionRequest, prepare_run
from evaluation.runs.execution import drain
from evaluation.runs.progress import progress
from evaluation.runs.results import run_figures
from evaluation.runs.selectors import newest_answers
from evaluation.systems.services import connected_version, save_system
from evaluation.worker.lifecycle import cancel, pause, resume, retry_failed, run_answers, start
from examples.rag_service import RagService
from tests.concurrency import WAITS, together
from tests.evaluation.systems.asking import asking_run, questions, toy_system

pytestmark = pytest.mark.django_db(transaction=True)


def drained(run: Run, seconds: float = 20) -> Run:
    return drain(run.pk, seconds=seconds)


def test_every_question_is_asked_once_and_scored(asked: RagService) -> None:
    run = drained(asking_run(asked, k=3, reply={"tokens_in": "usage.prompt_tokens", "model": "model"}))
    assert run.state == Run.State.COMPLETED
    assert set(asked.asked.values()) == {1}
    answers = list(Answer.objects.filter(answer_set=run.answer_set_id).prefetch_related("contexts"))
    assert len(answers) == len(asked.asked) == 6
    assert {a.status for a in answers} == {"ok"}
    assert all(a.contexts.count() == 3 and a.latency_seconds is not None for a in answers)
    assert answers[0].metadata["model"] == "toy-1"
    assert Reply.objects.filter(attempt__unit__run=run).count() == Attempt.objects.filter(unit__run=run).count() == 6
    assert run_figures(run)
    assert Score.objects.filter(run=run).exclude(answer_id__in=[a.pk for a in answers]).count() == 0
    run.answer_set.refresh_from_db()
    assert run.answer_set.content_hash
    assert newest_answers(run.answer_set.question_set, "toy") == run.answer_set


def test_a_judge_sees_the_answer_that_was_asked_for(asked: RagService) -> None:
    questioned = questions(2)
    answers = CollectionRequest(question_set=questioned, version=toy_system(asked, questioned)).create_answer_set(None)
    judge = judge_row(questioned.project, "baseline")
    run = prepare_run(answers, profile_row(questioned.project, "standard"), judge=judge)
    start(run)
    run = drained(run)
    assert run.state in Run.ENDED
    judged = Score.objects.filter(run=run, judge_version=judge)
    assert judged.exists()
    assert set(judged.values_list("answer__round", flat=True)) == {0}


def test_failures_are_answers_with_a_reason_and_are_asked_again_alone(asked: RagService) -> None:
    broken = {"What is the capital of country 2?": "html", "What is the capital of country 5?": "missing"}
    asked.fault_of = lambda question, _: broken.get(question, "")
    run = drained(asking_run(asked))
    assert run.state == Run.State.INCOMPLETE
    lost = Answer.objects.filter(answer_set=run.answer_set_id, status="failed").order_by("question__position")
    assert [(a.text, a.reason) for a in lost] == [
        ("", "wrong_content: no JSON, but text/html"),
        ("", "not_found: HTTP 404"),
    ]
    event = run.events.get(verb="asked")
    assert event.reason == "2 of 6 without an answer: not_found 1, wrong_content 1"
    run.answer_set.refresh_from_db()
    before = run.answer_set.content_hash
    assert before

    broken.clear()
    asked.asked.clear()
    retry_failed(run)
    run = drained(run)
    assert run.state == Run.State.COMPLETED
    assert sorted(asked.asked) == ["What is the capital of country 2?", "What is the capital of country 5?"]
    newest = list(run_answers(run))
    assert len(newest) == 6
    assert {a.status for a in newest} == {"ok"}
    assert all(f.failed == 0 and f.scored + f.not_applicable == 6 for f in run_figures(run).values())
    run.answer_set.refresh_from_db()
    assert run.answer_set.content_hash != before


def test_what_did_not_apply_to_a_lost_answer_is_computed_for_the_one_that_came(asked: RagService) -> None:
    """Rules that do not fail with a lost answer end their unit well; a new answer has to be scored all the same."""
    asked.fault_of = lambda _, times: "html" if times == 1 else ""
    run = drained(asking_run(asked, 2))
    WorkUnit.objects.filter(run=run, kind="rules").update(state="done", reason="")
    retry_failed(run)
    run = drained(run)
    assert run.state == Run.State.COMPLETED
    scored = Score.objects.filter(run=run, answer__in=run_answers(run), status="scored")
    assert scored.values("answer").distinct().count() == 2


def test_a_passing_fault_is_tried_again_within_the_run(asked: RagService) -> None:
    asked.fault_of = lambda _, times: "limit" if times == 1 else ""
    run = drained(asking_run(asked, 3))
    assert run.state == Run.State.COMPLETED
    assert set(asked.asked.values()) == {2}
    outcomes = Reply.objects.filter(attempt__unit__run=run).values_list("outcome", flat=True)
    assert sorted(outcomes) == ["ok"] * 3 + ["rate_limited"] * 3


def test_a_long_rest_defers_and_frees_the_worker(asked: RagService) -> None:
    asked.fault_of = lambda *_: "long_limit"
    run = asking_run(asked, 3)
    started = time.monotonic()
    run = drained(run)
    assert time.monotonic() - started < 10
    assert run.state == Run.State.RUNNING
    assert not Answer.objects.filter(answer_set=run.answer_set_id).exists()
    assert System.objects.get(name="toy").cooldown_until is not None


def test_a_refused_key_pauses_and_nothing_is_lost(asked: RagService) -> None:
    asked.fault_of = lambda *_: "unauthorised"
    run = drained(asking_run(asked))
    assert (run.state, run.reason) == (Run.State.PAUSED, "unauthorised")
    assert not Answer.objects.filter(answer_set=run.answer_set_id).exists()
    asked.fault_of = lambda *_: ""
    assert resume(run)
    assert drained(run).state == Run.State.COMPLETED


def test_a_system_that_may_no_longer_be_asked_pauses_the_run(asked: RagService, settings: Any) -> None:
    run = asking_run(asked)
    settings.CONCORD_SYSTEM_ORIGINS = []
    run = drained(run)
    assert (run.state, run.reason) == (Run.State.PAUSED, "system_origin_not_allowed")
    assert not asked.asked


def test_a_run_waits_for_the_feature_of_its_connector(asked: RagService, monkeypatch: pytest.MonkeyPatch) -> None:
    run = asking_run(asked)
    monkeypatch.delitem(CONNECTORS, "http")
    run = drained(run)
    assert (run.state, run.reason) == (Run.State.PAUSED, "feature_off")
    assert not asked.asked
    monkeypatch.undo()
    assert resume(run)
    assert drained(run).state == Run.State.COMPLETED


def test_a_run_is_paused_in_the_middle_and_goes_on_without_asking_twice(asked: RagService) -> None:
    asked.seconds = 0.1
    run = asking_run(asked, 12)
    System.objects.update(max_concurrency=2)
    seen: list[int] = []

    def stop() -> None:
        seen.append(len(asked.asked))
        pause(Run.objects.get(pk=run.pk))

    drain(run.pk, seconds=20, tick=stop)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert len(asked.asked) < 12
    resume(run)
    asked.seconds = 0.0
    run = drained(run)
    assert run.state == Run.State.COMPLETED
    assert set(asked.asked.values()) == {1}
    assert progress(run).ended == 24


def test_a_cancelled_run_leaves_no_answer_set_to_score(asked: RagService) -> None:
    run = asking_run(asked)
    cancel(run)
    assert drained(run).state == Run.State.CANCELLED
    assert not asked.asked
    with pytest.raises(DomainError, match="no_answers"):
        newest_answers(run.answer_set.question_set, "toy")


def test_only_one_run_asks_for_an_answer_set(asked: RagService) -> None:
    run = asking_run(asked)
    with pytest.raises(DomainError, match="answers_unfinished"):
        prepare_run(run.answer_set, run.profile_version, judge=None)
    drained(run)
    run.answer_set.refresh_from_db()
    again = prepare_run(run.answer_set, run.profile_version, judge=None)
    start(again)
    assert drained(again).state == Run.State.COMPLETED
    assert set(asked.asked.values()) == {1}


def test_a_question_that_kills_its_workers_is_given_up_with_a_reason(asked: RagService) -> None:
    run = asking_run(asked, 2)
    unit = WorkUnit.objects.filter(run=run, kind="ask").earliest("id")
    WorkUnit.objects.filter(pk=unit.pk).update(
        state="leased", tries=5, fence=5, lease_token="0" * 32, lease_until="2020-01-01T00:00:00Z"
    )
    run = drained(run)
    lost = Answer.objects.get(answer_set=run.answer_set_id, status="failed")
    assert (lost.question_id, lost.reason) == (unit.question_id, "crash_loop")


def test_of_a_retriever_only_passages_are_kept(asked: RagService) -> None:
    run = drained(asking_run(asked, kind="retrieval_only", k=2, reply={"answer": ""}))
    assert run.state == Run.State.COMPLETED
    answers = list(run_answers(run).prefetch_related("contexts"))
    assert {(a.status, a.text, a.contexts.count()) for a in answers} == {("ok", "", 2)}


@WAITS
def test_limits_of_a_system_hold_over_eight_workers(asked: RagService) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("workers take turns on one embedded database in memory")
    asked.seconds = 0.05
    run = asking_run(asked, 60)
    System.objects.update(max_concurrency=3)
    together(*[lambda: drain(run.pk, seconds=30)] * 8)
    assert asked.peak <= 3
    assert set(asked.asked.values()) == {1}
    assert drained(run).state == Run.State.COMPLETED


def test_a_rate_per_minute_is_kept(asked: RagService) -> None:
    run = asking_run(asked, 4)
    System.objects.update(requests_per_minute=120)
    started = time.monotonic()
    drained(run)
    assert time.monotonic() - started > 1.0  # two at once, then two a second


def test_equal_settings_are_one_version_and_others_the_next(asked: RagService) -> None:
    questioned = questions(1)
    first = toy_system(asked, questioned)
    assert toy_system(asked, questioned) == first
    second = toy_system(asked, questioned, timeout_seconds=2.0)
    recorded = recorded_version(questioned.project, "toy", None)
    assert [first.version, second.version, recorded.version] == [1, 2, 3]
    assert connected_version(questioned.project, "toy") == second
    assert connected_version(questioned.project, "toy@1") == first
    assert connected_version(questioned.project, "toy@3") is None


def test_settings_are_refused_where_they_make_no_sense_or_lead_elsewhere(asked: RagService) -> None:
    project = questions(1).project
    with pytest.raises(InvalidSettings):
        save_system(project, "toy", "http", {"address": "no address"}, None)
    with pytest.raises(DomainError, match="system_origin_not_allowed"):
        save_system(project, "toy", "http", {"address": "https://elsewhere.example/ask"}, None)
    assert not System.objects.filter(project=project).exists()
    assert threading.active_count() < 50
