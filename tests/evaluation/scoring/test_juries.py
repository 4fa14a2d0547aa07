"""Runs with several judges: side by side, and as a jury whose joined scores are the ones that count."""

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
from tests.evaluation.runs.remote import answers_to
from tests.factories import make_project
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.judge_server.received import Received

__all__ = ["judge_server"]
pytestmark = pytest.mark.django_db
NAMES = ("one", "two", "three")


@pytest.fixture
def answers(judge_server: JudgeServer, settings: Any) -> AnswerSet:
    """Three answers and three judges of different models at one endpoint."""
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    made = answers_to(3)
    endpoint = Endpoint.objects.create(name="e", base_url=judge_server.base_url)
    for name in NAMES:
        save_judge(made.project, name, endpoint, model=f"model-{name}", language="en")
    return made


def judged(answers: AnswerSet, names: tuple[str, ...], jury: str = "", **options: Any) -> Run:
    bench = judge_panel(answers.project, names, jury)
    profile = profile_row(answers.project, "graphrag")
    run = prepare_run(answers, profile, RunSpec(**options), judge=bench.primary, secondary=bench.secondary)
    start(run)
    return drain(run.pk, seconds=60)


def values(run: Run, judge: str) -> dict[tuple[int, str], float]:
    """What the judge says of each answer now: the latest round wins, in whatever order the database answers."""
    scores = Score.objects.filter(run=run, judge_version__name=judge).select_related("metric").order_by("round")
    return {(score.answer_id, score.metric.name): score.value for score in scores}


def test_the_jury_counts_and_its_members_are_kept(answers: AnswerSet, judge_server: JudgeServer) -> None:
    run = judged(answers, NAMES, "median")
    assert run.state == Run.State.COMPLETED
    assert judge_server.calls == 9  # three answers, three judges, one call each
    assert not WorkUnit.objects.filter(run=run, run_judge__judge_version__name="median-of-3").exists()
    members = [values(run, name) for name in NAMES]
    jury = values(run, "median-of-3")
    assert len(jury) == 9
    assert len({tuple(member.values()) for member in members}) > 1  # they do not all say the same
    for key, value in jury.items():
        assert value == sorted(member[key] for member in members)[1]
    counted = counting_scores(run).exclude(judge_version=None)
    assert {score.judge_version.name for score in counted.select_related("judge_version")} == {"median-of-3"}


def test_the_spread_of_a_jury_steers_draws_by_uncertainty(answers: AnswerSet) -> None:
    run = judged(answers, NAMES, "mean")
    score = Score.objects.filter(run=run, judge_version__name="mean-of-3").order_by("-detail__spread").first()
    assert score is not None
    assert score.detail["spread"] > 0
    told = combined_scores(run, [score.metric_id])[score.answer_id, score.metric_id]
    assert (told.spread, told.by, told.baseline) == (score.detail["spread"], "mean-of-3@1", False)


def test_joining_again_changes_nothing_and_a_retried_member_supersedes(
    answers: AnswerSet, judge_server: JudgeServer
) -> None:
    def by_three(request: Received) -> bool:
        return request.body["model"] == "model-three" and not request.is_preflight

    judge_server.when(by_three, actions.text("no verdict"))
    run = judged(answers, NAMES, "mean")
    assert run.state == Run.State.COMPLETED  # two of three are enough
    before = values(run, "mean-of-3")
    Run.objects.update(state=Run.State.RUNNING)
    assert combine_juries(run) == 0
    Run.objects.update(state=Run.State.COMPLETED)
    run.refresh_from_db()
    judge_server.reset()
    retry_failed(run)
    run = drain(run.pk, seconds=60)
    after = counting_scores(run).filter(judge_version__name="mean-of-3").select_related("metric")
    three = values(run, "three")
    for score in after:
        key = (score.answer_id, score.metric.name)
        assert score.round == 1
        assert score.value == pytest.approx((2 * before[key] + three[key]) / 3)


def test_judges_side_by_side_are_compared_and_the_first_counts(answers: AnswerSet) -> None:
    run = judged(answers, ("one", "two"))
    assert set(values(run, "one")) == set(values(run, "two"))
    counted = counting_scores(run).exclude(judge_version=None).select_related("judge_version")
    assert {score.judge_version.name for score in counted} == {"one"}


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
