"""Text of reviewers and leads is never executed on pages of others: disputes, own ratings, pairs."""

from __future__ import annotations

import pytest
from django.urls import reverse

from review.evidence.rating_input import FlagKind, RatingInput
from review.models import ReviewQueue
from review.ratings.leases import next_assignment
from review.ratings.submitting import escalate, flag, queue_metrics, submit
from tests.pages.markup import unsafe_markup
from tests.pages.test_hostile_text import ALL_HOSTILE_TEXT, CORPUS
from tests.pages.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def world() -> World:
    return make_world()


def inert_page(world: World, username: str, path: str, **form_data: str) -> str:
    """The page's text, once nothing of it could run."""
    client = world.client(username)
    response = client.post(path, form_data, follow=True) if form_data else client.get(path, follow=True)
    assert response.status_code < 500, path
    page = response.content.decode()
    assert unsafe_markup(page) == [], path
    return page


def test_reviewer_text_stays_text_for_reviewer_and_lead(world: World) -> None:
    member = world.people["member"]
    ReviewQueue.objects.filter(pk=world.queue.pk).update(guideline=ALL_HOSTILE_TEXT, name=CORPUS[0], reveal="never")
    ratings = {row.metric.name: RatingInput(value=1, comment=ALL_HOSTILE_TEXT) for row in queue_metrics(world.queue)}
    submit(
        world.assignment, ratings, idempotency_key="k", by=member, comment=ALL_HOSTILE_TEXT, suggestion=ALL_HOSTILE_TEXT
    )
    assert "script" in inert_page(world, "member", reverse("my-ratings"))
    inert_page(world, "member", reverse("review-item", args=[world.assignment.pk]))
    inert_page(world, "member", reverse("review-rerate", args=[world.assignment.pk]))
    assignment = next_assignment(world.queue, member)
    assert assignment is not None
    escalate(assignment, ALL_HOSTILE_TEXT)
    flagged = next_assignment(world.queue, member)
    assert flagged is not None
    flag(flagged, FlagKind.BAD_QUESTION, ALL_HOSTILE_TEXT)
    inert_page(world, "member", reverse("review-item", args=[flagged.pk]))
    inert_page(world, "lead", reverse("adjudication"))
    item_id = assignment.item_id
    assert "onerror" in inert_page(world, "lead", reverse("adjudication-case", args=[item_id]))
    inert_page(
        world,
        "lead",
        reverse("adjudication-decide", args=[item_id]),
        reason=ALL_HOSTILE_TEXT,
        **{"value:correctness": ALL_HOSTILE_TEXT},
    )
    inert_page(
        world,
        "lead",
        reverse("adjudication-question", args=[item_id]),
        question=ALL_HOSTILE_TEXT,
        reference=ALL_HOSTILE_TEXT,
    )
    inert_page(world, "lead", reverse("adjudication-rubric", args=[item_id, "correctness"]), question=ALL_HOSTILE_TEXT)
    for name in ("queue", "queue-people", "queue-items", "queue-questions"):
        inert_page(world, "lead", reverse(name, args=[world.queue.pk]))
    inert_page(world, "lead", reverse("run-answers", args=[world.run.pk]) + f"?q={CORPUS[0]}")
