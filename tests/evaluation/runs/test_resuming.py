"""A paused run goes on with what it was made with, and says what has changed since (T12)."""

from __future__ import annotations

import io
import json
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluation.datasets.importing import import_question_set
from evaluation.judges.shipped import save_judge, save_profile
from evaluation.models import AnswerSet, Run, Score, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.profiles.spec import ProfileSpec, shipped_profiles
from evaluation.runs.creation import launch_run, pause_run
from evaluation.runs.results import Drift, VersionedPart, drift
from tests.evaluation.datasets.sources import question, question_file
from tests.factories import make_answer, make_answer_set, make_draft_run

pytestmark = pytest.mark.django_db


def profile_without_coverage() -> ProfileSpec:
    """Another version of the shipped profile, whose runs have one rule less."""
    shipped = next(p for p in shipped_profiles() if p.name == "graphrag").model_dump()
    parts = [part for part in shipped["parts"] if part["metric"] != "keyword_coverage"]
    parts[0]["weight"] += 0.10
    shipped["report_names"].pop("keyword_coverage")
    return ProfileSpec.model_validate(shipped | {"parts": parts})


def paused_run() -> Run:
    return pause_run(launch_run(make_answer_set(), RunSpec(profile="graphrag", judge=None), None), None)


def test_a_run_that_nothing_has_changed_for_has_no_drift() -> None:
    assert drift(paused_run()) == ()


def test_newer_versions_of_what_a_run_is_made_of_are_named() -> None:
    run = launch_run(make_answer_set(), RunSpec(profile="graphrag"), None)
    asked = run.answer_set.question_set
    save_profile(run.project, profile_without_coverage())
    save_judge(run.project, "baseline", None, model="lexical-99", language="en")
    import_question_set(run.project, asked.name, question_file(question(1)), by=None)
    assert drift(run) == (
        Drift(VersionedPart.PROFILE, "graphrag", 1, 2),
        Drift(VersionedPart.QUESTION_SET, asked.name, 1, 2),
        Drift(VersionedPart.JUDGE, "baseline", 1, 2),
    )


def test_a_run_resumed_after_a_week_uses_its_own_profile_and_shows_the_drift() -> None:
    """T12."""
    with time_machine.travel(timezone.now() - timedelta(days=7)):
        run = paused_run()
    save_profile(run.project, profile_without_coverage())
    out, err = io.StringIO(), io.StringIO()
    call_command("resume_run", run.pk, stdout=out, stderr=err)
    assert "profile graphrag: the run keeps version 1; the newest is 2" in err.getvalue()
    assert out.getvalue().startswith(f"run {run.pk}: completed")
    assert Score.objects.filter(run=run, metric__name="keyword_coverage").count() == 6


def test_what_is_neither_paused_nor_running_cannot_be_resumed() -> None:
    with pytest.raises(CommandError, match="Only a paused run"):
        call_command("resume_run", make_draft_run().pk)
    with pytest.raises(CommandError, match="there is no run 999"):
        call_command("resume_run", 999)


def test_retrying_does_the_failed_steps_again_and_ends_with_100_while_it_stays_incomplete() -> None:
    answers = make_answer_set()
    run = launch_run(answers, RunSpec(judge=None), None)
    call_command("work", "--once", run.pk, stdout=io.StringIO())
    with pytest.raises(CommandError, match="nothing to retry"):
        call_command("retry_failed", run.pk)
    WorkUnit.objects.filter(pk=run.units.first().pk).update(state="failed", reason="crash_loop")
    out = io.StringIO()
    call_command("retry_failed", run.pk, "--format", "json", stdout=out)
    assert json.loads(out.getvalue()) == {"run": run.pk, "status": "completed", "reason": "", "units": 6, "failed": 0}


def test_a_run_that_stays_incomplete_ends_with_100() -> None:
    """All answers failed, so every keyword metric lacks its answers."""
    answers = AnswerSet.objects.get(pk=make_answer_set().pk)
    for row in answers.question_set.questions.all():
        make_answer(answers, row, "", round=1, status="failed", reason="timeout")
    run = pause_run(launch_run(answers, RunSpec(judge=None), None), None)
    with pytest.raises(SystemExit) as ended:
        call_command("resume_run", run.pk, stdout=io.StringIO())
    assert ended.value.code == 100
