"""Making a queue from a run, and its preview."""

from __future__ import annotations

import pytest
from django.urls import reverse

from review.models.draws import Draw, FrameMember
from review.models.queues import ReviewQueue
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def form(world: World, **fields: object) -> dict[str, object]:
    return {
        "run": world.run.pk, "name": "", "strategy": "uniform", "size": 4, "metrics": ["correctness"],
        "reviewers": [world.people["member"].pk, world.people["outsider"].pk], "reviews_needed": 1, "mode": "blind",
        "reveal": "on_difference", "reveal_threshold": 2, "guideline": "Be fair.",
    } | fields  # fmt: skip


def test_a_queue_is_made_with_its_draw(world: World) -> None:
    response = world.client("lead").post(reverse("queue-new"), form(world))
    queue = ReviewQueue.objects.latest("pk")
    assert response.headers["Location"] == reverse("queue", args=[queue.pk])
    assert (queue.guideline, queue.hide_system, queue.items.count()) == ("Be fair.", True, 4)
    draw = Draw.objects.latest("pk")
    # Four of six by chance: each has probability 4/6, sampled or not.
    assert {round(p, 6) for p in FrameMember.objects.filter(draw=draw).values_list("probability", flat=True)} == {
        0.666667
    }


def test_more_reviewers_an_answer_than_people_is_refused_with_the_form_kept(world: World) -> None:
    response = world.client("lead").post(reverse("queue-new"), form(world, reviews_needed=3, guideline="Kept text"))
    assert response.status_code == 409
    assert 'role="alert"' in response.content.decode()
    assert "Kept text" in response.content.decode()


def test_a_name_that_tells_is_refused(world: World) -> None:
    response = world.client("lead").post(reverse("queue-new"), form(world, name="The stratified one"))
    assert response.status_code == 409


@pytest.mark.parametrize("fields", [{"metrics": []}, {"reviewers": []}, {"size": 0}, {"strategy": "by whim"}])
def test_an_incomplete_form_says_what_is_missing(world: World, fields: dict[str, object]) -> None:
    response = world.client("lead").post(reverse("queue-new"), form(world, **fields))
    assert response.status_code == 400
    assert 'class="errors"' in response.content.decode()


def test_the_preview_counts_without_making_anything(world: World) -> None:
    before = ReviewQueue.objects.count()
    page = world.client("lead").get(reverse("queue-preview"), form(world, reviews_needed=2)).content.decode()
    assert '<span class="big">4</span>' in page
    assert "about 4 answers" in page  # 4 answers x 2 reviews / 2 people
    assert (ReviewQueue.objects.count(), Draw.objects.count()) == (before, before)


def test_reviewers_are_chosen_to_begin_with(world: World) -> None:
    page = world.client("lead").get(f"{reverse('queue-new')}?run={world.run.pk}").content.decode()
    for name, chosen in (("member", True), ("outsider", True), ("viewer", False), ("lead", False)):
        box = page.partition(f'name="reviewers" value="{world.people[name].pk}"')[2].partition(">")[0]
        assert ("checked" in box) == chosen, name


def test_closing_and_opening_again(world: World) -> None:
    lead = world.client("lead")
    lead.post(reverse("queue-close", args=[world.queue.pk]))
    assert "closed" in world.client("member").get(reverse("queue-list")).content.decode()
    lead.post(reverse("queue-reopen", args=[world.queue.pk]))
    world.queue.refresh_from_db()
    assert world.queue.state == "open"
