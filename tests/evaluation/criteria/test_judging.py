"""Criteria in runs: judged over real sockets or by the baseline, in the version pinned by the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.samples import Status
from evaluation.criteria.services import activate, deactivate, draft_version
from evaluation.judges.shipped import baseline_judge, save_judge
from evaluation.models import AnswerSet, CriterionVersion, Endpoint, JudgeVersion, Reply, Run, Score
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import start
from tests.evaluation.criteria.written import ENGLISH, drafted, in_force, spec
from tests.evaluation.scoring.families import make_profile_version
from tests.factories import make_answer_set, unique
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


def finished(answers: AnswerSet, judge: JudgeVersion, *metrics: str, **profile: Any) -> Run:
    """A finished run of a profile with additional metrics."""
    run = prepare_run(answers, make_profile_version(answers, **profile), RunSpec(metrics=metrics), judge=judge)
    start(run)
    return drain(run.pk, seconds=30)


def scores(run: Run, version: CriterionVersion) -> list[Score]:
    return list(Score.objects.filter(run=run, metric__name=version.criterion.name).order_by("id"))


def remote(answers: AnswerSet, server: JudgeServer, settings: Any, language: str = "en") -> JudgeVersion:
    settings.CONCORD_JUDGE_ORIGINS = [server.origin]
    endpoint = Endpoint.objects.create(name=unique("e"), base_url=server.base_url)
    return save_judge(answers.project, unique("judge"), endpoint, model="m", language=language)


def test_remote_judge_uses_the_strict_schema_and_scores_every_answer(judge_server: JudgeServer, settings: Any) -> None:
    answers = make_answer_set()
    version = in_force(answers.project, sees=["contexts"])
    run = finished(answers, remote(answers, judge_server, settings, "ko"), reported=[version.criterion.name])
    rows = scores(run, version)
    assert run.state == Run.State.COMPLETED
    assert (len(rows), {s.status for s in rows}) == (6, {Status.SCORED})
    assert {s.value for s in rows} <= {1, 2, 3}
    assert {str(s.rubric_version) for s in rows} == {f"criterion:{version.criterion.name} v1 (ko)"}
    body = judge_server.requests[0].body
    assert body["response_format"]["json_schema"]["strict"] is True
    assert "고객에게 알맞은 말투입니까?" in body["messages"][0]["content"]
    assert Reply.objects.filter(attempt__unit__run=run).count() == 6


def test_level_off_the_scale_fails_without_a_value(judge_server: JudgeServer, settings: Any) -> None:
    answers = make_answer_set()
    version = in_force(answers.project)
    name = version.criterion.name
    judge_server.otherwise = actions.text(json.dumps({name: {"reason": "Best!", "score": 4}}))
    rows = scores(finished(answers, remote(answers, judge_server, settings), name), version)
    assert {(s.status, s.value, s.reason) for s in rows} == {(Status.FAILED, None, "scale")}


def test_baseline_reports_that_it_has_no_rule_for_a_criterion() -> None:
    answers = make_answer_set()
    version = in_force(answers.project)
    run = finished(answers, baseline_judge(answers.project, "en"), version.criterion.name)
    rows = scores(run, version)
    assert run.state == Run.State.COMPLETED
    assert {(s.status, s.reason) for s in rows} == {(Status.NOT_APPLICABLE, "baseline_has_no_rule")}
    assert len(rows) == 6


@pytest.mark.parametrize(("direction", "value"), [("higher", 3), ("lower", 1)])
def test_word_overlap_substitute_uses_the_criterion_scale_and_is_labelled(direction: str, value: int) -> None:
    answers = make_answer_set()  # every answer is its reference, word for word: the share is 1
    fields = {"sees": ["reference"], "needs": ["reference"], "offline": "correctness", "direction": direction}
    version = in_force(answers.project, **fields)
    rows = scores(finished(answers, baseline_judge(answers.project, "en"), version.criterion.name), version)
    assert {s.value for s in rows} == {value}
    assert all("Counted by words (correctness), not judged by the criterion." in s.reason for s in rows)


def test_other_categories_and_missing_slots_are_not_applicable() -> None:
    answers = make_answer_set()
    version = in_force(
        answers.project, categories=["single_hop"], offline="relevancy", sees=["persona"], needs=["persona"]
    )
    rows = scores(finished(answers, baseline_judge(answers.project, "en"), version.criterion.name), version)
    # six questions, two of each of three categories; none names a persona
    assert sorted(s.reason for s in rows) == ["no_persona"] * 2 + ["other_category"] * 4


def test_run_keeps_the_criterion_version_it_was_created_with() -> None:
    answers = make_answer_set()
    project = answers.project
    first = draft_version(project, spec(offline="relevancy"), by=None)
    activate(first, by=None)
    run = prepare_run(
        answers, make_profile_version(answers), RunSpec(metrics=["tone"]), judge=baseline_judge(project, "en")
    )
    levels = [*ENGLISH["levels"], {"value": 4, "text": "Warm"}]
    activate(draft_version(project, spec(en={**ENGLISH, "levels": levels}, ko=None), by=None), by=None)
    start(run)
    drain(run.pk, seconds=30)
    rows = Score.objects.filter(run=run, metric__name="tone")
    assert {(s.metric.version, s.rubric_version and s.rubric_version.version) for s in rows} == {(1, 1)}
    assert rows.filter(status=Status.SCORED).count() == 6


def test_deactivation_keeps_scores_and_refuses_new_runs() -> None:
    answers = make_answer_set()
    version = in_force(answers.project, offline="relevancy")
    name, judge = version.criterion.name, baseline_judge(answers.project, "en")
    run = finished(answers, judge, name)
    deactivate(version.criterion, by=None)
    assert len(scores(run, version)) == 6
    for profile, metrics in (({}, [name]), ({"reported": [name]}, [])):
        with pytest.raises(DomainError, match="criterion_not_active"):
            prepare_run(answers, make_profile_version(answers, **profile), RunSpec(metrics=metrics), judge=judge)


def test_drafts_and_foreign_criteria_cannot_be_used() -> None:
    answers, foreign = make_answer_set(), in_force(make_answer_set().project)
    judge = baseline_judge(answers.project, "en")
    draft_version = drafted(answers.project)
    with pytest.raises(DomainError, match="criterion_not_active"):
        prepare_run(
            answers, make_profile_version(answers), RunSpec(metrics=[draft_version.criterion.name]), judge=judge
        )
    with pytest.raises(UnknownName):
        prepare_run(answers, make_profile_version(answers), RunSpec(metrics=[foreign.criterion.name]), judge=judge)


def test_criterion_has_a_weight_in_the_overall_score() -> None:
    answers = make_answer_set()
    version = in_force(answers.project, offline="correctness", sees=["reference"], needs=["reference"])
    parts = [{"metric": version.criterion.name, "weight": 0.6}, {"metric": "keyword_hit", "weight": 0.4}]
    run = finished(answers, baseline_judge(answers.project, "en"), parts=parts, unit="per_answer", normalise="min_max")
    overall = Score.objects.filter(run=run, metric__name="answer_overall")
    # level 3 of 1..3 is 1, the keyword is there: .6 x 1 + .4 x 1; negative questions have no keyword: .6 / .6
    assert {round(s.value or 0, 9) for s in overall} == {1.0}
    assert overall.count() == 6


@pytest.mark.parametrize(
    "more",
    [
        {"direction": "lower"},
        {
            "form": "class", "direction": "none", "ko": None,
            "en": {"question": "?", "levels": [{"label": "a", "text": "A"}, {"label": "b", "text": "B"}]},
        },
    ],
)  # fmt: skip
def test_unordered_or_lower_is_better_criterion_cannot_be_weighted(more: dict[str, Any]) -> None:
    answers = make_answer_set()
    version = in_force(answers.project, **more)
    profile = make_profile_version(answers, parts=[{"metric": version.criterion.name, "weight": 1}])
    with pytest.raises(DomainError, match="criterion_not_weighable"):
        prepare_run(answers, profile, judge=baseline_judge(answers.project, "en"))
