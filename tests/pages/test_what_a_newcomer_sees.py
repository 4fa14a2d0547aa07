"""What somebody needs who opens a review queue for the first time, where it is needed."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import User
from review.evidence.rating_input import RatingInput
from review.models import Assignment, ReviewQueue
from review.ratings.leases import next_assignment
from review.ratings.submitting import queue_metrics, submit
from tests.factories import (
    make_answer_set,
    make_project,
    make_question_set,
    make_queue,
    make_scored_run,
    make_user,
    question_spec,
)
from tests.pages.markup import compact
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def card_of(world: World, assignment: Assignment, address: str = "review-item") -> str:
    return compact(world.client("member").get(reverse(address, args=[assignment.pk])).content.decode())


def details(page: str, summary: str) -> str:
    """The opening tag of the foldable part with that title."""
    found = re.search(rf"<details[^>]*>(?=<summary>{summary})", page)
    assert found, f"no {summary!r} on the page"
    return found[0]


def test_the_guideline_is_open_on_the_first_item_and_folded_on_the_others(world: World) -> None:
    assert "<summary>Guideline" not in card_of(world, world.assignment)
    ReviewQueue.objects.filter(pk=world.queue.pk).update(guideline="Read the *passages* first.")
    first = card_of(world, world.assignment)
    assert details(first, "Guideline").endswith(" open>")
    assert first.index("Read the <em>passages</em> first.") < first.index("<h1")
    ahead = card_of(world, world.assignment, "review-prefetch")
    assert not details(ahead, "Guideline").endswith(" open>")
    given = {row.metric.name: RatingInput(value=3) for row in queue_metrics(world.queue)}
    submit(world.assignment, given, idempotency_key="k", by=world.people["member"])
    following = next_assignment(world.queue, world.people["member"])
    assert following is not None
    assert not details(card_of(world, following), "Guideline").endswith(" open>")


@pytest.mark.parametrize(("metrics", "opened"), [(["correctness"], True), (["faithfulness"], False)])
def test_the_expected_answer_is_open_where_a_criterion_is_held_against_it(metrics: list[str], opened: bool) -> None:
    world = make_world()
    queue = make_queue(world.run, [world.people["member"]], metrics=metrics)
    held = next_assignment(queue, world.people["member"])
    assert held is not None
    assert details(card_of(world, held), "Expected answer").endswith(" open>") is opened


def test_a_category_has_a_name_in_the_language_of_the_page() -> None:
    project = make_project()
    asked = make_question_set(project, [question_spec(1, category="multi_hop_2"), question_spec(2, category="Fees")])
    run = make_scored_run(make_answer_set(asked))
    client = Client()
    client.force_login(make_user(Role.LEAD, project))
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "multi_hop_2" not in page
    assert "Fees" in page


def test_on_a_fresh_site_the_administrator_is_led_to_a_first_project_and_others_are_not() -> None:
    boss, stranger = Client(), Client()
    boss.force_login(User.objects.create_superuser("boss"))
    stranger.force_login(User.objects.create_user("stranger"))
    add = reverse("admin:evaluation_project_add")
    assert f'href="{add}"' in boss.get(reverse("home")).content.decode()
    assert add not in stranger.get(reverse("home")).content.decode()
    boss.post(add, {"name": "First"})
    page = boss.get(reverse("home")).content.decode()
    assert add not in page
    assert "import_questions" in page


def test_an_empty_site_leads_who_runs_it_to_the_steps_in_the_back_office_and_nobody_else() -> None:
    project = make_project()
    for person, led in ((make_user(Role.ADMIN, project), True), (make_user(Role.REVIEWER, project), False)):
        client = Client()
        client.force_login(person)
        page = client.get("/").content.decode()
        assert ("step by step" in page) == led
