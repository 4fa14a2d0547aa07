"""Pages of generated questions: query counts do not grow, and hostile model texts stay text."""

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


def add_questions(world: World, positions: range) -> None:
    """Add questions like the existing one, every other one accepted."""
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
    add_questions(world, range(1, 3))
    client.get(address)
    with django_assert_max_num_queries(25) as few_queries:
        client.get(address)
    add_questions(world, range(3, 11))
    with django_assert_max_num_queries(25) as many_queries:
        page = client.get(address)
    assert len(many_queries) == len(few_queries)
    assert "<script>alert" not in page.content.decode()


def test_only_a_lead_sees_the_decision_form(client: Client) -> None:
    world = make_world()
    address = reverse("generation", args=[draft_of(world).generation_id])
    client.force_login(world.people["evaluator"])
    assert reverse("draft-decide", args=[draft_of(world).pk]) not in client.get(address).content.decode()
    client.force_login(world.people["lead"])
    assert reverse("draft-decide", args=[draft_of(world).pk]) in client.get(address).content.decode()
