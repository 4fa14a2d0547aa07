"""Versions of judge prompts in the back office: evaluators draft, leads put in force for a reason, others see nothing
of another project's."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.urls import reverse

from evaluation.criteria.rubrics import rubric_scope, version_statuses
from evaluation.judging.draft_checks import rubric_yaml
from evaluation.judging.rubric import shipped_rubric
from evaluation.models import Endpoint, RubricEvent, RubricVersion, Run
from tests.factories import make_judge
from tests.pages.world import PEOPLE, World, make_world

pytestmark = pytest.mark.django_db
FAMILY = "answer_quality"
ADD = "admin:evaluation_rubricversion_add"
CHANGE = "admin:evaluation_rubricversion_change"
HOSTILE = "{metrics} {{ 7|add:35 }} {% debug %} <script>alert(1)</script>"


def form_data(world: World, text: str = "") -> dict[str, object]:
    rubric = shipped_rubric(FAMILY, "en").model_copy(update={"instruction": HOSTILE})
    return {"project": world.project.pk, "text": text or rubric_yaml(rubric), "note": "dates"}


def draft_rubric(world: World) -> RubricVersion:
    world.client("evaluator").post(reverse(ADD), form_data(world))
    return RubricVersion.objects.get(project=world.project)


def test_evaluator_drafts_rubric_and_text_is_escaped() -> None:
    world = make_world()
    row = draft_rubric(world)
    assert (row.version, row.note, row.created_by) == (2, "dates", world.people["evaluator"])
    page = world.client("evaluator").get(reverse(CHANGE, args=[row.pk])).content.decode()
    assert "<script>alert(1)" not in page
    assert "{{ 7|add:35 }}" in page


def test_rubric_change_beyond_wording_is_refused_at_the_field() -> None:
    world = make_world()
    changed_yaml = rubric_yaml(shipped_rubric(FAMILY, "en")).replace("value: 5", "value: 6")
    page = world.client("evaluator").post(reverse(ADD), form_data(world, changed_yaml)).content.decode()
    assert "errorlist" in page
    assert not RubricVersion.objects.filter(project=world.project).exists()


def test_lead_activates_and_retires_rubric_with_a_reason() -> None:
    world = make_world()
    row = draft_rubric(world)
    judge = make_judge(world.project, endpoint=Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1"))
    decide = reverse("admin:rubric-decide", args=[row.pk])
    lead = world.client("lead")
    assert "Activate without approval" in lead.get(reverse(CHANGE, args=[row.pk])).content.decode()
    lead.post(decide, {"judge": judge.pk, "reason": "", "do": "activate"})
    assert not RubricEvent.objects.exists()
    lead.post(decide, {"judge": judge.pk, "reason": "It reads dates", "do": "activate"})
    assert version_statuses(rubric_scope(judge, FAMILY)).active == row
    assert "It reads dates" in lead.get(reverse(CHANGE, args=[row.pk])).content.decode()
    lead.post(decide, {"judge": judge.pk, "reason": "Worse", "do": "retire"})
    assert version_statuses(rubric_scope(judge, FAMILY)).active.version == 1


@pytest.mark.parametrize("username", [person for person in PEOPLE if person not in {"lead", "admin"}])
def test_only_leads_may_activate_rubrics(username: str) -> None:
    world = make_world()
    row = draft_rubric(world)
    judge = make_judge(world.project, endpoint=Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1"))
    client = world.client(username)
    reply = client.post(reverse("admin:rubric-decide", args=[row.pk]), {"judge": judge.pk, "reason": "r"})
    assert reply.status_code in {302, 403, 404}
    assert not RubricEvent.objects.exists()
    if username != "evaluator":
        assert client.get(reverse(CHANGE, args=[row.pk])).status_code in {302, 403, 404}


def test_draft_is_hidden_from_other_projects() -> None:
    world, foreign_world = make_world(), make_world()
    row = draft_rubric(world)
    client = foreign_world.client("lead")
    assert client.get(reverse(CHANGE, args=[row.pk])).status_code == 302  # to the index: it is not there
    judge = make_judge(
        foreign_world.project, endpoint=Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1")
    )
    decide_address = reverse("admin:rubric-decide", args=[row.pk])
    assert client.post(decide_address, {"judge": judge.pk, "reason": "r"}).status_code == 404


def test_run_can_use_several_rubric_versions() -> None:
    world = make_world()
    version = draft_rubric(world)
    endpoint = Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1")
    make_judge(world.project, "gpt", endpoint=endpoint)
    make_judge(world.project, "korean", endpoint=endpoint, language="ko")
    answers = world.run.answer_set
    client = world.client("evaluator")
    address = f"{reverse('evaluation-run')}?answers={answers.pk}"
    choices = client.get(address).context["page"].form.fields["rubrics"].choices
    assert [value for value, _ in choices] == [f"{FAMILY}@2", f"{FAMILY}@1"]
    fields = {"profile": "graphrag", "judge": "gpt", "repeat": 1, "token": str(uuid4()), "plan": "1"}
    fields |= {"rubrics": [f"{FAMILY}@2", f"{FAMILY}@1"]}
    bound_form = client.post(address, fields).context["page"].form
    client.post(address, fields | {"start": "1", "planned": bound_form.digest})
    run = Run.objects.exclude(pk=world.run.pk).get()
    run_judges = run.judges.filter(rubric_version__family=FAMILY, judge_version__name="gpt").order_by("pk")
    assert [(run_judge.rubric_version.version, run_judge.primary, run_judge.standing) for run_judge in run_judges] == [
        (version.version, True, "draft"),
        (1, False, "active"),
    ]
    error_form = client.post(address, fields | {"judge": "korean"}).context["page"].form
    assert list(error_form.errors) == ["rubrics"]
    foreign_world = make_world()
    foreign = f"{reverse('evaluation-run')}?answers={foreign_world.run.answer_set_id}"
    assert foreign_world.client("evaluator").get(foreign).context["page"].form.fields["rubrics"].choices == []
