"""Help for first-time users of a review queue, shown at the place of need."""

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


def item_card(world: World, assignment: Assignment, address: str = "review-item") -> str:
    return compact(world.client("member").get(reverse(address, args=[assignment.pk])).content.decode())


def details_tag(page: str, summary: str) -> str:
    """The opening tag of the foldable part with that title."""
    match = re.search(rf"<details[^>]*>(?=<summary>{summary})", page)
    assert match, f"no {summary!r} on the page"
    return match[0]


def test_guideline_is_open_on_the_first_item_only(world: World) -> None:
    assert "<summary>Guideline" not in item_card(world, world.assignment)
    ReviewQueue.objects.filter(pk=world.queue.pk).update(guideline="Read the *passages* first.")
    first_card = item_card(world, world.assignment)
    assert details_tag(first_card, "Guideline").endswith(" open>")
    assert first_card.index("Read the <em>passages</em> first.") < first_card.index("<h1")
    prefetched_card = item_card(world, world.assignment, "review-prefetch")
    assert not details_tag(prefetched_card, "Guideline").endswith(" open>")
    ratings = {row.metric.name: RatingInput(value=3) for row in queue_metrics(world.queue)}
    submit(world.assignment, ratings, idempotency_key="k", by=world.people["member"])
    following = next_assignment(world.queue, world.people["member"])
    assert following is not None
    assert not details_tag(item_card(world, following), "Guideline").endswith(" open>")


@pytest.mark.parametrize(("metrics", "is_open"), [(["correctness"], True), (["faithfulness"], False)])
def test_expected_answer_is_open_when_a_criterion_uses_it(metrics: list[str], is_open: bool) -> None:
    world = make_world()
    queue = make_queue(world.run, [world.people["member"]], metrics=metrics)
    assignment = next_assignment(queue, world.people["member"])
    assert assignment is not None
    assert details_tag(item_card(world, assignment), "Expected answer").endswith(" open>") is is_open


def test_category_names_are_translated() -> None:
    project = make_project()
    question_set = make_question_set(
        project, [question_spec(1, category="multi_hop_2"), question_spec(2, category="Fees")]
    )
    run = make_scored_run(make_answer_set(question_set))
    client = Client()
    client.force_login(make_user(Role.LEAD, project))
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "multi_hop_2" not in page
    assert "Fees" in page


def test_fresh_site_leads_only_superuser_to_first_project() -> None:
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


def test_empty_site_shows_setup_steps_to_administrators_only() -> None:
    project = make_project()
    for person, shows_steps in ((make_user(Role.ADMIN, project), True), (make_user(Role.REVIEWER, project), False)):
        client = Client()
        client.force_login(person)
        page = client.get("/").content.decode()
        assert ("step by step" in page) == shows_steps
