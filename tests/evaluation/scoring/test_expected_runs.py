"""Runs whose judge's levels are expected over token probabilities: kept with the replies, never mixed, never silent."""

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
from tests.evaluation.runs.remote import answers_to, remote_run, worked_off
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
    judge_server.otherwise = actions.weighing(CHANCES)
    return judge_server


def values(run: Run) -> dict[str, float | None]:
    rows = Score.objects.filter(run=run, judge_version__isnull=False).order_by("round")
    return dict(rows.values_list("metric__name", "value"))


def test_the_scores_are_expected_and_their_probabilities_kept_with_the_reply(judge: JudgeServer) -> None:
    run = worked_off(remote_run(judge, 1, method="expected"))
    assert run.state == Run.State.COMPLETED
    # 4 x .75 + 5 x .25; (1 x .6 + 3 x .35) / .95
    assert values(run) == {
        "correctness": 4.25, "faithfulness": 5.0, "completeness": pytest.approx(1.65 / 0.95, abs=1e-9),
    }  # fmt: skip
    assert Reply.objects.get().chances == CHANCES
    detail = Score.objects.get(metric__name="completeness").detail
    assert (detail["said"], detail["mass"], detail["chances"]) == (1.0, 0.95, CHANCES["completeness"])


def test_the_same_run_again_takes_the_probabilities_out_of_the_ledger(judge: JudgeServer) -> None:
    answers = answers_to(2)
    first = worked_off(remote_run(judge, answers, method="expected"))
    again = worked_off(remote_run(judge, answers, method="expected"))
    assert judge.calls == 2
    assert set(Reply.objects.filter(attempt__unit__run=again).values_list("outcome", flat=True)) == {"cached"}
    assert values(again) == values(first)


def test_what_was_said_and_what_is_expected_share_no_reply_and_no_judge(judge: JudgeServer) -> None:
    answers = answers_to(1)
    said = worked_off(remote_run(judge, answers))
    expected = worked_off(remote_run(judge, answers, method="expected"))
    assert judge.calls == 2
    assert values(said) == {"correctness": 4.0, "faithfulness": 5.0, "completeness": 1.0}
    one, other = JudgeVersion.objects.filter(name="remote").order_by("version")
    assert (one.version, other.version, one.content_hash != other.content_hash) == (1, 2, True)
    assert [run.judges.get().method for run in (said, expected)] == ["single", "expected"]
    differing = differing_versions([make_report(said), make_report(expected)])
    assert differing["method"] == ["single", "expected"]


def test_a_mean_of_repeats_is_another_series_than_a_single_verdict(judge: JudgeServer) -> None:
    answers = answers_to(1)
    runs = [worked_off(remote_run(judge, answers, repeat=repeat)) for repeat in (1, 3)]
    assert [run.judges.get().method for run in runs] == ["single", "mean_of_3"]
    assert differing_versions([make_report(run) for run in runs])["method"] == ["single", "mean_of_3"]
    hashes = Preflight.objects.order_by("id").values_list("judge_hash", flat=True)
    assert len(set(hashes)) == 2


def test_too_little_mass_is_a_failure_that_is_counted_and_asked_again(judge: JudgeServer) -> None:
    judge.otherwise = actions.weighing({**CHANCES, "correctness": {"4": 0.5, "yes": 0.5}})
    run = worked_off(remote_run(judge, 1, method="expected"))
    failed = Score.objects.get(metric__name="correctness")
    assert (failed.status, failed.value, failed.reason, failed.detail["mass"]) == ("failed", None, "low_mass", 0.5)
    assert (run.state, run.reason) == (Run.State.INCOMPLETE, "correctness: 1/1")
    judge.otherwise = actions.weighing(CHANCES)
    assert retry_failed(run) == 1
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert values(run)["correctness"] == 4.25


def test_a_server_without_probabilities_pauses_the_run_before_any_answer_is_sent(judge: JudgeServer) -> None:
    judge.preflight = actions.without("logprobs")
    run = worked_off(remote_run(judge, 2, method="expected"))
    assert (run.state, run.reason, judge.calls) == (Run.State.PAUSED, "no_logprobs", 0)
    assert not Attempt.objects.exists()


def test_a_reply_that_comes_without_them_later_fails_its_levels(judge: JudgeServer) -> None:
    judge.otherwise = actions.weighing(CHANCES, logprobs=False)
    run = worked_off(remote_run(judge, 1, method="expected"))
    assert run.state == Run.State.INCOMPLETE
    assert set(values(run).values()) == {None}
    reasons = Score.objects.filter(run=run, judge_version__isnull=False).values_list("reason", flat=True)
    assert set(reasons) == {"no_logprobs"}


def test_a_conversation_that_was_broken_off_finds_its_probabilities_again(judge: JudgeServer) -> None:
    worked_off(remote_run(judge, 1, method="expected"))
    unit = WorkUnit.objects.get(kind=WorkUnit.Kind.JUDGE)
    unit.fence += 1  # as claimed again
    (found,) = earlier_replies([unit])[unit.pk].values()
    assert isinstance(found, JudgeReply)
    assert found.chances == CHANCES


def test_the_spread_over_the_levels_steers_draws_by_uncertainty(judge: JudgeServer) -> None:
    run = worked_off(remote_run(judge, 1, method="expected"))
    metrics = {one.pk: one.name for one in MetricDefinition.objects.all()}
    spread = {metrics[pk]: value.spread for (_, pk), value in combined_scores(run, list(metrics)).items()}
    assert spread["correctness"] == pytest.approx(0.1875**0.5, abs=1e-9)  # .75 x .25 for levels one apart
    assert spread["faithfulness"] == 0.0
