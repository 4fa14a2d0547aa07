"""J2: what is no value of a metric's scale fails that metric by scale, over real sockets and in the database; its text
is kept, nothing is clamped or rounded, and the reply's other metrics stand."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.samples import Status
from evaluation.models import Reply, Run, Score
from evaluation.runs.creation import prepare_run
from tests.evaluation.runs.remote import answers_to, remote_run, worked_off
from tests.evaluation.scoring.families import profile_of
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.review.builders import make_report

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
OFF = ("7", '"4"', "4.7", "true", "null", "NaN", "-1")


@pytest.fixture
def judge(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    return judge_server


def found(run: Run, metric: str) -> list[tuple[str, float | None, str, object]]:
    rows = Score.objects.filter(run=run, metric__name=metric, judge_version__name="remote")
    return sorted((row.status, row.value, row.reason, row.detail.get("got")) for row in rows)


def test_j2_a_score_off_a_scale_of_levels_fails_that_metric_alone(judge: JudgeServer) -> None:
    good = '{"reason": "r", "score": 4}'
    scores = [f'{{"reason": "r", "score": {value}}}' for value in OFF]
    sent = [f'{{"correctness": {off}, "faithfulness": {good}, "completeness": {good}}}' for off in scores]
    judge.enqueue(*map(actions.text, sent))
    run = worked_off(remote_run(judge, len(OFF)))
    assert judge.calls == len(OFF)  # a level is not asked for again: the reply reads
    assert found(run, "correctness") == sorted((Status.FAILED, None, "scale", value) for value in OFF)
    assert found(run, "faithfulness") == [(Status.SCORED, 4.0, "r", None)] * len(OFF)
    kept = Reply.objects.filter(attempt__unit__run_judge__judge_version__name="remote")
    assert sorted(kept.values_list("raw", flat=True)) == sorted(sent)
    assert run.state == Run.State.INCOMPLETE
    report = make_report(run)
    assert report.overall.judge_only.value is None
    (line,) = [one for one in report.metrics if one.name == "correctness"]
    assert (line.coverage.scored, line.coverage.failed) == (0, len(OFF))


def test_j2_a_metric_that_allows_decimals_takes_them_and_nothing_else(judge: JudgeServer) -> None:
    given = ("0.85", "0", "1", "1.0", *OFF[:2], *OFF[3:])
    for value in given:
        judge.enqueue(actions.text(f'{{"answer_relevancy": {{"reason": "r", "score": {value}}}}}'))
    answers = answers_to(len(given))
    version = remote_run(judge, answers).judges.get(primary=True).judge_version
    run = worked_off(prepare_run(answers, profile_of(answers, reported=["answer_relevancy"]), judge=version))
    scored = [(Status.SCORED, value, "r", None) for value in (0.0, 0.85, 1.0, 1.0)]
    failed = [(Status.FAILED, None, "scale", value) for value in (*OFF[:2], *OFF[3:])]
    assert found(run, "answer_relevancy") == [*sorted(failed), *scored]
