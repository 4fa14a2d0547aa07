"""Answer relevance in a run: the judge writes questions, the endpoint embeds them, the product compares."""

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
from tests.evaluation.scoring.embedded import answered, drained, endpoint_of, score
from tests.evaluation.scoring.families import profile_of
from tests.judge_server import JudgeServer, actions

pytestmark = pytest.mark.django_db
RELEVANCE = "answer_relevance"
ASKED = "What is the capital of country 1?"
VECTORS = {ASKED: [3.0, 4.0], "near": [4.0, 3.0], "same": [3.0, 4.0], "far": [1.0, 0.0]}


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


def reply(*questions: str, noncommittal: bool = False) -> actions.Action:
    return actions.text(json.dumps({"questions": list(questions), "noncommittal": noncommittal}))


@pytest.fixture
def run(judge_server: JudgeServer, settings: Any) -> Run:
    """A draft run of one answer, judged and embedded by the server."""
    endpoint = endpoint_of(judge_server, settings)
    judge_server.vector_of = lambda text, _: VECTORS[text]
    answers = answered([("It is city 1.", "city 1")])
    judge = save_judge(answers.project, "gpt", endpoint, model="judge-1", language="en")
    return prepare_run(answers, profile_of(answers, reported=[RELEVANCE]), judge=judge)


def test_relevance_is_the_mean_over_the_questions_the_judge_wrote(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(reply("near", "same", "far"))
    assert drained(run).state == Run.State.COMPLETED
    made = score(run, RELEVANCE)
    # (24/25 + 1 + 3/5) / 3
    assert made.value == pytest.approx(256 / 3)
    assert str(made.judge_version) == "gpt@1"
    assert made.rubric_version is not None
    assert made.detail["embeddings"]["model"] == "e5"
    assert list(Finding.objects.filter(score=made).order_by("position").values_list("kind", "text", "verdict")) == [
        ("question", "near", "0.9600"),
        ("question", "same", "1.0000"),
        ("question", "far", "0.6000"),
    ]
    assert ASKED not in judge_server.requests[0].text  # the judge sees the answer alone
    assert judge_server.embedded == [[ASKED, "near", "same", "far"]]


def test_an_answer_that_commits_to_nothing_is_0_and_says_so(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(reply("near", noncommittal=True))
    assert drained(run).state == Run.State.COMPLETED
    assert score(run, RELEVANCE).value == 0.0
    assert score(run, RELEVANCE).detail["noncommittal"] is True
    assert judge_server.embedded == []
    assert Score.objects.filter(run=run, metric__name=RELEVANCE).count() == 1


def test_where_the_embeddings_fail_only_they_are_tried_again(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(reply("near"))
    judge_server.enqueue_embeddings(*[actions.status(400)] * 3)  # both texts at once, then each alone
    assert drained(run).state == Run.State.INCOMPLETE
    assert (score(run, RELEVANCE).status, score(run, RELEVANCE).reason) == ("failed", "bad_request")
    assert retry_failed(run) == 1
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert score(run, RELEVANCE).value == pytest.approx(96.0)
    assert judge_server.calls == 1


def test_where_the_judge_fails_both_steps_are_tried_again(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(actions.status(400))
    assert drained(run).state == Run.State.INCOMPLETE
    assert (score(run, RELEVANCE).status, score(run, RELEVANCE).reason) == ("failed", "bad_request")
    assert set(WorkUnit.objects.filter(run=run).values_list("kind", "state")) == {
        ("judge", "failed"),
        ("embed", "failed"),
    }
    judge_server.enqueue(reply("near"))
    assert retry_failed(run) == 2
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert score(run, RELEVANCE).value == pytest.approx(96.0)


def test_a_judge_that_writes_no_question_fails_the_metric(judge_server: JudgeServer, run: Run) -> None:
    judge_server.enqueue(reply())
    drained(run)
    assert (score(run, RELEVANCE).status, score(run, RELEVANCE).reason) == ("failed", "no_questions")


def test_without_embeddings_nothing_is_asked(judge_server: JudgeServer, run: Run) -> None:
    again = prepare_run(
        run.answer_set, run.profile_version, RunSpec(embeddings="none"), judge=run.judges.get().judge_version
    )
    assert drained(again).state == Run.State.COMPLETED
    assert (score(again, RELEVANCE).status, score(again, RELEVANCE).reason) == ("not_applicable", "no_embeddings")
    assert judge_server.requests == []
