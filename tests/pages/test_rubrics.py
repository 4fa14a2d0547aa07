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


def entered(world: World, text: str = "") -> dict[str, object]:
    rubric = shipped_rubric(FAMILY, "en").model_copy(update={"instruction": HOSTILE})
    return {"project": world.project.pk, "text": text or rubric_yaml(rubric), "note": "dates"}


def drafted(world: World) -> RubricVersion:
    world.client("evaluator").post(reverse(ADD), entered(world))
    return RubricVersion.objects.get(project=world.project)


def test_an_evaluator_drafts_and_the_text_is_shown_as_text() -> None:
    world = make_world()
    row = drafted(world)
    assert (row.version, row.note, row.created_by) == (2, "dates", world.people["evaluator"])
    page = world.client("evaluator").get(reverse(CHANGE, args=[row.pk])).content.decode()
    assert "<script>alert(1)" not in page
    assert "{{ 7|add:35 }}" in page


def test_what_is_not_in_other_words_alone_is_refused_beside_the_field() -> None:
    world = make_world()
    wrong = rubric_yaml(shipped_rubric(FAMILY, "en")).replace("value: 5", "value: 6")
    page = world.client("evaluator").post(reverse(ADD), entered(world, wrong)).content.decode()
    assert "errorlist" in page
    assert not RubricVersion.objects.filter(project=world.project).exists()


def test_a_lead_puts_it_in_force_for_a_reason_and_takes_it_out() -> None:
    world = make_world()
    row = drafted(world)
    judge = make_judge(world.project, endpoint=Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1"))
    decide = reverse("admin:rubric-decide", args=[row.pk])
    lead = world.client("lead")
    assert "Put in force without proof" in lead.get(reverse(CHANGE, args=[row.pk])).content.decode()
    lead.post(decide, {"judge": judge.pk, "reason": "", "do": "activate"})
    assert not RubricEvent.objects.exists()
    lead.post(decide, {"judge": judge.pk, "reason": "It reads dates", "do": "activate"})
    assert version_statuses(rubric_scope(judge, FAMILY)).active == row
    assert "It reads dates" in lead.get(reverse(CHANGE, args=[row.pk])).content.decode()
    lead.post(decide, {"judge": judge.pk, "reason": "Worse", "do": "retire"})
    assert version_statuses(rubric_scope(judge, FAMILY)).active.version == 1


@pytest.mark.parametrize("who", [person for person in PEOPLE if person not in {"lead", "admin"}])
def test_nobody_else_puts_anything_in_force(who: str) -> None:
    world = make_world()
    row = drafted(world)
    judge = make_judge(world.project, endpoint=Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1"))
    client = world.client(who)
    reply = client.post(reverse("admin:rubric-decide", args=[row.pk]), {"judge": judge.pk, "reason": "r"})
    assert reply.status_code in {302, 403, 404}
    assert not RubricEvent.objects.exists()
    if who != "evaluator":
        assert client.get(reverse(CHANGE, args=[row.pk])).status_code in {302, 403, 404}


def test_another_project_sees_nothing_of_a_draft() -> None:
    world, other = make_world(), make_world()
    row = drafted(world)
    client = other.client("lead")
    assert client.get(reverse(CHANGE, args=[row.pk])).status_code == 302  # to the index: it is not there
    judge = make_judge(other.project, endpoint=Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1"))
    at = reverse("admin:rubric-decide", args=[row.pk])
    assert client.post(at, {"judge": judge.pk, "reason": "r"}).status_code == 404


def test_a_run_is_started_in_the_browser_with_versions_side_by_side() -> None:
    world = make_world()
    version = drafted(world)
    endpoint = Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1")
    make_judge(world.project, "gpt", endpoint=endpoint)
    make_judge(world.project, "korean", endpoint=endpoint, language="ko")
    answers = world.run.answer_set
    client = world.client("evaluator")
    address = f"{reverse('evaluation-run')}?answers={answers.pk}"
    chosen = client.get(address).context["page"].form.fields["rubrics"].choices
    assert [value for value, _ in chosen] == [f"{FAMILY}@2", f"{FAMILY}@1"]
    fields = {"profile": "graphrag", "judge": "gpt", "repeat": 1, "token": str(uuid4()), "plan": "1"}
    fields |= {"rubrics": [f"{FAMILY}@2", f"{FAMILY}@1"]}
    shown = client.post(address, fields).context["page"].form
    client.post(address, fields | {"start": "1", "planned": shown.digest})
    run = Run.objects.exclude(pk=world.run.pk).get()
    seats = run.judges.filter(rubric_version__family=FAMILY, judge_version__name="gpt").order_by("pk")
    assert [(one.rubric_version.version, one.primary, one.standing) for one in seats] == [
        (version.version, True, "draft"),
        (1, False, "active"),
    ]
    wrong = client.post(address, fields | {"judge": "korean"}).context["page"].form
    assert list(wrong.errors) == ["rubrics"]
    other = make_world()
    foreign = f"{reverse('evaluation-run')}?answers={other.run.answer_set_id}"
    assert other.client("evaluator").get(foreign).context["page"].form.fields["rubrics"].choices == []
