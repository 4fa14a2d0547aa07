"""Approvals: the runs they cover, the reasons they become stale, and where they are shown."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.criteria.rubrics import activate
from evaluation.judges.shipped import profile_row
from evaluation.models import JudgeVersion, Preflight, Question, RubricVersion, Run
from evaluation.runs.creation import prepare_run
from evaluation.storage import append_only
from review.calibration.approvals import ApprovalState, RunApproval, run_approvals
from review.comparisons.gates import run_gate
from review.reports.gate import GateRequest, gate_reasons
from tests.evaluation.rest.clients import Caller
from tests.factories import make_judge, make_user
from tests.review.builders import answer_rows, make_report, metric, score
from tests.review.calibration.place import CalibrationSetup, scripted_judge

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def prepared_place(module_db: None) -> CalibrationSetup:
    """A judge whose better version was accepted."""
    place = CalibrationSetup()
    with scripted_judge(place):
        place.test_version(place.create_draft("SKILLED"))
    return place


def create_run(place: CalibrationSetup, **options: Any) -> Run:
    options = {"judge": place.judge, **options}
    return prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), **options)


def approval_of(run: Run, name: str = "correctness") -> RunApproval:
    return next(approval for approval in run_approvals(run) if approval.metric == name)


def lapse_codes(run: Run) -> list[str]:
    approval = approval_of(run)
    assert approval.state is (ApprovalState.STALE if approval.lapses else ApprovalState.APPROVED)
    return [lapse.code for lapse in approval.lapses]


def test_run_with_accepted_version_is_approved_by_its_test(place: CalibrationSetup) -> None:
    run = create_run(place)
    approval = approval_of(run)
    assert (approval.state, approval.lapses, approval.look, approval.answers, approval.model) == (
        "approved",
        (),
        "gold #1",
        120,
        "model-1",
    )
    assert approval_of(run, "completeness").state == "none"  # nobody labelled it
    assert json.loads(json.dumps(approval.to_dict()))["state"] == "approved"


def test_no_approval_without_proof_or_for_another_question_set(place: CalibrationSetup) -> None:
    other_judge = make_judge(place.run.project, "other", endpoint=place.judge.endpoint)
    assert approval_of(create_run(place, judge=other_judge)).state == "none"
    run = create_run(place)
    run.answer_set.question_set.name = "another"
    assert approval_of(run).state == "none"


def test_approval_expires_after_the_configured_days(place: CalibrationSetup, settings: Any) -> None:
    run = create_run(place)
    approved_at = approval_of(run).approved_at
    assert approved_at is not None
    for days, expected_codes in ((180, []), (181, ["approval_old"])):
        run.created_at = approved_at + timedelta(days=days, minutes=1)
        assert lapse_codes(run) == expected_codes
    settings.CONCORD_APPROVAL_DAYS = 181
    assert lapse_codes(run) == []


def test_approval_lapses_for_another_version_and_holds_again_after_reverting(place: CalibrationSetup) -> None:
    proved_version, later_version = (
        RubricVersion.objects.get(note="", project=place.run.project),
        place.create_draft("LIKE IT"),
    )
    activate(later_version, place.judge, by=None, reason="a lead wants it")
    assert lapse_codes(create_run(place)) == ["approval_rubric"]
    activate(proved_version, place.judge, by=None, reason="back")
    assert lapse_codes(create_run(place)) == []


def test_approval_lapses_for_another_model_or_judge_version(place: CalibrationSetup) -> None:
    run = create_run(place)
    pinned = {"outcome": "ok", "response_format": "json_schema", "judge_hash": "x" * 64}
    Preflight.objects.create(run=run, judge_version=place.judge, model_returned="model-2", **pinned)
    assert lapse_codes(run) == ["approval_model"]
    same_model_run = create_run(place)
    Preflight.objects.create(run=same_model_run, judge_version=place.judge, model_returned="model-1", **pinned)
    assert lapse_codes(same_model_run) == []
    fields = {"project": place.run.project, "name": "judge", "endpoint": place.judge.endpoint, "content_hash": "y" * 64}
    new_judge = JudgeVersion.objects.create(version=2, model="m-new", language="en", **fields)
    assert lapse_codes(create_run(place, judge=new_judge)) == ["approval_judge"]


def test_approval_lapses_for_another_language(place: CalibrationSetup) -> None:
    fields = {"project": place.run.project, "name": "judge", "endpoint": place.judge.endpoint, "content_hash": "z" * 64}
    model, params = place.judge.model, place.judge.params
    korean = JudgeVersion.objects.create(version=2, model=model, params=params, language="ko", **fields)
    assert lapse_codes(create_run(place, judge=korean)) == ["approval_language"]


def test_approval_lapses_above_a_tenth_of_unlabelled_categories(place: CalibrationSetup) -> None:
    run = create_run(place)
    numbers = list(Question.objects.filter(question_set=run.answer_set.question_set).values_list("pk", flat=True))
    assert len(numbers) == 240
    with append_only.suspended():
        Question.objects.filter(pk__in=numbers[:24]).update(category="new")
        assert lapse_codes(run) == []  # a tenth exactly
        Question.objects.filter(pk__in=numbers[:25]).update(category="new")
    assert lapse_codes(run) == ["approval_categories"]
    assert approval_of(run).lapses[0].params == {"share": 10, "names": "new"}


def completed_run(place: CalibrationSetup) -> Run:
    """Create a completed run with 30 scored answers."""
    run = create_run(place)
    rubric = run.judges.get(rubric_version__family="answer_quality").rubric_version
    for answer in answer_rows(place.run)[:30]:
        score(run, answer, metric("correctness"), 4, judge_version=place.judge, rubric_version=rubric)
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    return Run.objects.get(pk=run.pk)


def test_page_report_and_commands_show_approval_and_gate_requires_it(place: CalibrationSetup) -> None:
    run = completed_run(place)
    assert any(row.state == "approved" for row in make_report(run).approvals)
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    page = lead.get(reverse("run", args=[run.pk])).content.decode()
    assert "Accepted in gold #1 on 120 answers." in page
    assert "No version of this prompt is approved" in page
    for form in ("json", "md", "html"):
        report = b"".join(lead.get(reverse("run-report", args=[run.pk]), {"format": form}).streaming_content).decode()
        assert ('"approved"' if form == "json" else "gold #1" if form == "html" else "gold") in report, form
    out = StringIO()
    call_command("results", str(run.pk), stdout=out)
    assert "Accepted in gold #1" in out.getvalue()
    gate = run_gate(run, GateRequest(require_approval=True))
    assert gate is not None
    assert (gate.exit_code, gate.unapproved) == (0, ())
    activate(place.create_draft("LIKE IT"), place.judge, by=None, reason="r")
    stale = completed_run(place)
    gate = run_gate(stale, GateRequest(require_approval=True))
    assert gate is not None
    assert (gate.exit_code, gate.unapproved) == (100, ("correctness",))
    assert gate_reasons(gate)[-1] == "No valid approval: correctness."
    assert gate.to_dict()["unapproved"] == ["correctness"]
    assert run_gate(stale, GateRequest()) is None


@pytest.mark.slow
def test_rest_gate_can_require_an_approval(place: CalibrationSetup) -> None:
    activate(place.create_draft("LIKE IT"), place.judge, by=None, reason="r")
    stale = completed_run(place)
    viewer = Caller(Role.VIEWER, place.run.project)
    gates = [
        json.loads(b"".join(viewer.get(f"runs/{stale.pk}/report/", **params).streaming_content))["gate"]
        for params in ({"require_approval": "true"}, {})
    ]
    assert (gates[0]["exit_code"], gates[0]["unapproved"]) == (100, ["correctness"])
    assert gates[1] is None
