"""Criteria in the back office: an evaluator drafts, a lead activates, others see and do nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluation.criteria.services import active_criteria
from evaluation.judges.shipped import save_judge
from evaluation.models import (
    Attempt,
    AuditEvent,
    CriterionEvent,
    CriterionVersion,
    Endpoint,
    Reply,
    RubricVersion,
    Score,
    WorkUnit,
)
from evaluation.models.work import EndpointQuotaLease
from tests.evaluation.criteria.written import ENGLISH, drafted, in_force, level_form_data
from tests.factories import make_project
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.pages.world import PEOPLE, World, make_world

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
ADD = "admin:evaluation_criterionversion_add"
CHANGE = "admin:evaluation_criterionversion_change"
LIST = "admin:evaluation_criterionversion_changelist"
HOSTILE = "{metrics} {{ 7|add:35 }} {% debug %} %(x)s <script>alert(1)</script>"


def form_data(world: World, **overrides: Any) -> dict[str, Any]:
    return {
        "project": world.project.pk,
        "name": "tone",
        "title_ko": "말투",
        "title_en": "Tone",
        "form": "levels",
        "direction": "higher",
        "question_ko": "알맞은 말투입니까?",
        **level_form_data(("1", "무례함", ""), ("2", "차가움", ""), ("3", "공손함", "")),
        "sees": ["contexts"],
        "needs": [],
        "categories": "single_hop\nmulti_hop_2",
        "offline": "relevancy",
        **overrides,
    }


def test_evaluator_drafts_a_criterion_and_equal_content_makes_no_new_version() -> None:
    world = make_world()
    client = world.client("evaluator")
    for _ in range(2):
        assert client.post(reverse(ADD), form_data(world)).status_code == 302
    version = CriterionVersion.objects.get()
    spec = version.read()
    assert (version.version, version.created_by) == (1, world.people["evaluator"])
    assert (spec.languages, spec.categories, spec.ko and spec.ko.keys) == (
        ("ko",),
        ("single_hop", "multi_hop_2"),
        (1, 2, 3),
    )
    assert not list(active_criteria(world.project.pk))


def test_edit_starts_from_earlier_version_and_becomes_the_next() -> None:
    world = make_world()
    first_version = drafted(
        world.project, name="tone", categories=["a"], sees=["contexts", "persona"], needs=["persona"]
    )
    client = world.client("evaluator")
    form = client.get(reverse(ADD), {"from": first_version.pk}).context["adminform"].form
    values = {name: form.initial.get(name, "") for name in form.fields}
    rows = [tuple(row.values()) for row in values.pop("levels")]
    assert rows == [("1", "무례함", "Rude"), ("2", "차가움", "Cold"), ("3", "공손함", "Polite")]
    values |= level_form_data(*rows)
    assert client.post(reverse(ADD), values).status_code == 302
    assert CriterionVersion.objects.count() == 1  # nothing was edited
    assert client.post(reverse(ADD), values | {"instruction_en": "Be fair"}).status_code == 302
    second_version = CriterionVersion.objects.get(version=2)
    assert second_version.read().model_dump(exclude={"en"}) == first_version.read().model_dump(exclude={"en"})


@pytest.mark.parametrize(
    ("overrides", "field", "message"),
    [
        ({"name": "correctness"}, "name", "is used by another metric"),
        ({"levels-0-key": ""}, "levels", "Level 1: enter its value as a number."),
        ({"levels-1-key": "하나"}, "levels", "Level 2: enter its value as a number."),
        ({"levels-2-ko": ""}, "levels", "Level 3: describe in Korean when an answer gets it."),
        ({"levels-0-en": "Rude", "question_en": "Right?"}, "levels", "Level 2: describe in English"),
        ({"levels-1-key": "3", "levels-2-key": "4"}, "levels", "without gaps"),
        ({"levels-1-ko": "차\u202e"}, "levels", "level 2: "),
        (
            {"form": "class", "direction": "none", "offline": "none", "levels-0-key": ""},
            "levels",
            "Class 1: enter a name",
        ),
        (
            {"question_ko": "", **dict.fromkeys(("levels-0-ko", "levels-1-ko", "levels-2-ko"), "")},
            "__all__",
            "in Korea",
        ),
        ({"title_en": "Tone\u202e"}, "title_en", "invisible characters"),
        ({"needs": ["persona"]}, "__all__", "judge can"),
        ({"sees": ["everything"]}, "sees", "everything"),
    ],
)
def test_errors_are_shown_at_their_field(overrides: dict[str, Any], field: str, message: str) -> None:
    world = make_world()
    response = world.client("evaluator").post(
        reverse(ADD), form_data(world, **overrides), headers={"accept-language": "en"}
    )
    errors = response.context["adminform"].form.errors
    assert message in str(errors[field])
    assert not CriterionVersion.objects.exists()


@pytest.mark.parametrize("person", PEOPLE)
def test_roles_may_draft_view_try_and_activate_as_permitted(person: str) -> None:
    world = make_world()
    version = drafted(world.project)
    client = world.client(person)
    drafts, leads = person in {"evaluator", "lead", "admin"}, person in {"lead", "admin"}
    page = client.get(reverse(CHANGE, args=[version.pk]))
    assert (page.status_code == 200) is drafts
    assert ("Activate this version" in page.content.decode()) is leads
    assert (client.get(reverse(ADD)).status_code == 200) is drafts
    trial = {"answers": world.run.answer_set_id, "do": "trial"}
    assert (client.post(reverse("admin:criterion-try", args=[version.pk]), trial).status_code == 200) is drafts
    client.post(reverse("admin:criterion-activate", args=[version.pk]))
    assert (CriterionEvent.objects.filter(verb="activated").count() == 1) is leads
    client.post(reverse("admin:criterion-deactivate", args=[version.pk]))
    assert (CriterionEvent.objects.filter(verb="deactivated").count() == 1) is leads


def test_lead_of_another_project_neither_sees_nor_activates_criterion() -> None:
    world, foreign = make_world(), in_force(make_project())
    client = world.client("lead")
    assert client.get(reverse(CHANGE, args=[foreign.pk])).status_code == 302
    assert foreign.criterion.name not in client.get(reverse(LIST)).content.decode()
    for action in ("activate", "deactivate", "try"):
        assert client.post(reverse(f"admin:criterion-{action}", args=[foreign.pk])).status_code == 404
    rubric = RubricVersion.objects.filter(family__startswith="criterion:").first()
    assert rubric is not None
    assert client.get(reverse("admin:evaluation_rubricversion_change", args=[rubric.pk])).status_code == 302
    assert client.get(f"/api/v1/rubrics/{rubric.pk}/").status_code == 404
    assert foreign.criterion.name not in client.get("/api/v1/rubrics/").content.decode()
    own = in_force(world.project)
    assert own.criterion.name in client.get("/api/v1/rubrics/").content.decode()


def test_criterion_actions_require_post() -> None:
    world = make_world()
    version = drafted(world.project)
    for action in ("activate", "deactivate", "try"):
        response = world.client("lead").get(reverse(f"admin:criterion-{action}", args=[version.pk]), follow=True)
        assert response.redirect_chain[-1][0] == reverse("admin:evaluation_criterionversion_change", args=[version.pk])
        assert response.status_code == 200


def test_hostile_text_stays_text_on_page_and_in_prompt() -> None:
    world = make_world()
    texts = {**ENGLISH, "instruction": HOSTILE, "question": HOSTILE}
    version = drafted(world.project, en=texts, ko=None, title_en="<b>Tone</b>")
    client = world.client("lead")
    form_fields = {"answers": world.run.answer_set_id, "judge": world.run.judges.get().judge_version_id, "do": "prompt"}
    version_of_words = drafted(world.project, en=texts, ko=None, offline="relevancy")
    for criterion_version in (version, version_of_words):
        for response in (
            client.get(reverse(CHANGE, args=[criterion_version.pk])),
            client.post(reverse("admin:criterion-try", args=[criterion_version.pk]), form_fields),
        ):
            page = response.content.decode()
            assert "<script>alert(1)" not in page
            assert "{metrics} {{ 7|add:35 }} {% debug %} %(x)s &lt;script&gt;" in page
    messages = response.context["page"].preview.messages
    assert [role for role, _ in messages] == ["system", "user"]
    assert HOSTILE in messages[0][1]


def test_trial_calls_the_judge_and_stores_no_score(judge_server: JudgeServer, settings: Any) -> None:
    world = make_world()
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    endpoint = Endpoint.objects.create(name="e", base_url=judge_server.base_url)
    judge = save_judge(world.project, "far", endpoint, model="m", language="en")
    version = drafted(world.project)
    judge_server.enqueue(actions.FAULTS["prose"] if "prose" in actions.FAULTS else actions.text("no"))
    row_counts = [table.objects.count() for table in (Score, WorkUnit, Attempt, Reply)]
    response = world.client("evaluator").post(
        reverse("admin:criterion-try", args=[version.pk]),
        {"answers": world.run.answer_set_id, "judge": judge.pk, "do": "trial"},
        headers={"accept-language": "en"},
    )
    values = [value for _, value, _ in response.context["page"].rows]
    assert (len(values), judge_server.calls) == (5, 5)
    assert values.count("failed") == 1
    assert {value for value in values if value != "failed"} <= {"1", "2", "3"}
    assert [table.objects.count() for table in (Score, WorkUnit, Attempt, Reply)] == row_counts
    event = AuditEvent.objects.get(verb="criterion.tried")
    assert (event.detail["judge"], event.detail["calls"], event.detail["cost"]) == (judge.pk, 5, None)


def test_trial_stops_at_rate_limit_and_keeps_received_results(judge_server: JudgeServer, settings: Any) -> None:
    world = make_world()
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    endpoint = Endpoint.objects.create(name="e", base_url=judge_server.base_url, max_concurrency=1)
    judge = save_judge(world.project, "far", endpoint, model="m", language="en")
    judge_server.when(lambda request: judge_server.calls == 2, actions.status(429, retry_after="300"))

    def run_trial() -> list[str]:
        response = world.client("evaluator").post(
            reverse("admin:criterion-try", args=[drafted(world.project).pk]),
            {"answers": world.run.answer_set_id, "judge": judge.pk, "do": "trial"},
            headers={"accept-language": "en"},
        )
        return [value for _, value, _ in response.context["page"].rows]

    assert sum(value == "failed" for value in run_trial()) == 4
    assert judge_server.calls == 2
    endpoint.refresh_from_db()
    assert endpoint.cooldown_until is not None
    assert run_trial() == ["failed"] * 5
    assert judge_server.calls == 2  # the second trial finds the endpoint at rest
    assert not EndpointQuotaLease.objects.exists()
    events = AuditEvent.objects.filter(verb="criterion.tried").order_by("id")
    assert [event.detail["calls"] for event in events] == [2, 0]


def test_trial_with_baseline_reports_missing_rule() -> None:
    world = make_world()
    version = drafted(world.project)
    response = world.client("evaluator").post(
        reverse("admin:criterion-try", args=[version.pk]), {"answers": world.run.answer_set_id, "do": "trial"}
    )
    assert {value for _, value, _ in response.context["page"].rows} == {"not applicable"}


def test_rubric_of_a_criterion_cannot_be_drafted_by_hand() -> None:
    world = make_world()
    activated = in_force(world.project)
    rubric = RubricVersion.objects.get(family=f"criterion:{activated.criterion.name}", language="en")
    add = reverse("admin:evaluation_rubricversion_add")
    form = world.client("evaluator").get(add, {"from": rubric.pk}).context["adminform"].form
    response = world.client("evaluator").post(add, {"text": form.initial["text"]}, headers={"accept-language": "en"})
    assert "created when a criterion is activated" in response.content.decode()


def test_criterion_without_author_says_so() -> None:
    world = make_world()
    version = drafted(world.project)
    page = world.client("lead").get(reverse(CHANGE, args=[version.pk]), headers={"accept-language": "en"})
    assert ("created by", "a command (person unknown)") in page.context["page"].facts


def test_query_count_of_list_and_page_is_constant() -> None:
    world = make_world()
    client = world.client("lead")
    version = in_force(world.project)
    for url in (reverse(LIST), reverse(CHANGE, args=[version.pk])):
        counts = []
        for _ in range(3):
            client.get(url)
            with CaptureQueriesContext(connection) as queries:
                assert client.get(url).status_code == 200
            counts.append(len(queries))
            in_force(world.project)
        assert len(set(counts)) == 1, (url, counts)
