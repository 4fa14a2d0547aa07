"""Unusual numbers in addresses and forms are refused or ignored; no page fails."""

from __future__ import annotations

import pytest
from django.urls import reverse

from config.middleware import NUL
from evaluation.core.canonical import parse_int
from review.models import Draft, ReviewQueue
from tests.examples import first_fast
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db

HUGE = "9" * 5_000  # more digits than Python reads at once
ODD = [HUGE, "9" * 30, "²", "٣", "-1", "1e3", NUL]


@pytest.fixture
def world() -> World:
    return make_world()


def test_parse_int_accepts_only_short_ascii_digits() -> None:
    assert [parse_int(text) for text in (*ODD, "", " 1")] == [None] * 9
    assert parse_int("007") == 7
    assert parse_int("9" * 18) == 10**18 - 1
    assert parse_int("9" * 19) is None  # might be beyond 64 bits
    assert [parse_int(text, 2) for text in ("12", "123")] == [12, None]


@pytest.mark.parametrize("odd", first_fast([odd for odd in ODD if odd != NUL], 2))  # which no view sees
def test_addresses_with_odd_numbers_are_not_found(world: World, odd: str) -> None:
    lead = world.client("lead")
    paths = [
        (lead, reverse("queue-new"), "run", 404),
        (lead, reverse("queue-preview"), "run", 404),
        (lead, reverse("answer", args=[world.answer.pk]), "run", 404),
        (lead, reverse("run-answers", args=[world.run.pk]), "page", 200),
        (lead, reverse("question-set", args=[world.question_set.pk]), "page", 200),
        (lead, reverse("queue-items", args=[world.queue.pk]), "page", 200),
    ]
    for client, address, field, status in paths:
        assert client.get(address, {field: odd}).status_code == status, address


@pytest.mark.parametrize("odd", first_fast(ODD, 3))
def test_forms_with_odd_numbers_are_refused(world: World, odd: str) -> None:
    lead = world.client("lead")
    override = reverse("answer-override", args=[world.answer.pk])
    assert lead.post(override, {"metric": odd, "reason": "r"}).status_code == 404
    decide = reverse("adjudication-decide", args=[world.escalation.assignment.item_id])
    form_data = {"value:correctness": "3", "seen:correctness": odd, "reason": "r"}
    assert lead.post(decide, form_data).status_code == 409


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf", "1e999", HUGE])
def test_draft_keeps_valid_fields_beside_an_invalid_number(world: World, odd: str) -> None:
    client, draft_address = world.client("member"), reverse("review-draft", args=[world.assignment.pk])
    form_data = {"value:correctness": odd, "value:faithfulness": "4", "comment": "as far as I got"}
    assert client.post(draft_address, form_data).status_code == 204
    payload = Draft.objects.get(assignment=world.assignment).payload
    assert payload["comment"] == "as far as I got"
    assert payload["values"]["correctness"]["value"] is None
    assert payload["values"]["faithfulness"]["value"] == 4
    response = client.post(reverse("review-submit", args=[world.assignment.pk]), {**form_data, "form_key": "k"})
    assert response.status_code == 409
    assert "as far as I got" in response.content.decode()


def test_huge_active_time_is_ignored(world: World) -> None:
    form_data = {"value:correctness": "3", "value:faithfulness": "4", "form_key": "k", "active_ms": HUGE}
    client = world.client("member")
    assert client.post(reverse("review-submit", args=[world.assignment.pk]), form_data).status_code == 302
    assert {row.active_ms for row in world.assignment.ratings.all()} == {None}


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00+14:00", "²", "2030-02-30T10:00"])
def test_impossible_deadline_is_refused(world: World, moment: str) -> None:
    address = reverse("queue-deadline", args=[world.queue.pk])
    assert world.client("lead").post(address, {"deadline": moment}).status_code == 409
    assert ReviewQueue.objects.get(pk=world.queue.pk).deadline is None
