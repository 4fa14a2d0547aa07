"""Pages of generated questions: their queries do not grow, and hostile texts of a model stay text."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from contrib.generation.models import DraftDecision, DraftQuestion
from contrib.generation.tests.site import draft_of
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script> {{ x }} How many?"


def more(world: World, positions: range) -> None:
    """Further questions like the one that is there, every other one accepted."""
    first = draft_of(world)
    for number in positions:
        content = {**first.content, "text": HOSTILE}
        draft = DraftQuestion.objects.create(
            generation=first.generation, position=number, kind="single_hop", content=content
        )
        if number % 2:
            DraftDecision.objects.create(draft=draft, seq=1, verb="accepted", created_by=world.people["lead"])


@pytest.mark.parametrize("name", ["generation", "generation-list"])
def test_queries_do_not_grow_with_questions(client: Client, django_assert_max_num_queries: Any, name: str) -> None:
    world = make_world()
    client.force_login(world.people["lead"])
    address = reverse(name, args=[draft_of(world).generation_id] if name == "generation" else [])
    more(world, range(1, 3))
    client.get(address)
    with django_assert_max_num_queries(25) as few:
        client.get(address)
    more(world, range(3, 11))
    with django_assert_max_num_queries(25) as many:
        page = client.get(address)
    assert len(many) == len(few)
    assert "<script>alert" not in page.content.decode()


def test_a_reader_sees_no_button_and_a_lead_does(client: Client) -> None:
    world = make_world()
    address = reverse("generation", args=[draft_of(world).generation_id])
    client.force_login(world.people["evaluator"])
    assert reverse("draft-decide", args=[draft_of(world).pk]) not in client.get(address).content.decode()
    client.force_login(world.people["lead"])
    assert reverse("draft-decide", args=[draft_of(world).pk]) in client.get(address).content.decode()
