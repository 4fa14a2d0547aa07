"""Runs with expected levels from token probabilities: stored with replies and kept apart from stated levels."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.judging.calls import JudgeReply
from evaluation.models import Attempt, JudgeVersion, MetricDefinition, Preflight, Reply, Run, Score, WorkUnit
from evaluation.runs.execution import drain
from evaluation.scoring.judges import earlier_replies
from evaluation.worker.lifecycle import retry_failed
from review.comparisons.values import differing_versions
from review.evidence.scorers import combined_scores
from tests.evaluation.runs.remote import make_answers, remote_run, start_and_drain
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.review.builders import make_report

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
CHANCES = {
    "correctness": {"4": 0.75, "5": 0.25},
    "faithfulness": {"5": 1.0},
    "completeness": {"1": 0.6, "3": 0.35},
}


@pytest.fixture
def judge(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    judge_server.otherwise = actions.weighted_levels(CHANCES)
    return judge_server


def values(run: Run) -> dict[str, float | None]:
    rows = Score.objects.filter(run=run, judge_version__isnull=False).order_by("round")
    return dict(rows.values_list("metric__name", "value"))


def test_expected_scores_store_probabilities_with_the_reply(judge: JudgeServer) -> None:
    run = start_and_drain(remote_run(judge, 1, method="expected"))
    assert run.state == Run.State.COMPLETED
    # 4 x .75 + 5 x .25; (1 x .6 + 3 x .35) / .95
    assert values(run) == {
        "correctness": 4.25, "faithfulness": 5.0, "completeness": pytest.approx(1.65 / 0.95, abs=1e-9),
    }  # fmt: skip
    assert Reply.objects.get().chances == CHANCES
    detail = Score.objects.get(metric__name="completeness").detail
    assert (detail["said"], detail["mass"], detail["chances"]) == (1.0, 0.95, CHANCES["completeness"])


def test_repeated_run_uses_stored_probabilities(judge: JudgeServer) -> None:
    answers = make_answers(2)
    first_run = start_and_drain(remote_run(judge, answers, method="expected"))
    repeated_run = start_and_drain(remote_run(judge, answers, method="expected"))
    assert judge.calls == 2
    assert set(Reply.objects.filter(attempt__unit__run=repeated_run).values_list("outcome", flat=True)) == {"cached"}
    assert values(repeated_run) == values(first_run)


def test_stated_and_expected_levels_share_no_reply_and_no_judge(judge: JudgeServer) -> None:
    answers = make_answers(1)
    stated_run = start_and_drain(remote_run(judge, answers))
    expected_run = start_and_drain(remote_run(judge, answers, method="expected"))
    assert judge.calls == 2
    assert values(stated_run) == {"correctness": 4.0, "faithfulness": 5.0, "completeness": 1.0}
    stated_judge, expected_judge = JudgeVersion.objects.filter(name="remote").order_by("version")
    assert (stated_judge.version, expected_judge.version, stated_judge.content_hash != expected_judge.content_hash) == (
        1,
        2,
        True,
    )
    assert [run.judges.get().method for run in (stated_run, expected_run)] == ["single", "expected"]
    differing = differing_versions([make_report(stated_run), make_report(expected_run)])
    assert differing["method"] == ["single", "expected"]


def test_mean_of_repeats_is_a_different_method(judge: JudgeServer) -> None:
    answers = make_answers(1)
    runs = [start_and_drain(remote_run(judge, answers, repeat=repeat)) for repeat in (1, 3)]
    assert [run.judges.get().method for run in runs] == ["single", "mean_of_3"]
    assert differing_versions([make_report(run) for run in runs])["method"] == ["single", "mean_of_3"]
    hashes = Preflight.objects.order_by("id").values_list("judge_hash", flat=True)
    assert len(set(hashes)) == 2


def test_low_probability_mass_fails_and_can_be_retried(judge: JudgeServer) -> None:
    judge.otherwise = actions.weighted_levels({**CHANCES, "correctness": {"4": 0.5, "yes": 0.5}})
    run = start_and_drain(remote_run(judge, 1, method="expected"))
    failed_score = Score.objects.get(metric__name="correctness")
    assert (failed_score.status, failed_score.value, failed_score.reason, failed_score.detail["mass"]) == (
        "failed",
        None,
        "low_mass",
        0.5,
    )
    assert (run.state, run.reason) == (Run.State.INCOMPLETE, "correctness: 1/1")
    judge.otherwise = actions.weighted_levels(CHANCES)
    assert retry_failed(run) == 1
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert values(run)["correctness"] == 4.25


def test_server_without_probabilities_pauses_the_run_in_the_preflight(judge: JudgeServer) -> None:
    judge.preflight = actions.without("logprobs")
    run = start_and_drain(remote_run(judge, 2, method="expected"))
    assert (run.state, run.reason, judge.calls) == (Run.State.PAUSED, "no_logprobs", 0)
    assert not Attempt.objects.exists()


def test_later_reply_without_probabilities_fails_its_levels(judge: JudgeServer) -> None:
    judge.otherwise = actions.weighted_levels(CHANCES, logprobs=False)
    run = start_and_drain(remote_run(judge, 1, method="expected"))
    assert run.state == Run.State.INCOMPLETE
    assert set(values(run).values()) == {None}
    reasons = Score.objects.filter(run=run, judge_version__isnull=False).values_list("reason", flat=True)
    assert set(reasons) == {"no_logprobs"}


def test_resumed_unit_uses_stored_probabilities(judge: JudgeServer) -> None:
    start_and_drain(remote_run(judge, 1, method="expected"))
    unit = WorkUnit.objects.get(kind=WorkUnit.Kind.JUDGE)
    unit.fence += 1  # as claimed again
    (reply,) = earlier_replies([unit])[unit.pk].values()
    assert isinstance(reply, JudgeReply)
    assert reply.chances == CHANCES


def test_uncertainty_is_the_spread_over_the_levels(judge: JudgeServer) -> None:
    run = start_and_drain(remote_run(judge, 1, method="expected"))
    metrics = {metric.pk: metric.name for metric in MetricDefinition.objects.all()}
    spread = {metrics[pk]: value.spread for (_, pk), value in combined_scores(run, list(metrics)).items()}
    assert spread["correctness"] == pytest.approx(0.1875**0.5, abs=1e-9)  # .75 x .25 for levels one apart
    assert spread["faithfulness"] == 0.0
