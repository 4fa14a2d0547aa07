"""Runs with several judges: secondary judges and juries with combined scores."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.errors import DomainError, UnknownName
from evaluation.judges.shipped import baseline_judge, judge_panel, profile_row, save_judge
from evaluation.models import AnswerSet, Endpoint, JudgeVersion, Run, Score, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.scoring.scores import combine_juries, counting_scores
from evaluation.worker.lifecycle import retry_failed, start
from review.evidence.scorers import combined_scores
from tests.evaluation.runs.remote import make_answers
from tests.factories import make_project
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.judge_server.received import ReceivedRequest

__all__ = ["judge_server"]
pytestmark = pytest.mark.django_db
NAMES = ("one", "two", "three")


@pytest.fixture
def answers(judge_server: JudgeServer, settings: Any) -> AnswerSet:
    """Three answers and three judges of different models at one endpoint."""
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    answer_set = make_answers(3)
    endpoint = Endpoint.objects.create(name="e", base_url=judge_server.base_url)
    for name in NAMES:
        save_judge(answer_set.project, name, endpoint, model=f"model-{name}", language="en")
    return answer_set


def run_judges(answers: AnswerSet, names: tuple[str, ...], jury: str = "", **options: Any) -> Run:
    panel = judge_panel(answers.project, names, jury)
    profile = profile_row(answers.project, "graphrag")
    run = prepare_run(answers, profile, RunSpec(**options), judge=panel.primary, secondary=panel.secondary)
    start(run)
    return drain(run.pk, seconds=60)


def values(run: Run, judge: str) -> dict[tuple[int, str], float]:
    """Latest value of the judge by answer and metric; rows are ordered by round."""
    scores = Score.objects.filter(run=run, judge_version__name=judge).select_related("metric").order_by("round")
    return {(score.answer_id, score.metric.name): score.value for score in scores}


def test_jury_scores_count_and_member_scores_are_stored(answers: AnswerSet, judge_server: JudgeServer) -> None:
    run = run_judges(answers, NAMES, "median")
    assert run.state == Run.State.COMPLETED
    assert judge_server.calls == 9  # three answers, three judges, one call each
    assert not WorkUnit.objects.filter(run=run, run_judge__judge_version__name="median-of-3").exists()
    members = [values(run, name) for name in NAMES]
    jury = values(run, "median-of-3")
    assert len(jury) == 9
    assert len({tuple(member.values()) for member in members}) > 1  # they do not all say the same
    for key, value in jury.items():
        assert value == sorted(member[key] for member in members)[1]
    counting = counting_scores(run).exclude(judge_version=None)
    assert {score.judge_version.name for score in counting.select_related("judge_version")} == {"median-of-3"}


def test_uncertainty_is_the_spread_of_the_jury(answers: AnswerSet) -> None:
    run = run_judges(answers, NAMES, "mean")
    score = Score.objects.filter(run=run, judge_version__name="mean-of-3").order_by("-detail__spread").first()
    assert score is not None
    assert score.detail["spread"] > 0
    combined = combined_scores(run, [score.metric_id])[score.answer_id, score.metric_id]
    assert (combined.spread, combined.by, combined.baseline) == (score.detail["spread"], "mean-of-3@1", False)


def test_combining_is_idempotent_and_a_retried_member_supersedes(answers: AnswerSet, judge_server: JudgeServer) -> None:
    def is_third_judge(request: ReceivedRequest) -> bool:
        return request.body["model"] == "model-three" and not request.is_preflight

    judge_server.when(is_third_judge, actions.text("no verdict"))
    run = run_judges(answers, NAMES, "mean")
    assert run.state == Run.State.COMPLETED  # two of three are enough
    earlier_values = values(run, "mean-of-3")
    Run.objects.update(state=Run.State.RUNNING)
    assert combine_juries(run) == 0
    Run.objects.update(state=Run.State.COMPLETED)
    run.refresh_from_db()
    judge_server.reset()
    retry_failed(run)
    run = drain(run.pk, seconds=60)
    new_scores = counting_scores(run).filter(judge_version__name="mean-of-3").select_related("metric")
    retried_values = values(run, "three")
    for score in new_scores:
        key = (score.answer_id, score.metric.name)
        assert score.round == 1
        assert score.value == pytest.approx((2 * earlier_values[key] + retried_values[key]) / 3)


def test_only_the_first_of_several_judges_counts(answers: AnswerSet) -> None:
    run = run_judges(answers, ("one", "two"))
    assert set(values(run, "one")) == set(values(run, "two"))
    counting = counting_scores(run).exclude(judge_version=None).select_related("judge_version")
    assert {score.judge_version.name for score in counting} == {"one"}


def test_a_jury_needs_two_judges_of_one_language_and_a_known_rule() -> None:
    project = make_project()
    baseline_judge(project, "en")
    with pytest.raises(DomainError, match="jury_too_small"):
        judge_panel(project, ["baseline", "baseline"], "mean")
    korean = JudgeVersion(project=project, name="ko", version=1, model="m", language="ko", content_hash="x")
    korean.save()
    with pytest.raises(DomainError, match="jury_languages"):
        judge_panel(project, ["baseline", "ko"], "mean")
    with pytest.raises(UnknownName):
        judge_panel(project, ["baseline", "ko"], "loudest")
