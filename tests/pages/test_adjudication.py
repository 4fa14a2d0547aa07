"""What a lead sees of a case and stores by its forms: all of a form or nothing, nobody named before everything is
decided, and an escalation that is answered by deciding."""

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


def lead_of(queue: ReviewQueue) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.LEAD, queue.project, username="the-lead"))
    return client


def escalated() -> tuple[ReviewQueue, ReviewItem]:
    queue = make_queue(make_scored_run(values=[3]))
    taken = next_assignment(queue, queue.members.get().reviewer)
    assert taken
    escalate(taken, "What is meant?")
    return queue, taken.item


def decide(client: Client, item: ReviewItem, **fields: object) -> str:
    seen = {"seen:correctness": 0, "seen:faithfulness": 0}
    sent = client.post(reverse("adjudication-decide", args=[item.pk]), seen | fields, follow=True)
    return compact(sent.content.decode())


def test_an_escalation_is_answered_by_deciding_every_value() -> None:
    queue, item = escalated()
    lead = lead_of(queue)
    page = decide(lead, item, **{"value:correctness": 2, "reason:correctness": "The fee is wrong."})
    assert "<b>2</b> the-lead: <q>The fee is wrong.</q>" in page  # what was decided is seen at once
    assert "Give it back to the queue" in page
    assert [case.item for case in open_cases(queue.items.all())] == [item]
    page = decide(lead, item, **{"value:faithfulness": 4, "reason:faithfulness": "It keeps to the text."})
    assert "Give it back to the queue" not in page
    assert open_cases(queue.items.all()) == []
    item.refresh_from_db()
    assert item.state == ReviewItem.State.DONE


def test_what_the_answer_took_over_is_shaded_in_its_passages_and_many_can_be_searched() -> None:
    queue, item = escalated()
    Context.objects.bulk_create(
        Context(answer=item.answer, position=n, chunk_id=f"c{n}", text=f"Rule {n}: {item.answer.text}", source="a.pdf")
        for n in range(10, 16)
    )
    page = lead_of(queue).get(reverse("adjudication-case", args=[item.pk])).content.decode()
    assert len(re.findall(r'<p>Rule \d+: <mark class="taken">The capital is city \d+</mark>', page)) == 6
    assert "js/passages.js" in page


def test_an_escalation_can_go_back_to_the_queue() -> None:
    queue, item = escalated()
    event = item.assignments.get().events.get(verb="escalate")
    lead_of(queue).post(reverse("ruling", args=[event.pk]), {"ruling": "uphold", "reason": "Read the guideline."})
    item.refresh_from_db()
    assert (item.state, open_cases(queue.items.all())) == (ReviewItem.State.OPEN, [])


def test_of_a_form_with_a_mistake_nothing_is_stored_and_everything_comes_back() -> None:
    queue, item = escalated()
    entered = {"value:correctness": 2, "reason:correctness": "The fee is wrong.", "value:faithfulness": 4}
    page = decide(lead_of(queue), item, **entered)
    assert not Override.objects.exists()
    assert "The fee is wrong.</textarea>" in page


def test_nobody_is_named_and_the_judge_not_shown_while_anything_is_open() -> None:
    queue = make_queue(make_scored_run(values=[3], reason="JUDGE SAYS"), 2, reviews_needed=2, reveal="never")
    names = [str(member.reviewer) for member in queue.members.all()]
    for member, value in zip(queue.members.all(), (1, 5), strict=True):
        while (taken := next_assignment(queue, member.reviewer)) is not None:
            given = {name: RatingInput(value=value) for name in ("correctness", "faithfulness")}
            submit(taken, given, idempotency_key="k", by=member.reviewer)
    item, lead = queue.items.order_by("pk")[0], lead_of(queue)
    page = decide(lead, item, **{"value:correctness": 2, "reason:correctness": "The fee is wrong."})
    assert [name for name in names if name in page] == []
    assert ">Judge</dt>" not in page
    page = decide(lead, item, **{"value:faithfulness": 4, "reason:faithfulness": "It keeps to the text."})
    assert [name for name in names if name in page] == names
    assert page.count(">Judge</dt>") == 2


def test_a_lead_who_has_yet_to_rate_an_answer_is_not_told_what_others_said_of_it() -> None:
    run = make_scored_run(values=[3])
    lead, people = make_user(Role.LEAD, run.project), [make_user(Role.REVIEWER, run.project) for _ in range(2)]
    queue = make_queue(run, [*people, lead], reviews_needed=3, reveal="never")
    for person, value in zip(people, (1, 5), strict=True):
        while (taken := next_assignment(queue, person)) is not None:
            given = {name: RatingInput(value=value, comment="HEARSAY") for name in ("correctness", "faithfulness")}
            submit(taken, given, idempotency_key="k", by=person)
    client = Client(headers={"accept-language": "en"})
    client.force_login(lead)
    taken = next_assignment(queue, lead)
    assert taken
    path = reverse("adjudication-case", args=[taken.item_id])
    page = client.get(path).content.decode()
    assert "have not come to this answer yet" in page
    assert "HEARSAY" not in page
    lists = [reverse("adjudication"), reverse("queue", args=[queue.pk]), reverse("api-adjudication-list")]
    told = f"adjudication/{taken.item_id}/", f'"item":{taken.item_id},'
    assert [url for url in lists if any(one in client.get(url).content.decode() for one in told)] == []
    own = {name: RatingInput(value=4) for name in ("correctness", "faithfulness")}
    submit(taken, own, idempotency_key="k", by=lead)
    assert "HEARSAY" in client.get(path).content.decode()
    assert [url for url in lists if any(one in client.get(url).content.decode() for one in told)] == lists
