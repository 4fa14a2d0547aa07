"""Answer relevance in a run: the judge generates questions, the endpoint embeds them, and similarities are averaged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.judges.shipped import save_judge
from evaluation.models import Finding, Run, Score, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import retry_failed
from tests.evaluation.scoring.embedded import complete_run, latest_score, make_answer_pairs, make_endpoint
from tests.evaluation.scoring.families import make_profile_version
from tests.judge_server import JudgeServer, actions

pytestmark = pytest.mark.django_db
RELEVANCE = "answer_relevance"
QUESTION = "What is the capital of country 1?"
VECTORS = {QUESTION: [3.0, 4.0], "near": [4.0, 3.0], "same": [3.0, 4.0], "far": [1.0, 0.0]}


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


def questions_reply(*questions: str, noncommittal: bool = False) -> actions.Action:
    return actions.text(json.dumps({"questions": list(questions), "noncommittal": noncommittal}))


@pytest.fixture
def run(judge_server: JudgeServer, settings: Any) -> Run:
    """A draft run of one answer, with judge and embeddings on the same server."""
    endpoint = make_endpoint(judge_server, settings)
    judge_server.vector_of = lambda text, _: VECTORS[text]
    answers = make_answer_pairs([("It is city 1.", "city 1")])
    judge = save_judge(answers.project, "gpt", endpoint, model="judge-1", language="en")
    return prepare_run(answers, make_profile_version(answers, reported=[RELEVANCE]), judge=judge)


def test_relevance_is_the_mean_over_generated_questions(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(questions_reply("near", "same", "far"))
    assert complete_run(run).state == Run.State.COMPLETED
    relevance = latest_score(run, RELEVANCE)
    # (24/25 + 1 + 3/5) / 3
    assert relevance.value == pytest.approx(256 / 3)
    assert str(relevance.judge_version) == "gpt@1"
    assert relevance.rubric_version is not None
    assert relevance.detail["embeddings"]["model"] == "e5"
    assert list(
        Finding.objects.filter(score=relevance).order_by("position").values_list("kind", "text", "verdict")
    ) == [
        ("question", "near", "0.9600"),
        ("question", "same", "1.0000"),
        ("question", "far", "0.6000"),
    ]
    assert QUESTION not in judge_server.requests[0].text  # the judge sees the answer alone
    assert judge_server.embedded == [[QUESTION, "near", "same", "far"]]


def test_noncommittal_answer_scores_0(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(questions_reply("near", noncommittal=True))
    assert complete_run(run).state == Run.State.COMPLETED
    assert latest_score(run, RELEVANCE).value == 0.0
    assert latest_score(run, RELEVANCE).detail["noncommittal"] is True
    assert judge_server.embedded == []
    assert Score.objects.filter(run=run, metric__name=RELEVANCE).count() == 1


def test_retry_after_failed_embeddings_repeats_only_them(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(questions_reply("near"))
    judge_server.enqueue_embeddings(*[actions.status(400)] * 3)  # both texts at once, then each alone
    assert complete_run(run).state == Run.State.INCOMPLETE
    assert (latest_score(run, RELEVANCE).status, latest_score(run, RELEVANCE).reason) == ("failed", "bad_request")
    assert retry_failed(run) == 1
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert latest_score(run, RELEVANCE).value == pytest.approx(96.0)
    assert judge_server.calls == 1


def test_retry_after_a_failed_judge_repeats_both_steps(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(actions.status(400))
    assert complete_run(run).state == Run.State.INCOMPLETE
    assert (latest_score(run, RELEVANCE).status, latest_score(run, RELEVANCE).reason) == ("failed", "bad_request")
    assert set(WorkUnit.objects.filter(run=run).values_list("kind", "state")) == {
        ("judge", "failed"),
        ("embed", "failed"),
    }
    judge_server.enqueue(questions_reply("near"))
    assert retry_failed(run) == 2
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert latest_score(run, RELEVANCE).value == pytest.approx(96.0)


def test_reply_without_questions_fails_the_metric(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(questions_reply())
    complete_run(run)
    assert (latest_score(run, RELEVANCE).status, latest_score(run, RELEVANCE).reason) == ("failed", "no_questions")


def test_run_without_embeddings_makes_no_call(judge_server: JudgeServer, run: Run) -> None:
    run_without_embeddings = prepare_run(
        run.answer_set, run.profile_version, RunSpec(embeddings="none"), judge=run.judges.get().judge_version
    )
    assert complete_run(run_without_embeddings).state == Run.State.COMPLETED
    assert (
        latest_score(run_without_embeddings, RELEVANCE).status,
        latest_score(run_without_embeddings, RELEVANCE).reason,
    ) == ("not_applicable", "no_embeddings")
    assert judge_server.requests == []
