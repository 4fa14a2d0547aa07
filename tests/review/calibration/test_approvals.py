"""Licences: what a look proved, for which runs that holds, every way in which it lapses, and who is told."""

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
from tests.review.calibration.place import Place, scripted

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def prepared_place(module_db: None) -> Place:
    """A judge whose better version was accepted."""
    place = Place()
    with scripted(place):
        place.accept(place.drafted("SKILLED"))
    return place


def judged_run(place: Place, **more: Any) -> Run:
    more = {"judge": place.judge, **more}
    return prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), **more)


def of(run: Run, name: str = "correctness") -> RunApproval:
    return next(one for one in run_approvals(run) if one.metric == name)


def codes(run: Run) -> list[str]:
    one = of(run)
    assert one.state is (ApprovalState.STALE if one.lapses else ApprovalState.LICENSED)
    return [lapse.code for lapse in one.lapses]


def test_a_run_by_the_accepted_version_is_licensed_with_its_proof(place: Place) -> None:
    run = judged_run(place)
    one = of(run)
    assert (one.state, one.lapses, one.look, one.answers, one.model) == ("licensed", (), "gold #1", 120, "model-1")
    assert of(run, "completeness").state == "none"  # nobody labelled it
    assert json.loads(json.dumps(one.to_dict()))["state"] == "licensed"


def test_without_a_proof_there_is_none_also_for_questions_of_another_set(place: Place) -> None:
    other = make_judge(place.run.project, "other", endpoint=place.judge.endpoint)
    assert of(judged_run(place, judge=other)).state == "none"
    run = judged_run(place)
    run.answer_set.question_set.name = "another"
    assert of(run).state == "none"


def test_it_lapses_after_so_many_days_and_not_a_day_before(place: Place, settings: Any) -> None:
    run = judged_run(place)
    proved = of(run).proved_at
    assert proved is not None
    for days, told in ((180, []), (181, ["licence_old"])):
        run.created_at = proved + timedelta(days=days, minutes=1)
        assert codes(run) == told
    settings.CONCORD_APPROVAL_DAYS = 181
    assert codes(run) == []


def test_it_lapses_by_another_version_and_holds_again_when_the_proved_one_is_back(place: Place) -> None:
    proved, later = RubricVersion.objects.get(note="", project=place.run.project), place.drafted("LIKE IT")
    activate(later, place.judge, by=None, reason="a lead wants it")
    assert codes(judged_run(place)) == ["licence_rubric"]
    activate(proved, place.judge, by=None, reason="back")
    assert codes(judged_run(place)) == []


def test_it_lapses_by_another_model_behind_the_name_or_in_the_judge(place: Place) -> None:
    run = judged_run(place)
    pinned = {"outcome": "ok", "rung": "json_schema", "judge_hash": "x" * 64}
    Preflight.objects.create(run=run, judge_version=place.judge, model_returned="model-2", **pinned)
    assert codes(run) == ["licence_model"]
    same = judged_run(place)
    Preflight.objects.create(run=same, judge_version=place.judge, model_returned="model-1", **pinned)
    assert codes(same) == []
    fields = {"project": place.run.project, "name": "judge", "endpoint": place.judge.endpoint, "content_hash": "y" * 64}
    another = JudgeVersion.objects.create(version=2, model="m-new", language="en", **fields)
    assert codes(judged_run(place, judge=another)) == ["licence_judge"]


def test_it_lapses_by_language(place: Place) -> None:
    fields = {"project": place.run.project, "name": "judge", "endpoint": place.judge.endpoint, "content_hash": "z" * 64}
    model, params = place.judge.model, place.judge.params
    korean = JudgeVersion.objects.create(version=2, model=model, params=params, language="ko", **fields)
    assert codes(judged_run(place, judge=korean)) == ["licence_language"]


def test_it_lapses_when_more_than_a_tenth_is_of_categories_without_labels(place: Place) -> None:
    run = judged_run(place)
    numbers = list(Question.objects.filter(question_set=run.answer_set.question_set).values_list("pk", flat=True))
    assert len(numbers) == 240
    with append_only.suspended():
        Question.objects.filter(pk__in=numbers[:24]).update(category="new")
        assert codes(run) == []  # a tenth exactly
        Question.objects.filter(pk__in=numbers[:25]).update(category="new")
    assert codes(run) == ["licence_categories"]
    assert of(run).lapses[0].params == {"share": 10, "names": "new"}


def told_run(place: Place) -> Run:
    """A run with a value for every answer, completed."""
    run = judged_run(place)
    rubric = run.judges.get(rubric_version__family="answer_quality").rubric_version
    for answer in answer_rows(place.run)[:30]:
        score(run, answer, metric("correctness"), 4, judge_version=place.judge, rubric_version=rubric)
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    return Run.objects.get(pk=run.pk)


def test_page_report_and_commands_say_so_and_the_gate_fails_without_one(place: Place) -> None:
    run = told_run(place)
    assert any(one.state == "licensed" for one in make_report(run).licences)
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    page = lead.get(reverse("run", args=[run.pk])).content.decode()
    assert "Proved by gold #1 on 120 answers." in page
    assert "No version of this prompt has proved itself" in page
    for form in ("json", "md", "html"):
        told = b"".join(lead.get(reverse("run-report", args=[run.pk]), {"format": form}).streaming_content).decode()
        assert ('"licensed"' if form == "json" else "gold #1" if form == "html" else "gold") in told, form
    out = StringIO()
    call_command("results", str(run.pk), stdout=out)
    assert "Proved by gold #1" in out.getvalue()
    gate = run_gate(run, GateRequest(require_licence=True))
    assert gate is not None
    assert (gate.exit_code, gate.unlicensed) == (0, ())
    activate(place.drafted("LIKE IT"), place.judge, by=None, reason="r")
    stale = told_run(place)
    gate = run_gate(stale, GateRequest(require_licence=True))
    assert gate is not None
    assert (gate.exit_code, gate.unlicensed) == (100, ("correctness",))
    assert gate_reasons(gate)[-1] == "No licence that holds: correctness."
    assert gate.to_dict()["unlicensed"] == ["correctness"]
    assert run_gate(stale, GateRequest()) is None


@pytest.mark.slow
def test_a_gate_by_rest_can_ask_for_a_licence_too(place: Place) -> None:
    activate(place.drafted("LIKE IT"), place.judge, by=None, reason="r")
    stale = told_run(place)
    viewer = Caller(Role.VIEWER, place.run.project)
    gates = [
        json.loads(b"".join(viewer.get(f"runs/{stale.pk}/report/", **asked).streaming_content))["gate"]
        for asked in ({"require_licence": "true"}, {})
    ]
    assert (gates[0]["exit_code"], gates[0]["unlicensed"]) == (100, ["correctness"])
    assert gates[1] is None
