"""Similarity in a run over real sockets: batched, cached by content, retried and failed like judge calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evaluation.judges.shipped import baseline_judge
from evaluation.messages.explanations import explain_reason
from evaluation.models import AnswerSet, Attempt, CachedEmbedding, Reply, Run, Score, WorkUnit
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker import steps
from evaluation.worker.lifecycle import cancel, pause, resume, retry_failed, start
from tests.evaluation.judging.embedding.tiny import tiny_model
from tests.evaluation.scoring.embedded import (
    complete_run,
    draft_similarity_run,
    latest_score,
    make_endpoint,
    similarity_profile,
)
from tests.evaluation.scoring.families import make_profile_version
from tests.factories import make_answer, make_answer_set, make_question_set
from tests.judge_server import JudgeServer, ReceivedRequest, actions

pytestmark = pytest.mark.django_db
PAIR = [("sky is blue", "the sky is blue")]
VECTORS = {"sky is blue": [3.0, 4.0], "the sky is blue": [4.0, 3.0]}  # cosine 24 / 25


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


@pytest.fixture
def server(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    """A server that embeds, configured as the only endpoint."""
    make_endpoint(judge_server, settings)
    judge_server.vector_of = lambda text, _: VECTORS.get(text, [float(len(text)), 1.0])
    return judge_server


def set_without_answers(questions: int) -> AnswerSet:
    """An answer set for ``questions`` questions, without answers."""
    question_set = make_question_set(specs=questions)
    answers = make_answer_set(make_question_set(project=question_set.project, specs=0))
    AnswerSet.objects.filter(pk=answers.pk).update(question_set=question_set)
    answers.refresh_from_db()
    return answers


def test_score_stores_the_model_and_its_settings(server: JudgeServer) -> None:
    run = complete_run(draft_similarity_run(PAIR))
    assert run.state == Run.State.COMPLETED
    similarity = latest_score(run)
    assert similarity.value == pytest.approx(96.0)
    assert similarity.detail["cosine"] == pytest.approx(0.96)
    assert similarity.detail["embeddings"] == {"kind": "endpoint", "model": "e5", "origin": server.origin}


def test_texts_are_embedded_once_in_batches(server: JudgeServer) -> None:
    pairs = [(f"answer {n}", f"expected {n % 10}") for n in range(60)]
    run = complete_run(draft_similarity_run(pairs))
    assert Score.objects.filter(run=run, status="scored").count() == 60
    assert [len(texts) for texts in server.embedded] == [64, 6]  # 60 answers and 10 expected ones
    assert len({text for texts in server.embedded for text in texts}) == 70
    assert Attempt.objects.count() == Reply.objects.filter(outcome="ok", raw="").count() == 2


def test_later_run_embeds_only_new_texts(server: JudgeServer) -> None:
    complete_run(draft_similarity_run(PAIR))
    second_run = complete_run(draft_similarity_run(PAIR))
    assert latest_score(second_run).value == pytest.approx(96.0)
    assert len(server.embedded) == 1
    complete_run(draft_similarity_run([("sky is blue", "it is grey")]))
    assert server.embedded[1:] == [["it is grey"]]


def test_each_model_has_its_own_vectors(server: JudgeServer, settings: Any) -> None:
    complete_run(draft_similarity_run(PAIR))
    other_endpoint = make_endpoint(server, settings, "e6")
    run = complete_run(draft_similarity_run(PAIR, embeddings=other_endpoint.name))
    assert [request.body["model"] for request in server.requests] == ["e5", "e6"]
    assert latest_score(run).detail["embeddings"]["model"] == "e6"
    assert CachedEmbedding.objects.count() == 4


def test_rate_limited_call_is_retried(server: JudgeServer) -> None:
    server.enqueue_embeddings(actions.status(429, retry_after="0"), actions.status(503, retry_after="0"))
    run = complete_run(draft_similarity_run(PAIR))
    assert latest_score(run).value == pytest.approx(96.0)
    assert list(Reply.objects.order_by("id").values_list("outcome", flat=True)) == ["rate_limited", "overloaded", "ok"]
    assert list(Attempt.objects.order_by("id").values_list("number", flat=True)) == [1, 2, 3]


def test_permanent_failure_is_stored_until_a_retry(server: JudgeServer) -> None:
    server.enqueue_embeddings(*[actions.status(400)] * 3)  # both texts at once, then each alone
    run = complete_run(draft_similarity_run(PAIR))
    assert run.state == Run.State.INCOMPLETE
    failed_score = latest_score(run)
    assert (failed_score.status, failed_score.value, failed_score.reason) == ("failed", None, "bad_request")
    assert Attempt.objects.count() == 3
    assert retry_failed(run) == 1
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert (latest_score(run).round, latest_score(run).value) == (1, pytest.approx(96.0))


def test_refused_text_fails_alone(server: JudgeServer) -> None:
    async def refuse_poison(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if "poison" in request.body["input"]:
            return await actions.status(400)(request, http)
        data = [{"index": i, "embedding": [1.0, float(len(t))]} for i, t in enumerate(request.body["input"])]
        return web.json_response({"data": data})

    server.enqueue_embeddings(*[refuse_poison] * 10)
    run = complete_run(draft_similarity_run([("fine", "good"), ("poison", "good")]))
    assert dict(Score.objects.filter(run=run).values_list("answer__text", "status")) == {
        "fine": "scored",
        "poison": "failed",
    }
    assert Score.objects.get(run=run, status="failed").reason == "bad_request"


@pytest.mark.parametrize(("stop", "state"), [(cancel, "skipped"), (pause, "todo")])
def test_no_call_is_sent_after_a_stop(
    server: JudgeServer, settings: Any, monkeypatch: pytest.MonkeyPatch, stop: Callable[[Run], bool], state: str
) -> None:
    settings.CONCORD_DISPATCHER = "django_q"
    monkeypatch.setattr(steps, "TICK_SECONDS", 0.0)
    # Each text of the refused call would be sent alone.
    server.enqueue_embeddings(*[actions.status(400)] * 100)
    run = draft_similarity_run([(f"answer {n}", f"expected {n}") for n in range(20)])
    start(run)

    counts_at_stop: list[int] = []

    def stop_after_first_call() -> None:
        if server.requests and not counts_at_stop:
            counts_at_stop.append(len(server.requests))
            stop(Run.objects.get(pk=run.pk))

    drain(run.pk, seconds=30, tick=stop_after_first_call)
    # Only the call in flight at the stop.
    assert len(server.requests) <= counts_at_stop[0] + 1
    assert set(WorkUnit.objects.filter(run=run).values_list("state", flat=True)) == {state}


def test_vectors_of_different_lengths_fail_the_score(server: JudgeServer) -> None:
    complete_run(draft_similarity_run([("sky is blue", "sky is blue")]))
    server.vector_of = lambda *_: [1.0, 2.0, 3.0]
    run = complete_run(draft_similarity_run(PAIR))
    assert (latest_score(run).status, latest_score(run).reason) == ("failed", "embedding_space")


def test_refused_key_pauses_the_run(server: JudgeServer) -> None:
    server.enqueue_embeddings(actions.status(401))
    run = complete_run(draft_similarity_run(PAIR))
    assert (run.state, run.reason) == (Run.State.PAUSED, "unauthorised")
    assert not Score.objects.filter(run=run).exists()
    assert resume(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_long_retry_after_defers_the_unit(server: JudgeServer) -> None:
    server.enqueue_embeddings(actions.status(429, retry_after="300"))
    run = complete_run(draft_similarity_run(PAIR))
    assert run.state == Run.State.RUNNING
    unit = WorkUnit.objects.get(run=run)
    assert (unit.state, unit.tries, unit.not_before is not None) == ("todo", 0, True)
    drain(run.pk, seconds=30)
    assert len(server.embedded) == 1


def test_a_missing_key_pauses_the_run_before_anything_is_sent(server: JudgeServer, settings: Any) -> None:
    endpoint = make_endpoint(server, settings)
    endpoint.key_env = "CONCORD_KEY_MISSING"
    endpoint.save()
    run = complete_run(draft_similarity_run(PAIR, embeddings=endpoint.name))
    assert (run.state, run.reason) == (Run.State.PAUSED, "key_missing")
    assert server.requests == []


def test_changed_model_of_the_endpoint_pauses_the_run(judge_server: JudgeServer, settings: Any) -> None:
    endpoint = make_endpoint(judge_server, settings)
    run = draft_similarity_run(PAIR)
    endpoint.embedding_model = "e7"
    endpoint.save()
    paused_run = complete_run(run)
    assert (paused_run.state, paused_run.reason) == (Run.State.PAUSED, "embedding_changed")
    assert judge_server.requests == []


def test_similarity_without_embeddings_is_not_applicable_with_a_reason() -> None:
    run = complete_run(draft_similarity_run(PAIR))
    assert run.state == Run.State.COMPLETED
    similarity = latest_score(run)
    assert (similarity.status, similarity.value, similarity.reason) == ("not_applicable", None, "no_embeddings")
    assert "No embedding endpoint" in str(explain_reason(similarity.reason))


def test_empty_and_failed_answers_are_not_applicable_without_embeddings() -> None:
    answers = set_without_answers(3)
    answered_question, empty_question, failed_question = answers.question_set.questions.order_by("position")
    make_answer(answers, answered_question, "The price rises.")
    make_answer(answers, empty_question, "")
    make_answer(answers, failed_question, "", status="failed", reason="timeout")
    profile = make_profile_version(answers, reported=["semantic_similarity", "answer_relevance"])
    run = complete_run(prepare_run(answers, profile, judge=baseline_judge(answers.project, "en")))
    rows = Score.objects.filter(run=run).values_list("status", "value", "reason")
    assert list(rows) == [("not_applicable", None, "no_embeddings")] * 6
    assert run.state == Run.State.COMPLETED


def test_the_local_english_model_scores_english_and_refuses_korean(tmp_path: Path, settings: Any) -> None:
    settings.CONCORD_LOCAL_MODEL = str(tiny_model(tmp_path / "tiny"))
    run = complete_run(
        draft_similarity_run([("the price rises", "the price rises"), ("원금은 보장됩니다", "원금 보장")])
    )
    assert run.state == Run.State.COMPLETED
    english, korean = Score.objects.filter(run=run).order_by("answer__question__position")
    assert english.value == pytest.approx(100.0, abs=1e-4)
    assert (korean.status, korean.value, korean.reason) == ("not_applicable", None, "language")
    assert {s.detail["embeddings"]["model"] for s in (english, korean)} == {"tiny"}
    assert {s.detail["embeddings"]["kind"] for s in (english, korean)} == {"local"}
    assert not Attempt.objects.exists()


def test_failed_answer_fails_with_the_upstream_reason(server: JudgeServer) -> None:
    answers = set_without_answers(1)
    make_answer(answers, answers.question_set.questions.get(), "", status="failed", reason="reset")
    run = complete_run(prepare_run(answers, similarity_profile(answers), judge=None))
    assert (latest_score(run).status, latest_score(run).reason) == ("failed", "upstream: reset")
    assert server.requests == []
