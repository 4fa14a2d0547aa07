"""Repairs in the browser and over REST: created by a lead, rated blind by named reviewers, read by leads."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from contrib.retrieval_truth.models import PassageRating, RetrievalRepair
from contrib.retrieval_truth.rating import next_card, rate_passage
from contrib.retrieval_truth.tests.built import grade_of, members, rate_all, repair, two_runs
from evaluation.accounts import audit
from evaluation.accounts.password_links import distrust
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import User
from tests.factories import make_user
from tests.review.clients import Caller
from tests.tampering import flaws_of_changes

pytestmark = pytest.mark.django_db
QUERIES = {"truth": 12, "truth-rate": 9, "truth-list": 6}  # however many passages and ratings there are


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def lead_of(label_repair: RetrievalRepair) -> User:
    return make_user(Role.LEAD, label_repair.project)


def test_lead_creates_a_repair_in_the_browser() -> None:
    a, b = two_runs()
    lead, expert = make_user(Role.LEAD, a.project), make_user(Role.REVIEWER, a.project)
    client, address = browser(lead), reverse("truth-new")
    form = client.get(f"{address}?run={a.pk}").content.decode()
    assert f'value="{b.pk}"' in form
    form_data = {"run": a.pk, "runs": [b.pk], "name": "Round 1", "size": 25, "k": 5, "reviewers": [expert.pk]}
    assert client.post(address, form_data | {"size": 0}).status_code == 200
    assert not RetrievalRepair.objects.exists()
    response = client.post(address, form_data)
    label_repair = RetrievalRepair.objects.get()
    assert response.url == reverse("truth", args=[label_repair.pk])
    assert (label_repair.k, label_repair.size, label_repair.passages.filter(sampled=True).count()) == (5, 25, 25)
    repeated = client.post(address, form_data)
    assert "A repair named" in repeated.content.decode()


def test_reviewer_sees_question_and_passage_only() -> None:
    label_repair = repair()
    (expert,) = members(label_repair)
    client = browser(expert)
    assert client.get(reverse("truth", args=[label_repair.pk])).url == reverse("truth-rate", args=[label_repair.pk])
    page = client.get(reverse("truth-rate", args=[label_repair.pk])).content.decode()
    card = next_card(label_repair, expert)
    assert card is not None
    assert card.passage.text in page
    assert card.question in page
    for secret in ("System A", "System B", "q1-", "guess", "probability"):
        assert secret not in page.replace(card.passage.text, "")
    assert "0 of 40 rated" in page


def test_grade_is_stored_and_the_next_passage_is_shown() -> None:
    label_repair = repair(size=2)
    (expert,) = members(label_repair)
    client, save = browser(expert), reverse("truth-save", args=[label_repair.pk])
    card = next_card(label_repair, expert)
    assert card is not None
    response = client.post(save, {"passage": card.passage.pk, "reason": "why"})
    assert response.status_code == 400
    assert 'role="alert"' in response.content.decode()
    assert ">why</textarea>" in response.content.decode()
    form = {"passage": card.passage.pk, "value": "partly", "reason": "half\r\nof it", "seconds": "3.5"}
    assert client.post(save, form).url == reverse("truth-rate", args=[label_repair.pk])
    rating = PassageRating.objects.get()
    assert (rating.grade, rating.reason, rating.seconds, rating.rater) == ("partly", "half\nof it", 3.5, expert)
    page = client.get(reverse("truth-rate", args=[label_repair.pk])).content.decode()
    assert "1 of 2 rated" in page
    assert f"?passage={card.passage.pk}" in page
    rate_all(label_repair, expert)
    assert "No passages left" in client.get(reverse("truth-rate", args=[label_repair.pk])).content.decode()
    browser(lead_of(label_repair)).post(reverse("truth-close", args=[label_repair.pk]))
    assert client.post(save, form | {"value": "not"}).status_code == 409
    assert PassageRating.objects.count() == 2


def test_repeated_key_with_another_grade_is_409_and_the_first_stays() -> None:
    label_repair = repair(size=2)
    (expert,) = members(label_repair)
    caller, card = Caller(expert), next_card(label_repair, expert)
    assert card is not None
    path, body = f"retrieval-repairs/{label_repair.pk}/rate/", {"passage": card.passage.pk, "grade": "relevant"}
    assert caller.post(path, body, key="k").status_code == 200
    response = caller.post(path, body | {"grade": "not"}, key="k")
    assert (response.status_code, response.json()["code"]) == (409, "key_reused")
    assert PassageRating.objects.get().grade == "relevant"


@pytest.mark.slow
@pytest.mark.both_databases
def test_changes_of_passages_and_grades_are_found_by_the_audit() -> None:
    label_repair = repair(size=2)
    (expert,) = members(label_repair)
    card = next_card(label_repair, expert)
    assert card is not None
    rate_passage(label_repair, card.passage, expert, "relevant", reason="clear")
    audit.seal_rows()
    first_passage = f"WHERE id = {card.passage.pk}"
    changes = {
        "UPDATE retrieval_truth_passagerating SET grade = 'not'": "rows_differ",
        "UPDATE retrieval_truth_passagerating SET reason = 'another'": "texts_differ",
        "DELETE FROM retrieval_truth_passagerating": "rows_differ",
        f"UPDATE retrieval_truth_pooledpassage SET probability = 0.55 {first_passage}": "rows_differ",
        "UPDATE retrieval_truth_retrievalrepair SET partly_counts = TRUE": "rows_differ",
    }
    found = flaws_of_changes({statement: statement for statement in changes})
    assert found == {statement: {code} for statement, code in changes.items()}


def test_passages_cannot_be_rated_with_a_password_by_another_persons_link() -> None:
    label_repair = repair(size=2)
    (expert,) = members(label_repair)
    card = next_card(label_repair, expert)
    assert card is not None
    distrust(expert)
    with pytest.raises(DomainError, match="password_by_others_link"):
        rate_passage(label_repair, card.passage, expert, "relevant")


def test_repair_page_shows_one_sentence_before_the_figures() -> None:
    label_repair = repair(size=60)
    client = browser(lead_of(label_repair))
    address = reverse("truth", args=[label_repair.pk])
    page = client.get(address).content.decode()
    assert "Rated so far: 0 of 60" in page
    assert "not shown: 10 questions have unrated passages above the first relevant one" in page
    rate_all(label_repair, members(label_repair)[0])
    page = client.get(address).content.decode()
    assert "Rated 60 of 60 sampled passages (70 unlabelled in a pool of 80)." in page
    assert "by nDCG" in page
    assert "relative to the pool" in page
    assert "Hit@5" in page
    with translation.override("ko"):
        client.cookies["django_language"] = "ko"
        korean = client.get(address).content.decode()
    assert "nDCG 기준" in korean


def test_accepted_labels_show_the_number_of_unrated_passages() -> None:
    label_repair = repair(size=60)
    client, accept = browser(lead_of(label_repair)), reverse("truth-accept", args=[label_repair.pk])
    refusal = client.post(accept)
    assert "No new relevant passages" in str(next(iter(get_messages(refusal.wsgi_request))))
    rate_all(label_repair, members(label_repair)[0])
    response = client.post(accept)
    page = client.get(response.url).content.decode()
    assert "10 pooled passages are unrated" in page
    assert reverse("truth", args=[label_repair.pk]) in page
    viewed = browser(make_user(Role.VIEWER, label_repair.project)).get(response.url).content.decode()
    assert "10 pooled passages are unrated" in viewed
    assert reverse("truth", args=[label_repair.pk]) not in viewed  # a viewer cannot open it
    assert "applied to" in client.get(reverse("truth", args=[label_repair.pk])).content.decode()


def test_fully_rated_pool_has_no_notice() -> None:
    label_repair = repair(size=70)
    rate_all(label_repair, members(label_repair)[0])
    client = browser(lead_of(label_repair))
    response = client.post(reverse("truth-accept", args=[label_repair.pk]))
    assert "unrated" not in client.get(response.url).content.decode()


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.slow
def test_pages_need_the_same_queries_for_any_amount(name: str) -> None:
    counts = []
    for size, rating_count in ((30, 20), (70, 60)):
        label_repair = repair(size=size, name=f"of {size}")
        rate_all(label_repair, members(label_repair)[0], limit=rating_count)
        client = browser(members(label_repair)[0] if name == "truth-rate" else lead_of(label_repair))
        address = reverse(name, args=[] if name == "truth-list" else [label_repair.pk])
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        counts.append(len(queries))
    assert counts == [QUERIES[name]] * 2


def test_home_page_lists_waiting_passages() -> None:
    label_repair = repair(size=3)
    (expert,) = members(label_repair)
    assert (
        "3 retrieved passages to rate" in " ".join(browser(expert).get(reverse("home")).content.decode().split())
        or "retrieved passages to rate" in browser(expert).get(reverse("home")).content.decode()
    )
    rate_all(label_repair, expert)
    assert "passages to rate" not in browser(expert).get(reverse("home")).content.decode()


@pytest.mark.slow
def test_repair_over_rest() -> None:
    a, b = two_runs()
    expert, lead = Caller(make_user(Role.REVIEWER, a.project)), Caller(make_user(Role.LEAD, a.project))
    body = {"runs": [a.pk, b.pk], "name": "by rest", "reviewers": [expert.user.username], "size": 60, "k": 5, "seed": 2}
    response = lead.post("retrieval-repairs/", body)
    assert response.status_code == 201
    pk = response.json()["id"]
    assert expert.post("retrieval-repairs/", body).status_code == 403
    for _ in range(60):
        card = expert.get(f"retrieval-repairs/{pk}/next/").json()
        assert set(card) == {"passage", "question", "text", "grade", "reason", "rated", "drawn"}
        rating = {"passage": card["passage"], "grade": grade_of(card["text"].rstrip("."))}
        stored_response = expert.post(f"retrieval-repairs/{pk}/rate/", rating)
        assert stored_response.json()["grade"] == rating["grade"]
    assert expert.get(f"retrieval-repairs/{pk}/next/").status_code == 204
    assert expert.get(f"retrieval-repairs/{pk}/figures/").status_code == 403
    figures = lead.get(f"retrieval-repairs/{pk}/figures/").json()
    assert (figures["rated"], figures["target"], len(figures["figures"])) == (60, "this_run", 9)
    assert lead.get(f"retrieval-repairs/{pk}/export/?format=json").status_code == 200
    accepted = lead.post(f"retrieval-repairs/{pk}/accept/", {}).json()
    assert accepted["unrated"] == 10
    assert lead.post(f"retrieval-repairs/{pk}/close/", {}).status_code == 204
    assert expert.get(f"retrieval-repairs/{pk}/").json()["open"] is False
