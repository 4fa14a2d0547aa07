"""A resumed run uses its original versions and reports newer ones."""

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
from evaluation.management.commands import work
from evaluation.models import AnswerSet, Run, Score, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.profiles.spec import ProfileSpec, shipped_profiles
from evaluation.runs.creation import launch_run, pause_run
from evaluation.runs.results import Drift, VersionedPart, drift
from tests.evaluation.datasets.sources import question, question_file
from tests.factories import make_answer, make_answer_set, make_draft_run

pytestmark = pytest.mark.django_db


def profile_without_coverage() -> ProfileSpec:
    """Another version of the shipped profile, without one of its rules."""
    shipped = next(p for p in shipped_profiles() if p.name == "graphrag").model_dump()
    parts = [part for part in shipped["parts"] if part["metric"] != "keyword_coverage"]
    parts[0]["weight"] += 0.10
    shipped["report_names"].pop("keyword_coverage")
    return ProfileSpec.model_validate(shipped | {"parts": parts})


def make_paused_run() -> Run:
    return pause_run(launch_run(make_answer_set(), RunSpec(profile="graphrag", judge=None), None), None)


def test_run_without_newer_versions_has_no_drift() -> None:
    assert drift(make_paused_run()) == ()


def test_drift_lists_newer_versions() -> None:
    run = launch_run(make_answer_set(), RunSpec(profile="graphrag"), None)
    question_set = run.answer_set.question_set
    save_profile(run.project, profile_without_coverage())
    save_judge(run.project, "baseline", None, model="lexical-99", language="en")
    import_question_set(run.project, question_set.name, question_file(question(1)), by=None)
    assert drift(run) == (
        Drift(VersionedPart.PROFILE, "graphrag", 1, 2),
        Drift(VersionedPart.QUESTION_SET, question_set.name, 1, 2),
        Drift(VersionedPart.JUDGE, "baseline", 1, 2),
    )


def test_resumed_run_uses_its_own_profile_and_reports_drift() -> None:
    with time_machine.travel(timezone.now() - timedelta(days=7)):
        run = make_paused_run()
    save_profile(run.project, profile_without_coverage())
    out, err = io.StringIO(), io.StringIO()
    call_command("resume_run", run.pk, stdout=out, stderr=err)
    assert "profile graphrag: the run keeps version 1; the newest is 2" in err.getvalue()
    assert out.getvalue().startswith(f"run {run.pk}: completed")
    assert Score.objects.filter(run=run, metric__name="keyword_coverage").count() == 6


def test_only_paused_or_running_runs_can_be_resumed() -> None:
    with pytest.raises(CommandError, match="Only a paused run"):
        call_command("resume_run", make_draft_run().pk)
    with pytest.raises(CommandError, match="Run 999 does not exist"):
        call_command("resume_run", 999)


def test_work_on_a_run_ends_with_the_run() -> None:
    run = launch_run(make_answer_set(), RunSpec(judge=None), None)
    out = io.StringIO()
    call_command("work", run.pk, stdout=out)
    assert out.getvalue().splitlines() == [f"run {run.pk}: completed"]


def test_work_without_a_run_waits_for_runs_until_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[Run] = []
    monkeypatch.setattr(work, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(
        work.time,
        "sleep",
        lambda _: launched or launched.append(launch_run(make_answer_set(), RunSpec(judge=None), None)),
    )
    out = io.StringIO()
    call_command("work", "--seconds", "0.5", stdout=out)
    assert out.getvalue().splitlines() == [f"run {launched[0].pk}: completed"]


def test_retry_failed_command_repeats_failed_units() -> None:
    answers = make_answer_set()
    run = launch_run(answers, RunSpec(judge=None), None)
    call_command("work", "--once", run.pk, stdout=io.StringIO())
    with pytest.raises(CommandError, match="nothing to retry"):
        call_command("retry_failed", run.pk)
    WorkUnit.objects.filter(pk=run.units.first().pk).update(state="failed", reason="crash_loop")
    out = io.StringIO()
    call_command("retry_failed", run.pk, "--format", "json", stdout=out)
    assert json.loads(out.getvalue()) == {"run": run.pk, "status": "completed", "reason": "", "units": 6, "failed": 0}


def test_incomplete_run_exits_with_status_100() -> None:
    """All answers failed, so every keyword metric lacks its answers."""
    answers = AnswerSet.objects.get(pk=make_answer_set().pk)
    for row in answers.question_set.questions.all():
        make_answer(answers, row, "", round=1, status="failed", reason="timeout")
    run = pause_run(launch_run(answers, RunSpec(judge=None), None), None)
    with pytest.raises(SystemExit) as exit_info:
        call_command("resume_run", run.pk, stdout=io.StringIO())
    assert exit_info.value.code == 100
