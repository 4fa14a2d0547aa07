"""Comparisons over REST: created by a lead, rated blind by named reviewers, read by leads."""

from __future__ import annotations

from typing import Any

import pytest

from contrib.pairs.models import PairMember, PairSet, Preference
from contrib.pairs.tests.test_pairing import make_comparison, members, two_runs
from evaluation.core.roles import Role
from tests.factories import make_user
from tests.review.clients import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
WRONG = "I know nothing about it."


@pytest.fixture
def pair_set() -> PairSet:
    """Four pairs for two people; B is the answer that knows nothing."""
    return make_comparison(questions=4, reviewer_count=2, size=4)


def callers(pair_set: PairSet) -> list[Caller]:
    return [Caller(reviewer) for reviewer in members(pair_set)]


def lead_of(pair_set: PairSet) -> Caller:
    return Caller(make_user(Role.LEAD, pair_set.project))


def card_of(caller: Caller, pair_set: PairSet) -> Any:
    response = caller.get(f"pair-sets/{pair_set.pk}/next/")
    return None if response.status_code == 204 else response.json()


def prefer_a(caller: Caller, pair_set: PairSet, values: list[int]) -> None:
    """Rate all pairs in the caller's order with these values towards A, whichever its side."""
    for value in values:
        card = card_of(caller, pair_set)
        preference = value if card["right"] == WRONG else -value
        body = {"pair": card["pair"], "value": preference, "reason": "why", "seconds": 2}
        assert caller.post(f"pair-sets/{pair_set.pk}/prefer/", body).status_code == 200
    assert card_of(caller, pair_set) is None


def test_reviewers_rate_each_pair_and_the_lead_reads_the_figures(pair_set: PairSet) -> None:
    first_rater, second_rater = callers(pair_set)
    prefer_a(first_rater, pair_set, [-2, -2, -2, -2])
    prefer_a(second_rater, pair_set, [-1, -1, -1, -1])
    for pair, disagrees in zip(pair_set.pairs.all(), (True, False, False, False), strict=True):
        Preference.objects.create(
            pair=pair,
            by_judge=True,
            author="j@1",
            value=-1,
            detail={"orders_disagree": disagrees},
            origin=f"{pair.pk:064}",
        )
    figures = lead_of(pair_set).get(f"pair-sets/{pair_set.pk}/figures/?resamples=0").json()["preference"]
    # each pair's mean is -1.5, towards A
    assert {name: figures["experts"][name] for name in ("n", "mean", "a", "ties", "b")} == {
        "n": 4, "mean": -1.5, "a": 4, "ties": 0, "b": 0,
    }  # fmt: skip
    assert figures["judges"]["j@1"]["orders_disagree"] == 0.25
    assert figures["judges"]["j@1"]["agreement"]["mae"] == 0.5


def test_repeated_key_with_another_preference_is_409_and_the_first_stays(pair_set: PairSet) -> None:
    caller, _ = callers(pair_set)
    path, body = f"pair-sets/{pair_set.pk}/prefer/", {"pair": card_of(caller, pair_set)["pair"], "value": 1}
    assert caller.post(path, body, key="k").status_code == 200
    response = caller.post(path, body | {"value": -1}, key="k")
    assert (response.status_code, response.json()["code"]) == (409, "key_reused")
    assert caller.post(path, body, key="k").status_code == 200
    assert Preference.objects.count() == 1


def test_card_names_no_system_and_keeps_its_side(pair_set: PairSet) -> None:
    caller, _ = callers(pair_set)
    response = caller.get(f"pair-sets/{pair_set.pk}/next/")
    pair = pair_set.pairs.get(pk=response.json()["pair"])
    assert pair.system_a
    text = response.content.decode() + caller.get(f"pair-sets/{pair_set.pk}/").content.decode()
    assert pair.system_a not in text
    assert pair.system_b not in text
    assert "run_a" not in text
    assert response.content == caller.get(f"pair-sets/{pair_set.pk}/next/").content
    stored = caller.post(f"pair-sets/{pair_set.pk}/prefer/", {"pair": pair.pk, "value": 1, "reason": "clear"}).json()
    assert {name: stored[name] for name in ("left", "value", "reason", "rated")} == {
        "left": response.json()["left"], "value": 1, "reason": "clear", "rated": 1,
    }  # fmt: skip
    reopened = caller.get(f"pair-sets/{pair_set.pk}/next/?pair={pair.pk}").json()
    assert (reopened["value"], reopened["reason"]) == (1, "clear")


