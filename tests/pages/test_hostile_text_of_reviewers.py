"""What reviewers and leads wrote is only ever text where others read it: disputes, own ratings, pairs."""

from __future__ import annotations

import pytest
from django.urls import reverse

from review.evidence.rating_input import FlagKind, RatingInput
from review.models import ReviewQueue
from review.ratings.leases import next_assignment
from review.ratings.submitting import escalate, flag, queue_metrics, submit
from tests.pages.markup import unsafe
from tests.pages.test_hostile_text import ALL, CORPUS
from tests.pages.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def world() -> World:
    return make_world()


def inert(world: World, person: str, path: str, **said: str) -> str:
    """The page's text, once nothing of it could run."""
    client = world.client(person)
    response = client.post(path, said, follow=True) if said else client.get(path, follow=True)
    assert response.status_code < 500, path
    page = response.content.decode()
    assert unsafe(page) == [], path
    return page


def test_what_a_reviewer_wrote_stays_text_for_them_and_for_the_lead(world: World) -> None:
    member = world.people["member"]
    ReviewQueue.objects.filter(pk=world.queue.pk).update(guideline=ALL, name=CORPUS[0], reveal="never")
    given = {row.metric.name: RatingInput(value=1, comment=ALL) for row in queue_metrics(world.queue)}
    submit(world.assignment, given, idempotency_key="k", by=member, comment=ALL, suggestion=ALL)
    assert "script" in inert(world, "member", reverse("my-ratings"))
    inert(world, "member", reverse("review-item", args=[world.assignment.pk]))
    inert(world, "member", reverse("review-rerate", args=[world.assignment.pk]))
    asked = next_assignment(world.queue, member)
    assert asked is not None
    escalate(asked, ALL)
    flagged = next_assignment(world.queue, member)
    assert flagged is not None
    flag(flagged, FlagKind.BAD_QUESTION, ALL)
    inert(world, "member", reverse("review-item", args=[flagged.pk]))
    inert(world, "lead", reverse("adjudication"))
    case = asked.item_id
    assert "onerror" in inert(world, "lead", reverse("adjudication-case", args=[case]))
    inert(world, "lead", reverse("adjudication-decide", args=[case]), reason=ALL, **{"value:correctness": ALL})
    inert(world, "lead", reverse("adjudication-question", args=[case]), question=ALL, reference=ALL)
    inert(world, "lead", reverse("adjudication-rubric", args=[case, "correctness"]), question=ALL)
    for name in ("queue", "queue-people", "queue-items", "queue-questions"):
        inert(world, "lead", reverse(name, args=[world.queue.pk]))
    inert(world, "lead", reverse("run-answers", args=[world.run.pk]) + f"?q={CORPUS[0]}")
