"""Repairs in the browser and over REST: made by a lead, rated blind by who is named, read by leads."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from contrib.retrieval_truth.models import PassageRating, RetrievalRepair
from contrib.retrieval_truth.rating import next_card
from contrib.retrieval_truth.tests.built import grade_of, members, rate_all, repair, two_runs
from evaluation.core.roles import Role
from evaluation.models import User
from tests.factories import make_user
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db
QUERIES = {"truth": 12, "truth-rate": 9, "truth-list": 6}  # however many passages and ratings there are


def browser(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def lead_of(found: RetrievalRepair) -> User:
    return make_user(Role.LEAD, found.project)


def test_a_lead_makes_a_repair_in_the_browser() -> None:
    a, b = two_runs()
    lead, expert = make_user(Role.LEAD, a.project), make_user(Role.REVIEWER, a.project)
    client, address = browser(lead), reverse("truth-new")
    form = client.get(f"{address}?run={a.pk}").content.decode()
    assert f'value="{b.pk}"' in form
    given = {"run": a.pk, "runs": [b.pk], "name": "Round 1", "size": 25, "k": 5, "reviewers": [expert.pk]}
    assert client.post(address, given | {"size": 0}).status_code == 200
    assert not RetrievalRepair.objects.exists()
    made = client.post(address, given)
    found = RetrievalRepair.objects.get()
    assert made.url == reverse("truth", args=[found.pk])
    assert (found.k, found.size, found.passages.filter(sampled=True).count()) == (5, 25, 25)
    again = client.post(address, given)
    assert "There is a repair named" in again.content.decode()


def test_a_reviewer_sees_question_and_passage_alone() -> None:
    found = repair()
    (expert,) = members(found)
    client = browser(expert)
    assert client.get(reverse("truth", args=[found.pk])).url == reverse("truth-rate", args=[found.pk])
    page = client.get(reverse("truth-rate", args=[found.pk])).content.decode()
    card = next_card(found, expert)
    assert card is not None
    assert card.passage.text in page
    assert card.question in page
    for hidden in ("System A", "System B", "q1-", "guess", "probability"):
        assert hidden not in page.replace(card.passage.text, "")
    assert "0 of 40 rated" in page


def test_a_grade_is_stored_and_the_next_passage_comes() -> None:
    found = repair(size=2)
    (expert,) = members(found)
    client, save = browser(expert), reverse("truth-save", args=[found.pk])
    card = next_card(found, expert)
    assert card is not None
    refused = client.post(save, {"passage": card.passage.pk, "reason": "why"})
    assert refused.status_code == 400
    assert 'role="alert"' in refused.content.decode()
    assert ">why</textarea>" in refused.content.decode()
    said = {"passage": card.passage.pk, "value": "partly", "reason": "half\r\nof it", "seconds": "3.5"}
    assert client.post(save, said).url == reverse("truth-rate", args=[found.pk])
    stored = PassageRating.objects.get()
    assert (stored.grade, stored.reason, stored.seconds, stored.rater) == ("partly", "half\nof it", 3.5, expert)
    page = client.get(reverse("truth-rate", args=[found.pk])).content.decode()
    assert "1 of 2 rated" in page
    assert f"?passage={card.passage.pk}" in page
    rate_all(found, expert)
    assert "No passage is left" in client.get(reverse("truth-rate", args=[found.pk])).content.decode()
    browser(lead_of(found)).post(reverse("truth-close", args=[found.pk]))
    assert client.post(save, said | {"value": "not"}).status_code == 409
    assert PassageRating.objects.count() == 2


def test_the_page_of_a_repair_says_one_sentence_then_the_figures() -> None:
    found = repair(size=60)
    client = browser(lead_of(found))
    address = reverse("truth", args=[found.pk])
    page = client.get(address).content.decode()
    assert "Rated so far: 0 of 60" in page
    assert "left out: 10 questions have unrated passages above the first relevant one" in page
    rate_all(found, members(found)[0])
    page = client.get(address).content.decode()
    assert "Rated 60 of 60 drawn, out of 70 passages without a label in a pool of 80." in page
    assert "By nDCG" in page
    assert "recall is relative to the pool" in page
    assert "Hit@5" in page
    with translation.override("ko"):
        client.cookies["django_language"] = "ko"
        korean = client.get(address).content.decode()
    assert "nDCG 기준" in korean


def test_a_lead_accepts_the_labels_and_the_set_says_what_is_unrated() -> None:
    found = repair(size=60)
    client, accept = browser(lead_of(found)), reverse("truth-accept", args=[found.pk])
    refused = client.post(accept)
    assert "Nobody has found" in str(next(iter(get_messages(refused.wsgi_request))))
    rate_all(found, members(found)[0])
    made = client.post(accept)
    page = client.get(made.url).content.decode()
    assert "10 passages of the pool are unrated" in page
    assert reverse("truth", args=[found.pk]) in page
    viewed = browser(make_user(Role.VIEWER, found.project)).get(made.url).content.decode()
    assert "10 passages of the pool are unrated" in viewed
    assert reverse("truth", args=[found.pk]) not in viewed  # a viewer cannot open it
    assert "took over" in client.get(reverse("truth", args=[found.pk])).content.decode()


def test_a_whole_pool_leaves_no_notice() -> None:
    found = repair(size=70)
    rate_all(found, members(found)[0])
    client = browser(lead_of(found))
    made = client.post(reverse("truth-accept", args=[found.pk]))
    assert "unrated" not in client.get(made.url).content.decode()


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.slow
def test_pages_ask_as_often_however_much_there_is(name: str) -> None:
    counts = []
    for size, rated in ((30, 20), (70, 60)):
        found = repair(size=size, name=f"of {size}")
        rate_all(found, members(found)[0], most=rated)
        client = browser(members(found)[0] if name == "truth-rate" else lead_of(found))
        address = reverse(name, args=[] if name == "truth-list" else [found.pk])
        client.get(address)
        with CaptureQueriesContext(connection) as asked:
            assert client.get(address).status_code == 200
        counts.append(len(asked))
    assert counts == [QUERIES[name]] * 2


def test_what_waits_for_a_reviewer_stands_on_the_start_page() -> None:
    found = repair(size=3)
    (expert,) = members(found)
    assert (
        "3 retrieved passages wait to be rated"
        in " ".join(browser(expert).get(reverse("home")).content.decode().split())
        or "retrieved passages wait to be rated" in browser(expert).get(reverse("home")).content.decode()
    )
    rate_all(found, expert)
    assert "wait to be rated" not in browser(expert).get(reverse("home")).content.decode()


def test_the_whole_way_over_rest() -> None:
    a, b = two_runs()
    expert, lead = Caller(make_user(Role.REVIEWER, a.project)), Caller(make_user(Role.LEAD, a.project))
    body = {"runs": [a.pk, b.pk], "name": "by rest", "reviewers": [expert.user.username], "size": 60, "k": 5, "seed": 2}
    made = lead.post("retrieval-repairs/", body)
    assert made.status_code == 201
    pk = made.json()["id"]
    assert expert.post("retrieval-repairs/", body).status_code == 403
    for _ in range(60):
        card = expert.get(f"retrieval-repairs/{pk}/next/").json()
        assert set(card) == {"passage", "question", "text", "grade", "reason", "rated", "drawn"}
        said = {"passage": card["passage"], "grade": grade_of(card["text"].rstrip("."))}
        stored = expert.post(f"retrieval-repairs/{pk}/rate/", said)
        assert stored.json()["grade"] == said["grade"]
    assert expert.get(f"retrieval-repairs/{pk}/next/").status_code == 204
    assert expert.get(f"retrieval-repairs/{pk}/figures/").status_code == 403
    told = lead.get(f"retrieval-repairs/{pk}/figures/").json()
    assert (told["rated"], told["target"], len(told["figures"])) == (60, "this_run", 9)
    assert lead.get(f"retrieval-repairs/{pk}/export/?format=json").status_code == 200
    accepted = lead.post(f"retrieval-repairs/{pk}/accept/", {}).json()
    assert accepted["unrated"] == 10
    assert lead.post(f"retrieval-repairs/{pk}/close/", {}).status_code == 204
    assert expert.get(f"retrieval-repairs/{pk}/").json()["open"] is False
