"""Adjudication pages: forms are stored as a whole or not at all, names stay hidden until every value is decided, and
decisions resolve escalations."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Context
from review.decisions.cases import open_cases
from review.evidence.rating_input import RatingInput
from review.models import Override, ReviewItem, ReviewQueue
from review.ratings.leases import next_assignment
from review.ratings.submitting import escalate, submit
from tests.factories import make_queue, make_scored_run, make_user
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db


def lead_client(queue: ReviewQueue) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.LEAD, queue.project, username="the-lead"))
    return client


def escalate_item() -> tuple[ReviewQueue, ReviewItem]:
    queue = make_queue(make_scored_run(values=[3]))
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    escalate(assignment, "What is meant?")
    return queue, assignment.item


def decide(client: Client, item: ReviewItem, **fields: object) -> str:
    seen_counts = {"seen:correctness": 0, "seen:faithfulness": 0}
    response = client.post(reverse("adjudication-decide", args=[item.pk]), seen_counts | fields, follow=True)
    return compact(response.content.decode())


def test_deciding_every_value_resolves_escalation() -> None:
    queue, item = escalate_item()
    lead = lead_client(queue)
    page = decide(lead, item, **{"value:correctness": 2, "reason:correctness": "The fee is wrong."})
    assert "<b>2</b> the-lead: <q>The fee is wrong.</q>" in page  # what was decided is seen at once
    assert "Return to queue" in page
    assert [open_case.item for open_case in open_cases(queue.items.all())] == [item]
    page = decide(lead, item, **{"value:faithfulness": 4, "reason:faithfulness": "It keeps to the text."})
    assert "Return to queue" not in page
    assert open_cases(queue.items.all()) == []
    item.refresh_from_db()
    assert item.state == ReviewItem.State.DONE


def test_case_page_marks_copied_text_and_offers_passage_search() -> None:
    queue, item = escalate_item()
    Context.objects.bulk_create(
        Context(answer=item.answer, position=n, chunk_id=f"c{n}", text=f"Rule {n}: {item.answer.text}", source="a.pdf")
        for n in range(10, 16)
    )
    page = lead_client(queue).get(reverse("adjudication-case", args=[item.pk])).content.decode()
    assert len(re.findall(r'<p>Rule \d+: <mark class="taken">The capital is city \d+</mark>', page)) == 6
    assert "js/passages.js" in page


def test_escalation_can_be_returned_to_the_queue() -> None:
    queue, item = escalate_item()
    event = item.assignments.get().events.get(verb="escalate")
    lead_client(queue).post(reverse("ruling", args=[event.pk]), {"ruling": "uphold", "reason": "Read the guideline."})
    item.refresh_from_db()
    assert (item.state, open_cases(queue.items.all())) == (ReviewItem.State.OPEN, [])


def test_invalid_form_stores_nothing_and_keeps_input() -> None:
    queue, item = escalate_item()
    entered = {"value:correctness": 2, "reason:correctness": "The fee is wrong.", "value:faithfulness": 4}
    page = decide(lead_client(queue), item, **entered)
    assert not Override.objects.exists()
    assert "The fee is wrong.</textarea>" in page


def test_open_case_hides_reviewer_names_and_judge() -> None:
    queue = make_queue(make_scored_run(values=[3], reason="JUDGE SAYS"), 2, reviews_needed=2, reveal="never")
    names = [str(member.reviewer) for member in queue.members.all()]
    for member, value in zip(queue.members.all(), (1, 5), strict=True):
        while (assignment := next_assignment(queue, member.reviewer)) is not None:
            ratings = {name: RatingInput(value=value) for name in ("correctness", "faithfulness")}
            submit(assignment, ratings, idempotency_key="k", by=member.reviewer)
    item, lead = queue.items.order_by("pk")[0], lead_client(queue)
    page = decide(lead, item, **{"value:correctness": 2, "reason:correctness": "The fee is wrong."})
    assert [name for name in names if name in page] == []
    assert ">Judge</dt>" not in page
    page = decide(lead, item, **{"value:faithfulness": 4, "reason:faithfulness": "It keeps to the text."})
    assert [name for name in names if name in page] == names
    assert page.count(">Judge</dt>") == 2


def test_lead_sees_no_other_ratings_before_own_rating() -> None:
    run = make_scored_run(values=[3])
    lead, reviewers = make_user(Role.LEAD, run.project), [make_user(Role.REVIEWER, run.project) for _ in range(2)]
    queue = make_queue(run, [*reviewers, lead], reviews_needed=3, reveal="never")
    for reviewer, value in zip(reviewers, (1, 5), strict=True):
        while (assignment := next_assignment(queue, reviewer)) is not None:
            ratings = {name: RatingInput(value=value, comment="HEARSAY") for name in ("correctness", "faithfulness")}
            submit(assignment, ratings, idempotency_key="k", by=reviewer)
    client = Client(headers={"accept-language": "en"})
    client.force_login(lead)
    assignment = next_assignment(queue, lead)
    assert assignment
    path = reverse("adjudication-case", args=[assignment.item_id])
    page = client.get(path).content.decode()
    assert "rated this answer yet" in page
    assert "HEARSAY" not in page
    lists = [reverse("adjudication"), reverse("queue", args=[queue.pk]), reverse("api-adjudication-list")]
    case_links = f"adjudication/{assignment.item_id}/", f'"item":{assignment.item_id},'
    assert [url for url in lists if any(link in client.get(url).content.decode() for link in case_links)] == []
    own_ratings = {name: RatingInput(value=4) for name in ("correctness", "faithfulness")}
    submit(assignment, own_ratings, idempotency_key="k", by=lead)
    assert "HEARSAY" in client.get(path).content.decode()
    assert [url for url in lists if any(link in client.get(url).content.decode() for link in case_links)] == lists
