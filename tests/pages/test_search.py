"""The page that finds questions, answers and passages by their words."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.pages.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def world() -> World:
    return make_world()


def found(world: World, person: str, words: str) -> str:
    return world.client(person).get(reverse("search"), {"q": words}).content.decode()


def links(world: World) -> tuple[str, str]:
    return (
        f'href="{reverse("question-set", args=[world.question_set.pk])}"',
        f'href="{reverse("answer", args=[world.answer.pk])}"',
    )


def test_questions_and_answers_are_found_by_words_whatever_their_case(world: World) -> None:
    question, answer = links(world)
    assert question in found(world, "viewer", world.answer.question.text[1:12].upper())
    assert answer in found(world, "viewer", world.answer.text[:12].lower())
    assert question in found(world, "viewer", world.answer.question.external_id)


def test_who_sees_no_runs_finds_nothing(world: World) -> None:
    for person in ("stranger", "member", "outsider"):
        page = found(world, person, world.answer.text[:12])
        assert not any(link in page for link in links(world)), person


def test_nothing_is_looked_for_without_words_and_wildcards_are_letters(world: World) -> None:
    for words in ("", "   ", "%", "_____"):
        page = found(world, "viewer", words)
        assert not any(link in page for link in links(world)), words
