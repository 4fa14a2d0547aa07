"""Side by side over REST: made by a lead, compared blind by those who are named, read by leads."""

from __future__ import annotations

from typing import Any

import pytest

from contrib.pairs.models import PairMember, PairSet, Preference
from contrib.pairs.tests.test_pairing import compared, members, two_runs
from evaluation.core.roles import Role
from tests.factories import make_user
from tests.review.clients import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
WRONG = "I know nothing about it."


@pytest.fixture
def found() -> PairSet:
    """Four pairs for two people; B is the one that knows nothing."""
    return compared(questions=4, people=2, size=4)


def callers(found: PairSet) -> list[Caller]:
    return [Caller(person) for person in members(found)]


def lead_of(found: PairSet) -> Caller:
    return Caller(make_user(Role.LEAD, found.project))


def card_of(caller: Caller, found: PairSet) -> Any:
    response = caller.get(f"pair-sets/{found.pk}/next/")
    return None if response.status_code == 204 else response.json()


def prefer_a(caller: Caller, found: PairSet, values: list[int]) -> None:
    """Go through all pairs in the caller's order and prefer A by these values, whatever the side."""
    for value in values:
        card = card_of(caller, found)
        said = value if card["right"] == WRONG else -value
        body = {"pair": card["pair"], "value": said, "reason": "why", "seconds": 2}
        assert caller.post(f"pair-sets/{found.pk}/prefer/", body).status_code == 200
    assert card_of(caller, found) is None


def test_everybody_rates_each_pair_and_the_lead_reads_what_came_of_it(found: PairSet) -> None:
    one, other = callers(found)
    prefer_a(one, found, [-2, -2, -2, -2])
    prefer_a(other, found, [-1, -1, -1, -1])
    for pair, apart in zip(found.pairs.all(), (True, False, False, False), strict=True):
        Preference.objects.create(
            pair=pair, by_judge=True, author="j@1", value=-1, detail={"orders_disagree": apart}, origin=f"{pair.pk:064}"
        )
    told = lead_of(found).get(f"pair-sets/{found.pk}/figures/?resamples=0").json()["preference"]
    # each pair's mean is -1.5, towards A
    assert {name: told["experts"][name] for name in ("n", "mean", "a", "ties", "b")} == {
        "n": 4, "mean": -1.5, "a": 4, "ties": 0, "b": 0,
    }  # fmt: skip
    assert told["judges"]["j@1"]["orders_disagree"] == 0.25
    assert told["judges"]["j@1"]["agreement"]["mae"] == 0.5


def test_a_card_names_no_system_and_holds_its_side(found: PairSet) -> None:
    caller, _ = callers(found)
    before = caller.get(f"pair-sets/{found.pk}/next/")
    pair = found.pairs.get(pk=before.json()["pair"])
    assert pair.system_a
    text = before.content.decode() + caller.get(f"pair-sets/{found.pk}/").content.decode()
    assert pair.system_a not in text
    assert pair.system_b not in text
    assert "run_a" not in text
    assert before.content == caller.get(f"pair-sets/{found.pk}/next/").content
    kept = caller.post(f"pair-sets/{found.pk}/prefer/", {"pair": pair.pk, "value": 1, "reason": "clear"}).json()
    assert {name: kept[name] for name in ("left", "value", "reason", "rated")} == {
        "left": before.json()["left"], "value": 1, "reason": "clear", "rated": 1,
    }  # fmt: skip
    again = caller.get(f"pair-sets/{found.pk}/next/?pair={pair.pk}").json()
    assert (again["value"], again["reason"]) == (1, "clear")


@pytest.mark.parametrize("value", [3, -3, 0.5, None, "much better"])
def test_a_value_off_the_scale_is_refused(found: PairSet, value: Any) -> None:
    caller, _ = callers(found)
    body = {"pair": card_of(caller, found)["pair"], "value": value}
    assert caller.post(f"pair-sets/{found.pk}/prefer/", body).status_code == 400
    assert not Preference.objects.exists()


def test_a_pair_of_another_comparison_and_an_unknown_field_are_refused(found: PairSet) -> None:
    caller, _ = callers(found)
    elsewhere = compared(questions=2, people=1, size=1).pairs.get()
    assert caller.post(f"pair-sets/{found.pk}/prefer/", {"pair": elsewhere.pk, "value": 1}).status_code == 404
    body = {"pair": card_of(caller, found)["pair"], "value": 1, "rater": "somebody else"}
    assert caller.post(f"pair-sets/{found.pk}/prefer/", body).status_code == 400
    assert not Preference.objects.exists()


def test_a_lead_who_rates_too_reads_nothing_before_the_last_pair_is_rated(found: PairSet) -> None:
    lead = lead_of(found)
    PairMember.objects.create(pair_set=found, reviewer=lead.user)
    refused = lead.get(f"pair-sets/{found.pk}/figures/")
    assert (refused.status_code, refused.json()["code"]) == (409, "pairs_left")
    assert "run_a" not in lead.get(f"pair-sets/{found.pk}/").json()
    prefer_a(lead, found, [-2, -2, -2, -2])
    assert lead.get(f"pair-sets/{found.pk}/figures/?resamples=0").status_code == 200


def test_a_lead_makes_closes_and_opens_a_comparison() -> None:
    a, b = two_runs()
    lead, rater = Caller(make_user(Role.LEAD, a.project)), make_user(Role.REVIEWER, a.project)
    body = {"run_a": a.pk, "run_b": b.pk, "name": "Which?", "size": 2, "reviewers": [rater.username], "seed": 5}
    made = lead.post("pair-sets/", body)
    assert made.status_code == 201, made.content
    found = PairSet.objects.get(pk=made.json()["id"])
    assert (found.pairs.count(), found.seed, made.json()["reviewers"]) == (2, 5, [rater.username])
    assert [one["name"] for one in Caller(rater).get("pair-sets/").json()["results"]] == ["Which?"]
    assert lead.post("pair-sets/", body).json()["code"] == "pair_set_exists"
    unknown = lead.post("pair-sets/", body | {"reviewers": ["nobody"]})
    assert (unknown.status_code, "nobody" in unknown.json()["detail"]) == (400, True)
    assert lead.post(f"pair-sets/{found.pk}/close/").status_code == 204
    said = {"pair": found.pairs.all()[0].pk, "value": 1}
    assert Caller(rater).post(f"pair-sets/{found.pk}/prefer/", said).json()["code"] == "pairs_closed"
    assert lead.post(f"pair-sets/{found.pk}/reopen/").status_code == 204
    assert Caller(rater).post(f"pair-sets/{found.pk}/prefer/", said).status_code == 200