@pytest.mark.parametrize("value", [3, -3, 0.5, None, "much better"])
def test_a_value_off_the_scale_is_refused(pair_set: PairSet, value: Any) -> None:
    caller, _ = callers(pair_set)
    body = {"pair": card_of(caller, pair_set)["pair"], "value": value}
    assert caller.post(f"pair-sets/{pair_set.pk}/prefer/", body).status_code == 400
    assert not Preference.objects.exists()


def test_pair_of_another_comparison_and_unknown_field_are_refused(pair_set: PairSet) -> None:
    caller, _ = callers(pair_set)
    foreign_pair = make_comparison(questions=2, reviewer_count=1, size=1).pairs.get()
    assert caller.post(f"pair-sets/{pair_set.pk}/prefer/", {"pair": foreign_pair.pk, "value": 1}).status_code == 404
    body = {"pair": card_of(caller, pair_set)["pair"], "value": 1, "rater": "somebody else"}
    assert caller.post(f"pair-sets/{pair_set.pk}/prefer/", body).status_code == 400
    assert not Preference.objects.exists()


def test_rating_lead_reads_nothing_before_the_last_pair(pair_set: PairSet) -> None:
    lead = lead_of(pair_set)
    PairMember.objects.create(pair_set=pair_set, reviewer=lead.user)
    response = lead.get(f"pair-sets/{pair_set.pk}/figures/")
    assert (response.status_code, response.json()["code"]) == (409, "pairs_left")
    assert "run_a" not in lead.get(f"pair-sets/{pair_set.pk}/").json()
    # Nor by closing it, because it can be reopened.
    assert lead.post(f"pair-sets/{pair_set.pk}/close/").status_code == 204
    assert lead.get(f"pair-sets/{pair_set.pk}/figures/").json()["code"] == "pairs_left"
    assert lead.get(f"pair-sets/{pair_set.pk}/export/").json()["code"] == "pairs_left"
    assert lead.post(f"pair-sets/{pair_set.pk}/reopen/").status_code == 204
    prefer_a(lead, pair_set, [-2, -2, -2, -2])
    assert lead.get(f"pair-sets/{pair_set.pk}/figures/?resamples=0").status_code == 200


def test_lead_creates_closes_and_reopens_a_comparison() -> None:
    a, b = two_runs()
    lead, rater = Caller(make_user(Role.LEAD, a.project)), make_user(Role.REVIEWER, a.project)
    body = {"run_a": a.pk, "run_b": b.pk, "name": "Which?", "size": 2, "reviewers": [rater.username], "seed": 5}
    response = lead.post("pair-sets/", body)
    assert response.status_code == 201, response.content
    pair_set = PairSet.objects.get(pk=response.json()["id"])
    assert (pair_set.pairs.count(), pair_set.seed, response.json()["reviewers"]) == (2, 5, [rater.username])
    assert [row["name"] for row in Caller(rater).get("pair-sets/").json()["results"]] == ["Which?"]
    assert lead.post("pair-sets/", body).json()["code"] == "pair_set_exists"
    unknown_response = lead.post("pair-sets/", body | {"reviewers": ["nobody"]})
    assert (unknown_response.status_code, "nobody" in unknown_response.json()["detail"]) == (400, True)
    assert lead.post(f"pair-sets/{pair_set.pk}/close/").status_code == 204
    preference = {"pair": pair_set.pairs.all()[0].pk, "value": 1}
    assert Caller(rater).post(f"pair-sets/{pair_set.pk}/prefer/", preference).json()["code"] == "pairs_closed"
    assert lead.post(f"pair-sets/{pair_set.pk}/reopen/").status_code == 204
    assert Caller(rater).post(f"pair-sets/{pair_set.pk}/prefer/", preference).status_code == 200
