"""The page that finds questions, answers and passages by their words."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.pages.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def world() -> World:
    return make_world()


def search_page(world: World, person: str, query: str) -> str:
    return world.client(person).get(reverse("search"), {"q": query}).content.decode()


def result_links(world: World) -> tuple[str, str]:
    return (
        f'href="{reverse("question-set", args=[world.question_set.pk])}"',
        f'href="{reverse("answer", args=[world.answer.pk])}"',
    )


def test_search_is_case_insensitive(world: World) -> None:
    question, answer = result_links(world)
    assert question in search_page(world, "viewer", world.answer.question.text[1:12].upper())
    assert answer in search_page(world, "viewer", world.answer.text[:12].lower())
    assert question in search_page(world, "viewer", world.answer.question.external_id)


def test_search_requires_access_to_runs(world: World) -> None:
    for person in ("stranger", "member", "outsider"):
        page = search_page(world, person, world.answer.text[:12])
        assert not any(link in page for link in result_links(world)), person


def test_search_needs_words_and_escapes_wildcards(world: World) -> None:
    for query in ("", "   ", "%", "_____"):
        page = search_page(world, "viewer", query)
        assert not any(link in page for link in result_links(world)), query
