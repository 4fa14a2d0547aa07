"""Collecting answers is work: each question once, within the limits of the system, and with a state for every
failure."""

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
from tests.concurrency import WAITS, run_concurrently
from tests.evaluation.systems.asking import make_questions, start_collection_run, toy_system

pytestmark = pytest.mark.django_db(transaction=True)


def drain_run(run: Run, seconds: float = 20) -> Run:
    return drain(run.pk, seconds=seconds)


def test_each_question_is_sent_once_and_scored(rag_service: RagService) -> None:
    run = drain_run(
        start_collection_run(rag_service, k=3, reply={"tokens_in": "usage.prompt_tokens", "model": "model"})
    )
    assert run.state == Run.State.COMPLETED
    assert set(rag_service.asked.values()) == {1}
    answers = list(Answer.objects.filter(answer_set=run.answer_set_id).prefetch_related("contexts"))
    assert len(answers) == len(rag_service.asked) == 6
    assert {a.status for a in answers} == {"ok"}
    assert all(a.contexts.count() == 3 and a.latency_seconds is not None for a in answers)
    assert answers[0].metadata["model"] == "toy-1"
    assert Reply.objects.filter(attempt__unit__run=run).count() == Attempt.objects.filter(unit__run=run).count() == 6
    assert run_figures(run)
    assert Score.objects.filter(run=run).exclude(answer_id__in=[a.pk for a in answers]).count() == 0
    run.answer_set.refresh_from_db()
    assert run.answer_set.content_hash
    assert newest_answers(run.answer_set.question_set, "toy") == run.answer_set


def test_judge_scores_the_collected_answer(rag_service: RagService) -> None:
    question_set = make_questions(2)
    answers = CollectionRequest(
        question_set=question_set, version=toy_system(rag_service, question_set)
    ).create_answer_set(None)
    judge = judge_row(question_set.project, "baseline")
    run = prepare_run(answers, profile_row(question_set.project, "standard"), judge=judge)
    start(run)
    run = drain_run(run)
    assert run.state in Run.ENDED
    judge_scores = Score.objects.filter(run=run, judge_version=judge)
    assert judge_scores.exists()
    assert set(judge_scores.values_list("answer__round", flat=True)) == {0}


def test_failed_answers_have_a_reason_and_only_they_are_retried(rag_service: RagService) -> None:
    faults = {"What is the capital of country 2?": "html", "What is the capital of country 5?": "missing"}
    rag_service.fault_of = lambda question, _: faults.get(question, "")
    run = drain_run(start_collection_run(rag_service))
    assert run.state == Run.State.INCOMPLETE
    failed_answers = Answer.objects.filter(answer_set=run.answer_set_id, status="failed").order_by("question__position")
    assert [(a.text, a.reason) for a in failed_answers] == [
        ("", "wrong_content: not valid JSON, content type text/html"),
        ("", "not_found: HTTP 404"),
    ]
    event = run.events.get(verb="asked")
    assert event.reason == "2 of 6 without an answer: not_found 1, wrong_content 1"
    run.answer_set.refresh_from_db()
    first_hash = run.answer_set.content_hash
    assert first_hash

    faults.clear()
    rag_service.asked.clear()
    retry_failed(run)
    run = drain_run(run)
    assert run.state == Run.State.COMPLETED
    assert sorted(rag_service.asked) == ["What is the capital of country 2?", "What is the capital of country 5?"]
    current_answers = list(run_answers(run))
    assert len(current_answers) == 6
    assert {a.status for a in current_answers} == {"ok"}
    assert all(f.failed == 0 and f.scored + f.not_applicable == 6 for f in run_figures(run).values())
    run.answer_set.refresh_from_db()
    assert run.answer_set.content_hash != first_hash


def test_rules_are_computed_for_the_answer_of_a_retry(rag_service: RagService) -> None:
    """Rules that are not applicable to a failed answer end their unit normally; the new answer must still be scored."""
    rag_service.fault_of = lambda _, times: "html" if times == 1 else ""
    run = drain_run(start_collection_run(rag_service, 2))
    WorkUnit.objects.filter(run=run, kind="rules").update(state="done", reason="")
    retry_failed(run)
    run = drain_run(run)
    assert run.state == Run.State.COMPLETED
    scored = Score.objects.filter(run=run, answer__in=run_answers(run), status="scored")
    assert scored.values("answer").distinct().count() == 2


def test_transient_fault_is_retried_within_the_run(rag_service: RagService) -> None:
    rag_service.fault_of = lambda _, times: "limit" if times == 1 else ""
    run = drain_run(start_collection_run(rag_service, 3))
    assert run.state == Run.State.COMPLETED
    assert set(rag_service.asked.values()) == {2}
    outcomes = Reply.objects.filter(attempt__unit__run=run).values_list("outcome", flat=True)
    assert sorted(outcomes) == ["ok"] * 3 + ["rate_limited"] * 3


def test_long_retry_after_defers_units_and_releases_the_worker(rag_service: RagService) -> None:
    rag_service.fault_of = lambda *_: "long_limit"
    run = start_collection_run(rag_service, 3)
    started = time.monotonic()
    run = drain_run(run)
    assert time.monotonic() - started < 10
    assert run.state == Run.State.RUNNING
    assert not Answer.objects.filter(answer_set=run.answer_set_id).exists()
    assert System.objects.get(name="toy").cooldown_until is not None


