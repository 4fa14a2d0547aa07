"""Values off the scale fail only their metric, over real sockets and in the database. The text is stored, and nothing
is clamped or rounded."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.samples import Status
from evaluation.models import Reply, Run, Score
from evaluation.runs.creation import prepare_run
from tests.evaluation.runs.remote import make_answers, remote_run, start_and_drain
from tests.evaluation.scoring.families import make_profile_version
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.review.builders import make_report

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
INVALID_VALUES = ("7", '"4"', "4.7", "true", "null", "NaN", "-1")


@pytest.fixture
def judge(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    return judge_server


def score_rows(run: Run, metric: str) -> list[tuple[str, float | None, str, object]]:
    rows = Score.objects.filter(run=run, metric__name=metric, judge_version__name="remote")
    return sorted((row.status, row.value, row.reason, row.detail.get("got")) for row in rows)


def test_score_off_a_level_scale_fails_only_its_metric(judge: JudgeServer) -> None:
    valid_verdict = '{"reason": "r", "score": 4}'
    scores = [f'{{"reason": "r", "score": {value}}}' for value in INVALID_VALUES]
    reply_texts = [
        f'{{"correctness": {verdict}, "faithfulness": {valid_verdict}, "completeness": {valid_verdict}}}'
        for verdict in scores
    ]
    judge.enqueue(*map(actions.text, reply_texts))
    run = start_and_drain(remote_run(judge, len(INVALID_VALUES)))
    assert judge.calls == len(INVALID_VALUES)  # a level is not asked for again: the reply reads
    assert score_rows(run, "correctness") == sorted((Status.FAILED, None, "scale", value) for value in INVALID_VALUES)
    assert score_rows(run, "faithfulness") == [(Status.SCORED, 4.0, "r", None)] * len(INVALID_VALUES)
    replies = Reply.objects.filter(attempt__unit__run_judge__judge_version__name="remote")
    assert sorted(replies.values_list("raw", flat=True)) == sorted(reply_texts)
    assert run.state == Run.State.INCOMPLETE
    report = make_report(run)
    assert report.overall.judge_only.value is None
    (line,) = [metric for metric in report.metrics if metric.name == "correctness"]
    assert (line.coverage.scored, line.coverage.failed) == (0, len(INVALID_VALUES))


def test_real_scale_accepts_decimals_and_nothing_else(judge: JudgeServer) -> None:
    raw_values = ("0.85", "0", "1", "1.0", *INVALID_VALUES[:2], *INVALID_VALUES[3:])
    for value in raw_values:
        judge.enqueue(actions.text(f'{{"answer_relevancy": {{"reason": "r", "score": {value}}}}}'))
    answers = make_answers(len(raw_values))
    version = remote_run(judge, answers).judges.get(primary=True).judge_version
    run = start_and_drain(
        prepare_run(answers, make_profile_version(answers, reported=["answer_relevancy"]), judge=version)
    )
    scored = [(Status.SCORED, value, "r", None) for value in (0.0, 0.85, 1.0, 1.0)]
    failed = [(Status.FAILED, None, "scale", value) for value in (*INVALID_VALUES[:2], *INVALID_VALUES[3:])]
    assert score_rows(run, "answer_relevancy") == [*sorted(failed), *scored]
