"""Empty answers under the RAGAS profile get the lowest value without a judge call."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.samples import Status
from evaluation.judges.shipped import profile_row
from evaluation.models import Attempt, Reply, Run, Score
from evaluation.runs.creation import prepare_run
from tests.evaluation.runs.remote import remote_run, start_and_drain
from tests.factories import make_answer_set, make_question_set, question_spec
from tests.judge_server import JudgeServer
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
EMPTY_TEXTS = ("", " \n", "\u200b", "**")
PASSAGE_FAMILIES = {"passages", "statements"}  # families that judge the retrieved passages, whatever the answer says


def test_empty_answer_gets_the_lowest_ragas_value_without_a_call(judge_server: JudgeServer, settings: Any) -> None:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    specs = [question_spec(number, category="single_hop") for number in range(1, len(EMPTY_TEXTS) + 1)]
    answers = make_answer_set(make_question_set(specs=specs), texts=EMPTY_TEXTS)
    judge = remote_run(judge_server, answers).judges.get(primary=True).judge_version
    run = start_and_drain(prepare_run(answers, profile_row(answers.project, "ragas"), judge=judge))
    assert run.state == Run.State.COMPLETED
    replies = Reply.objects.filter(attempt__unit__run=run).values_list(
        "attempt__unit__run_judge__rubric_version__family", "outcome"
    )
    assert set(replies) == {(family, "ok") for family in PASSAGE_FAMILIES}
    assert not Attempt.objects.filter(reply=None).exists()
    scores = Score.objects.filter(run=run)
    for metric in ("factual_accuracy", "ragas_score"):
        assert set(scores.filter(metric__name=metric).values_list("status", "value")) == {(Status.SCORED, 0.0)}
    support = scores.filter(metric__name="claim_support").values_list("status", "reason")
    assert set(support) == {(Status.NOT_APPLICABLE, "says_nothing")}
