"""Creating and controlling runs, once each even if requested several times."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from evaluation.core.errors import DomainError, UnknownName
from evaluation.models import Run, RunEvent, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import cancel_run, launch_run, pause_run, resume_run
from evaluation.worker.lifecycle import start
from tests.concurrency import WAITS, run_concurrently
from tests.factories import make_answer_set, make_draft_run, make_profile

pytestmark = pytest.mark.django_db


def test_run_without_a_named_judge_uses_the_baseline() -> None:
    run = launch_run(make_answer_set(), RunSpec(profile="graphrag"), None)
    assert run.state == Run.State.RUNNING
    assert [str(judge.judge_version) for judge in run.judges.all()] == ["baseline@1"]
    kinds = WorkUnit.objects.filter(run=run).values_list("kind", flat=True)
    assert sorted(kinds) == ["judge"] * 6 + ["rules"] * 6


def test_default_profile_is_standard_with_one_judge_per_rubric_family() -> None:
    run = launch_run(make_answer_set(), RunSpec(), None)
    assert run.profile_version.name == "standard"
    assert {judge.rubric_version.family for judge in run.judges.all()} == {
        *("answer_quality", "claims", "negative_questions", "nuggets", "statements"),
    }
    assert WorkUnit.objects.filter(run=run, kind="judge").count() == 5 * 6


@pytest.mark.parametrize(
    ("profile", "expected"), [("", "graphrag"), ("generation", "generation"), ("standard", "standard")]
)
def test_project_default_profile_is_used_unless_another_is_named(profile: str, expected: str) -> None:
    answers = make_answer_set()
    answers.project.default_profile = "graphrag"
    answers.project.save()
    assert launch_run(answers, RunSpec(profile=profile, judge=None), None).profile_version.name == expected


def test_a_profile_of_the_project_may_be_its_default() -> None:
    answers = make_answer_set()
    title = {"en": "House", "ko": "집"}
    project_profile = make_profile(answers.project, {"name": "house", "title": title, "reported": ["keyword_hit"]})
    answers.project.default_profile = project_profile.name
    assert launch_run(answers, RunSpec(judge=None), None).profile_version == project_profile


def test_without_a_judge_only_the_rules_are_done() -> None:
    run = launch_run(make_answer_set(), RunSpec(judge=None), None)
    assert {unit.kind for unit in run.units.all()} == {"rules"}


def test_a_run_may_be_about_some_questions() -> None:
    run = launch_run(make_answer_set(), RunSpec(judge=None, question_ids=("q2", "q4")), None)
    assert sorted(unit.question.external_id for unit in run.units.all()) == ["q2", "q4"]


@pytest.mark.parametrize("run_spec", [RunSpec(profile="none such"), RunSpec(judge="none such")])
def test_unknown_names_create_no_run(run_spec: RunSpec) -> None:
    answers = make_answer_set()
    with pytest.raises(UnknownName):
        launch_run(answers, run_spec, None)
    assert not Run.objects.exists()


def test_repeated_token_creates_one_run() -> None:
    answers, token = make_answer_set(), uuid.uuid4()
    run_spec = RunSpec(judge=None, start_token=token)
    run, repeated = launch_run(answers, run_spec, None), launch_run(answers, run_spec, None)
    assert run == repeated
    assert Run.objects.count() == 1
    with pytest.raises(DomainError, match="start_token_used"):
        launch_run(make_answer_set(), run_spec, None)
    for options in ({"name": "other"}, {"judge": "baseline"}, {"question_ids": ("q1",)}):
        with pytest.raises(DomainError, match="start_token_used"):
            launch_run(answers, run_spec.model_copy(update=options), None)
    assert Run.objects.count() == 1


@WAITS
@pytest.mark.django_db(transaction=True)
def test_concurrent_starts_start_the_run_once() -> None:
    run = make_draft_run()
    results = run_concurrently(*[lambda: start(Run.objects.get(pk=run.pk))] * 4)
    assert sorted(results) == [False, False, False, True]
    assert RunEvent.objects.filter(run=run, verb="started").count() == 1
    assert WorkUnit.objects.filter(run=run).count() == 6


@WAITS
@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_with_one_token_create_one_run() -> None:
    answers, run_spec = make_answer_set(), RunSpec(judge=None, start_token=uuid.uuid4())
    results = run_concurrently(*[lambda: launch_run(answers, run_spec, None).pk] * 4)
    assert len(set(results)) == 1
    assert Run.objects.count() == 1


def test_starting_a_started_run_does_nothing() -> None:
    run = make_draft_run()
    stale = Run.objects.get(pk=run.pk)
    assert (start(run), start(stale)) == (True, False)
    assert stale.state == Run.State.RUNNING
    assert WorkUnit.objects.filter(run=run).count() == 6


def test_repeated_pause_resume_and_cancel_have_no_effect() -> None:
    run = launch_run(make_answer_set(), RunSpec(judge=None), None)
    assert pause_run(pause_run(run, None), None).state == Run.State.PAUSED
    assert resume_run(resume_run(run, None), None).state == Run.State.RUNNING
    assert cancel_run(cancel_run(run, None), None).state == Run.State.CANCELLED
    verbs = list(RunEvent.objects.order_by("id").values_list("verb", flat=True))
    assert verbs == ["started", "paused", "resumed", "cancelled"]


@pytest.mark.parametrize(
    ("state", "action", "code"),
    [
        (Run.State.COMPLETED, pause_run, "run_not_running"),
        (Run.State.DRAFT, resume_run, "run_not_paused"),
        (Run.State.COMPLETED, resume_run, "run_not_paused"),
        (Run.State.INCOMPLETE, cancel_run, "run_ended"),
    ],
)
def test_action_not_allowed_in_the_state_is_refused(state: str, action: Callable[..., Run], code: str) -> None:
    run = make_draft_run()
    Run.objects.filter(pk=run.pk).update(state=state)
    with pytest.raises(DomainError) as error:
        action(run, None)
    assert error.value.code == code
