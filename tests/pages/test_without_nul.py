"""NUL, which PostgreSQL cannot store in texts, is removed and the rest of the input is kept."""

from __future__ import annotations

import pytest
from django.urls import reverse

from review.models import Draft, ItemEvent, Override, Rating
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def test_reviewer_input_is_stored_without_nul(world: World) -> None:
    client, key = world.client("member"), [world.assignment.pk]
    form_data = {"value:correctness": "3", "value:faithfulness": "4", "comment": "so\0 far", "form_key": "k\0"}
    assert client.post(reverse("review-draft", args=key), form_data).status_code == 204
    assert Draft.objects.get().payload["comment"] == "so far"
    assert client.post(reverse("review-submit", args=key), form_data).status_code == 302
    assert {row.comment for row in Rating.objects.all()} == {"so far"}
    assert client.post(reverse("review-flag", args=key), {"kind": "unsafe", "flag_comment": "\0why"}).status_code == 302
    assert client.post(reverse("review-escalate", args=key), {"escalate_comment": "wh\0at"}).status_code == 302
    assert list(ItemEvent.objects.order_by("pk").values_list("comment", flat=True)) == ["why", "what"]


def test_lead_input_and_search_drop_nul(world: World) -> None:
    lead = world.client("lead")
    metric = world.queue.metrics.get(metric__name="correctness").metric_id
    form_data = {"metric": metric, "value:correctness": "3", "reason": "read\0 it"}
    assert lead.post(reverse("answer-override", args=[world.answer.pk]), form_data).status_code == 302
    assert Override.objects.get().reason == "read it"
    for address in (reverse("run-list"), reverse("run-answers", args=[world.run.pk])):
        assert lead.get(address, {"q": "\0", "metric": "correctness"}).status_code == 200


def test_forms_without_nul_are_unchanged(world: World) -> None:
    response = world.client("lead").get(reverse("run-list"), {"q": "A run", "state": ["completed", "failed"]})
    assert response.wsgi_request.GET.getlist("state") == ["completed", "failed"]
