"""Similarity in a run, over real sockets: batched, kept by content, retried and failed like judge calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evaluation.judges.shipped import baseline_judge
from evaluation.messages.explanations import explain_reason
from evaluation.models import AnswerSet, Attempt, CachedEmbedding, Reply, Run, Score, WorkUnit
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import resume, retry_failed
from tests.evaluation.judging.embedding.tiny import tiny_model
from tests.evaluation.scoring.embedded import drafted, drained, endpoint_of, score, similar
from tests.evaluation.scoring.families import profile_of
from tests.factories import make_answer, make_answer_set, make_question_set
from tests.judge_server import JudgeServer, Received, actions

pytestmark = pytest.mark.django_db
PAIR = [("sky is blue", "the sky is blue")]
VECTORS = {"sky is blue": [3.0, 4.0], "the sky is blue": [4.0, 3.0]}  # cosine 24 / 25


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


@pytest.fixture
def server(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    """A server that embeds, configured as the only endpoint."""
    endpoint_of(judge_server, settings)
    judge_server.vector_of = lambda text, _: VECTORS.get(text, [float(len(text)), 1.0])
    return judge_server


def lacking(questions: int) -> AnswerSet:
    """An answer set to so many questions, still without answers."""
    asked = make_question_set(specs=questions)
    answers = make_answer_set(make_question_set(project=asked.project, specs=0))
    AnswerSet.objects.filter(pk=answers.pk).update(question_set=asked)
    answers.refresh_from_db()
    return answers


def test_a_score_bears_the_model_and_its_settings(server: JudgeServer) -> None:
    run = drained(drafted(PAIR))
    assert run.state == Run.State.COMPLETED
    made = score(run)
    assert made.value == pytest.approx(96.0)
    assert made.detail["cosine"] == pytest.approx(0.96)
    assert made.detail["embeddings"] == {"kind": "endpoint", "model": "e5", "origin": server.origin}


def test_texts_go_out_in_batches_and_each_only_once(server: JudgeServer) -> None:
    pairs = [(f"answer {n}", f"expected {n % 10}") for n in range(60)]
    run = drained(drafted(pairs))
    assert Score.objects.filter(run=run, status="scored").count() == 60
    assert [len(texts) for texts in server.embedded] == [64, 6]  # 60 answers and 10 expected ones
    assert len({text for texts in server.embedded for text in texts}) == 70
    assert Attempt.objects.count() == Reply.objects.filter(outcome="ok", raw="").count() == 2


def test_a_later_run_asks_only_for_what_is_not_known(server: JudgeServer) -> None:
    drained(drafted(PAIR))
    again = drained(drafted(PAIR))
    assert score(again).value == pytest.approx(96.0)
    assert len(server.embedded) == 1
    drained(drafted([("sky is blue", "it is grey")]))
    assert server.embedded[1:] == [["it is grey"]]


def test_another_model_is_another_space(server: JudgeServer, settings: Any) -> None:
    drained(drafted(PAIR))
    other = endpoint_of(server, settings, "e6")
    run = drained(drafted(PAIR, embeddings=other.name))
    assert [request.body["model"] for request in server.requests] == ["e5", "e6"]
    assert score(run).detail["embeddings"]["model"] == "e6"
    assert CachedEmbedding.objects.count() == 4


def test_a_refused_call_is_tried_again(server: JudgeServer) -> None:
    server.enqueue_embeddings(actions.status(429, retry_after="0"), actions.status(503, retry_after="0"))
    run = drained(drafted(PAIR))
    assert score(run).value == pytest.approx(96.0)
    assert list(Reply.objects.order_by("id").values_list("outcome", flat=True)) == ["rate_limited", "overloaded", "ok"]
    assert list(Attempt.objects.order_by("id").values_list("number", flat=True)) == [1, 2, 3]


def test_what_stays_broken_is_a_failure_with_its_reason_until_it_is_retried(server: JudgeServer) -> None:
    server.enqueue_embeddings(*[actions.status(400)] * 3)  # both texts at once, then each alone
    run = drained(drafted(PAIR))
    assert run.state == Run.State.INCOMPLETE
    lost = score(run)
    assert (lost.status, lost.value, lost.reason) == ("failed", None, "bad_request")
    assert Attempt.objects.count() == 3
    assert retry_failed(run) == 1
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert (score(run).round, score(run).value) == (1, pytest.approx(96.0))


def test_a_text_that_the_server_will_not_have_fails_alone(server: JudgeServer) -> None:
    async def picky(request: Received, http: web.Request) -> web.StreamResponse:
        if "poison" in request.body["input"]:
            return await actions.status(400)(request, http)
        data = [{"index": i, "embedding": [1.0, float(len(t))]} for i, t in enumerate(request.body["input"])]
        return web.json_response({"data": data})

    server.enqueue_embeddings(*[picky] * 10)
    run = drained(drafted([("fine", "good"), ("poison", "good")]))
    assert dict(Score.objects.filter(run=run).values_list("answer__text", "status")) == {
        "fine": "scored",
        "poison": "failed",
    }
    assert Score.objects.get(run=run, status="failed").reason == "bad_request"


def test_vectors_of_two_lengths_are_a_failure_and_no_crash(server: JudgeServer) -> None:
    drained(drafted([("sky is blue", "sky is blue")]))
    server.vector_of = lambda *_: [1.0, 2.0, 3.0]
    run = drained(drafted(PAIR))
    assert (score(run).status, score(run).reason) == ("failed", "embedding_space")


def test_a_refused_key_pauses_the_run_until_somebody_acts(server: JudgeServer) -> None:
    server.enqueue_embeddings(actions.status(401))
    run = drained(drafted(PAIR))
    assert (run.state, run.reason) == (Run.State.PAUSED, "unauthorised")
    assert not Score.objects.filter(run=run).exists()
    assert resume(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_a_server_that_wants_to_be_left_alone_is_left_alone(server: JudgeServer) -> None:
    server.enqueue_embeddings(actions.status(429, retry_after="300"))
    run = drained(drafted(PAIR))
    assert run.state == Run.State.RUNNING
    unit = WorkUnit.objects.get(run=run)
    assert (unit.state, unit.tries, unit.not_before is not None) == ("todo", 0, True)
    drain(run.pk, seconds=30)
    assert len(server.embedded) == 1


def test_a_missing_key_pauses_the_run_before_anything_is_sent(server: JudgeServer, settings: Any) -> None:
    other = endpoint_of(server, settings)
    other.key_env = "CONCORD_KEY_MISSING"
    other.save()
    run = drained(drafted(PAIR, embeddings=other.name))
    assert (run.state, run.reason) == (Run.State.PAUSED, "key_missing")
    assert server.requests == []


def test_another_model_behind_the_endpoint_pauses_the_run(judge_server: JudgeServer, settings: Any) -> None:
    endpoint = endpoint_of(judge_server, settings)
    run = drafted(PAIR)
    endpoint.embedding_model = "e7"
    endpoint.save()
    paused = drained(run)
    assert (paused.state, paused.reason) == (Run.State.PAUSED, "embedding_changed")
    assert judge_server.requests == []


def test_without_embeddings_similarity_is_not_applicable_and_says_why() -> None:
    run = drained(drafted(PAIR))
    assert run.state == Run.State.COMPLETED
    made = score(run)
    assert (made.status, made.value, made.reason) == ("not_applicable", None, "no_embeddings")
    assert "No embedding endpoint" in str(explain_reason(made.reason))


def test_without_embeddings_neither_an_empty_nor_a_lost_answer_is_scored_or_fails() -> None:
    answers = lacking(3)
    said, empty, lost = answers.question_set.questions.order_by("position")
    make_answer(answers, said, "The price rises.")
    make_answer(answers, empty, "")
    make_answer(answers, lost, "", status="failed", reason="timeout")
    profile = profile_of(answers, reported=["semantic_similarity", "answer_relevance"])
    run = drained(prepare_run(answers, profile, judge=baseline_judge(answers.project, "en")))
    found = Score.objects.filter(run=run).values_list("status", "value", "reason")
    assert list(found) == [("not_applicable", None, "no_embeddings")] * 6
    assert run.state == Run.State.COMPLETED


def test_the_local_english_model_scores_english_and_refuses_korean(tmp_path: Path, settings: Any) -> None:
    settings.CONCORD_LOCAL_MODEL = str(tiny_model(tmp_path / "tiny"))
    run = drained(drafted([("the price rises", "the price rises"), ("원금은 보장됩니다", "원금 보장")]))
    assert run.state == Run.State.COMPLETED
    english, korean = Score.objects.filter(run=run).order_by("answer__question__position")
    assert english.value == pytest.approx(100.0, abs=1e-4)
    assert (korean.status, korean.value, korean.reason) == ("not_applicable", None, "language")
    assert {s.detail["embeddings"]["model"] for s in (english, korean)} == {"tiny"}
    assert {s.detail["embeddings"]["kind"] for s in (english, korean)} == {"local"}
    assert not Attempt.objects.exists()


def test_an_answer_the_system_failed_on_fails_with_the_systems_reason(server: JudgeServer) -> None:
    answers = lacking(1)
    make_answer(answers, answers.question_set.questions.get(), "", status="failed", reason="reset")
    run = drained(prepare_run(answers, similar(answers), judge=None))
    assert (score(run).status, score(run).reason) == ("failed", "upstream: reset")
    assert server.requests == []
