"""An answer that says nothing under the RAGAS profile: the lowest value, and the judge is not asked about it."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.samples import Status
from evaluation.judges.shipping import profile_row
from evaluation.models import Context, Reply, Run, Score
from evaluation.runs.making import prepare_run
from tests.evaluation.runs.remote import remote_run, worked_off
from tests.factories import make_answer_set, make_question_set
from tests.judge_server import JudgeServer
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
SILENT = ("", " \n", "\u200b", "**")


def ragas_run(server: JudgeServer, texts: tuple[str, ...]) -> Run:
    """A draft run of a system that does not retrieve, under RAGAS."""
    answers = make_answer_set(make_question_set(specs=len(texts)), texts=texts)
    Context.objects.filter(answer__answer_set=answers).delete()
    answers.answers.update(retrieves=False)
    judge = remote_run(server, answers).judges.get(primary=True).judge_version
    return prepare_run(answers, profile_row(answers.project, "ragas"), judge=judge)


def test_an_empty_answer_is_the_lowest_under_ragas_without_a_call(judge_server: JudgeServer, settings: Any) -> None:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    run = worked_off(ragas_run(judge_server, SILENT))
    assert run.state == Run.State.COMPLETED
    assert judge_server.calls == 0
    assert set(Reply.objects.values_list("outcome", flat=True)) == {"not_sent"}
    scores = Score.objects.filter(run=run)
    for metric in ("factual_accuracy", "ragas_score"):
        assert set(scores.filter(metric__name=metric).values_list("status", "value")) == {(Status.SCORED, 0.0)}
    support = scores.filter(metric__name="claim_support").values_list("status", "reason")
    assert set(support) == {(Status.NOT_APPLICABLE, "says_nothing")}
