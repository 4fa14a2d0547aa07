"""Asking for runs and steering them: once each, however many people press the button."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from evaluation.core.errors import DomainError, UnknownName
from evaluation.models import Run, RunEvent, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import cancel_run, launch_run, pause_run, resume_run
from evaluation.worker.lifecycle import start
from tests.concurrency import WAITS, together
from tests.factories import make_answer_set, make_draft_run, make_profile

pytestmark = pytest.mark.django_db


def test_a_run_has_the_profiles_rules_and_the_baseline_where_no_judge_is_named() -> None:
    run = launch_run(make_answer_set(), RunSpec(profile="graphrag"), None)
    assert run.state == Run.State.RUNNING
    assert [str(judge.judge_version) for judge in run.judges.all()] == ["baseline@1"]
    kinds = WorkUnit.objects.filter(run=run).values_list("kind", flat=True)
    assert sorted(kinds) == ["judge"] * 6 + ["rules"] * 6


def test_a_run_without_a_profile_named_is_judged_once_per_rubric_family_of_the_standard_one() -> None:
    run = launch_run(make_answer_set(), RunSpec(), None)
    assert run.profile_version.name == "standard"
    assert {judge.rubric_version.family for judge in run.judges.all()} == {
        *("answer_quality", "claims", "negative_questions", "nuggets", "statements"),
    }
    assert WorkUnit.objects.filter(run=run, kind="judge").count() == 5 * 6


@pytest.mark.parametrize(("named", "used"), [("", "graphrag"), ("generation", "generation"), ("standard", "standard")])
def test_a_run_has_the_projects_default_profile_unless_another_is_named(named: str, used: str) -> None:
    answers = make_answer_set()
    answers.project.default_profile = "graphrag"
    answers.project.save()
    assert launch_run(answers, RunSpec(profile=named, judge=None), None).profile_version.name == used


def test_a_profile_of_the_project_may_be_its_default() -> None:
    answers = make_answer_set()
    title = {"en": "House", "ko": "집"}
    own = make_profile(answers.project, {"name": "house", "title": title, "reported": ["keyword_hit"]})
    answers.project.default_profile = own.name
    assert launch_run(answers, RunSpec(judge=None), None).profile_version == own


def test_without_a_judge_only_the_rules_are_done() -> None:
    run = launch_run(make_answer_set(), RunSpec(judge=None), None)
    assert {unit.kind for unit in run.units.all()} == {"rules"}


def test_a_run_may_be_about_some_questions() -> None:
    run = launch_run(make_answer_set(), RunSpec(judge=None, question_ids=("q2", "q4")), None)
    assert sorted(unit.question.external_id for unit in run.units.all()) == ["q2", "q4"]


@pytest.mark.parametrize("wanted", [RunSpec(profile="none such"), RunSpec(judge="none such")])
def test_unknown_names_make_no_run(wanted: RunSpec) -> None:
    answers = make_answer_set()
    with pytest.raises(UnknownName):
        launch_run(answers, wanted, None)
    assert not Run.objects.exists()


def test_asking_twice_with_one_token_makes_one_run() -> None:
    answers, token = make_answer_set(), uuid.uuid4()
    wanted = RunSpec(judge=None, start_token=token)
    first, second = launch_run(answers, wanted, None), launch_run(answers, wanted, None)
    assert first == second
    assert Run.objects.count() == 1
    with pytest.raises(DomainError, match="start_token_used"):
        launch_run(make_answer_set(), wanted, None)


@WAITS
@pytest.mark.django_db(transaction=True)
def test_two_people_pressing_start_start_one_run() -> None:
    """T13."""
    run = make_draft_run()
    results = together(*[lambda: start(Run.objects.get(pk=run.pk))] * 4)
    assert sorted(results) == [False, False, False, True]
    assert RunEvent.objects.filter(run=run, verb="started").count() == 1
    assert WorkUnit.objects.filter(run=run).count() == 6


@WAITS
@pytest.mark.django_db(transaction=True)
def test_two_requests_with_one_token_at_the_same_moment_are_one_run() -> None:
    """T13 over REST: the caller's token is what makes the two presses one."""
    answers, wanted = make_answer_set(), RunSpec(judge=None, start_token=uuid.uuid4())
    results = together(*[lambda: launch_run(answers, wanted, None).pk] * 4)
    assert len(set(results)) == 1
    assert Run.objects.count() == 1


def test_starting_a_run_that_was_started_does_nothing() -> None:
    run = make_draft_run()
    stale = Run.objects.get(pk=run.pk)
    assert (start(run), start(stale)) == (True, False)
    assert stale.state == Run.State.RUNNING
    assert WorkUnit.objects.filter(run=run).count() == 6


def test_pausing_and_resuming_twice_is_once() -> None:
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
def test_what_the_state_does_not_allow_is_refused(state: str, action: Callable[..., Run], code: str) -> None:
    run = make_draft_run()
    Run.objects.filter(pk=run.pk).update(state=state)
    with pytest.raises(DomainError) as refused:
        action(run, None)
    assert refused.value.code == code