def test_refused_key_pauses_the_run_without_losing_answers(rag_service: RagService) -> None:
    rag_service.fault_of = lambda *_: "unauthorised"
    run = drain_run(start_collection_run(rag_service))
    assert (run.state, run.reason) == (Run.State.PAUSED, "unauthorised")
    assert not Answer.objects.filter(answer_set=run.answer_set_id).exists()
    rag_service.fault_of = lambda *_: ""
    assert resume(run)
    assert drain_run(run).state == Run.State.COMPLETED


def test_disallowed_system_pauses_the_run(rag_service: RagService, settings: Any) -> None:
    run = start_collection_run(rag_service)
    settings.CONCORD_SYSTEM_ORIGINS = []
    run = drain_run(run)
    assert (run.state, run.reason) == (Run.State.PAUSED, "system_origin_not_allowed")
    assert not rag_service.asked


def test_run_pauses_while_the_connector_feature_is_off(
    rag_service: RagService, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start_collection_run(rag_service)
    monkeypatch.delitem(CONNECTORS, "http")
    run = drain_run(run)
    assert (run.state, run.reason) == (Run.State.PAUSED, "feature_off")
    assert not rag_service.asked
    monkeypatch.undo()
    assert resume(run)
    assert drain_run(run).state == Run.State.COMPLETED


def test_paused_run_resumes_without_repeating_questions(rag_service: RagService) -> None:
    rag_service.seconds = 0.1
    run = start_collection_run(rag_service, 12)
    System.objects.update(max_concurrency=2)
    question_counts: list[int] = []

    def stop() -> None:
        question_counts.append(len(rag_service.asked))
        pause(Run.objects.get(pk=run.pk))

    drain(run.pk, seconds=20, tick=stop)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert len(rag_service.asked) < 12
    resume(run)
    rag_service.seconds = 0.0
    run = drain_run(run)
    assert run.state == Run.State.COMPLETED
    assert set(rag_service.asked.values()) == {1}
    assert progress(run).ended == 24


def test_cancelled_run_leaves_no_answer_set(rag_service: RagService) -> None:
    run = start_collection_run(rag_service)
    cancel(run)
    assert drain_run(run).state == Run.State.CANCELLED
    assert not rag_service.asked
    with pytest.raises(DomainError, match="no_answers"):
        newest_answers(run.answer_set.question_set, "toy")


def test_only_one_run_collects_an_answer_set(rag_service: RagService) -> None:
    run = start_collection_run(rag_service)
    with pytest.raises(DomainError, match="answers_unfinished"):
        prepare_run(run.answer_set, run.profile_version, judge=None)
    drain_run(run)
    run.answer_set.refresh_from_db()
    second_run = prepare_run(run.answer_set, run.profile_version, judge=None)
    start(second_run)
    assert drain_run(second_run).state == Run.State.COMPLETED
    assert set(rag_service.asked.values()) == {1}


def test_question_that_crashes_its_workers_fails_with_a_reason(rag_service: RagService) -> None:
    run = start_collection_run(rag_service, 2)
    unit = WorkUnit.objects.filter(run=run, kind="ask").earliest("id")
    WorkUnit.objects.filter(pk=unit.pk).update(
        state="leased", tries=5, fence=5, lease_token="0" * 32, lease_until="2020-01-01T00:00:00Z"
    )
    run = drain_run(run)
    failed_answer = Answer.objects.get(answer_set=run.answer_set_id, status="failed")
    assert (failed_answer.question_id, failed_answer.reason) == (unit.question_id, "crash_loop")


def test_retrieval_only_run_stores_only_passages(rag_service: RagService) -> None:
    run = drain_run(start_collection_run(rag_service, kind="retrieval_only", k=2, reply={"answer": ""}))
    assert run.state == Run.State.COMPLETED
    answers = list(run_answers(run).prefetch_related("contexts"))
    assert {(a.status, a.text, a.contexts.count()) for a in answers} == {("ok", "", 2)}


@WAITS
def test_limits_of_a_system_apply_across_eight_workers(rag_service: RagService) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("workers take turns on one embedded database in memory")
    rag_service.seconds = 0.05
    run = start_collection_run(rag_service, 60)
    System.objects.update(max_concurrency=3)
    run_concurrently(*[lambda: drain(run.pk, seconds=30)] * 8)
    assert rag_service.peak <= 3
    assert set(rag_service.asked.values()) == {1}
    assert drain_run(run).state == Run.State.COMPLETED


def test_requests_per_minute_are_limited(rag_service: RagService) -> None:
    run = start_collection_run(rag_service, 4)
    System.objects.update(requests_per_minute=120)
    started = time.monotonic()
    drain_run(run)
    assert time.monotonic() - started > 1.0  # two at once, then two a second


def test_changed_settings_create_the_next_version(rag_service: RagService) -> None:
    question_set = make_questions(1)
    first_version = toy_system(rag_service, question_set)
    assert toy_system(rag_service, question_set) == first_version
    second_version = toy_system(rag_service, question_set, timeout_seconds=2.0)
    imported_version = recorded_version(question_set.project, "toy", None)
    assert [first_version.version, second_version.version, imported_version.version] == [1, 2, 3]
    assert connected_version(question_set.project, "toy") == second_version
    assert connected_version(question_set.project, "toy@1") == first_version
    assert connected_version(question_set.project, "toy@3") is None


def test_invalid_settings_and_disallowed_origins_are_refused(rag_service: RagService) -> None:
    project = make_questions(1).project
    with pytest.raises(InvalidSettings):
        save_system(project, "toy", "http", {"address": "no address"}, None)
    with pytest.raises(DomainError, match="system_origin_not_allowed"):
        save_system(project, "toy", "http", {"address": "https://elsewhere.example/ask"}, None)
    assert not System.objects.filter(project=project).exists()
    assert threading.active_count() < 50
