"""Practice: resumable, repeatable, one's own, and in no figure."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from contrib.practice.items import METRICS, practice_items
from contrib.practice.models import PracticeProgress
from evaluation.core.roles import Role
from review.models import Rating
from tests.factories import make_user
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewer() -> Client:
    client = Client()
    client.force_login(make_user(Role.REVIEWER, language="en"))
    return client


def rate(client: Client, number: int, **levels: str) -> int:
    """Post an example with its expected levels, but those that are named; the status."""
    expected = practice_items()[number - 1].ratings
    values = {name: str(expected[name].level) for name in METRICS} | levels  # type: ignore[index]
    body = {f"value:{name}": level for name, level in values.items()}
    return client.post(reverse("practice-example", args=[number]), body).status_code


def shown(client: Client, name: str, *args: int) -> str:
    return compact(client.get(reverse(name, args=args)).content.decode())


def test_nothing_of_the_expected_rating_is_there_before_the_own_one_is_in(reviewer: Client) -> None:
    why = practice_items()[1].ratings["faithfulness"].why.en
    assert why not in shown(reviewer, "practice-example", 2)
    assert rate(reviewer, 2) == 302
    assert why in shown(reviewer, "practice-example", 2)


def test_where_one_differs_stands_first_with_the_reason(reviewer: Client) -> None:
    rate(reviewer, 2, faithfulness="4")  # expected is 1
    page = shown(reviewer, "practice-example", 2)
    assert "Where we would rate differently" in page
    assert 'aria-label="On the scale: you 4, we 1"' in page


def test_what_the_answer_took_over_is_shaded_in_the_passages_before_and_after(reviewer: Client) -> None:
    shaded = '<mark class="taken">100 won a day for each book</mark>'
    assert shaded in shown(reviewer, "practice-example", 4)
    rate(reviewer, 4)
    assert shaded in shown(reviewer, "practice-example", 4)


def test_a_rating_stays_once_its_feedback_has_been_seen(reviewer: Client) -> None:
    rate(reviewer, 1, correctness="3")
    assert rate(reviewer, 1, correctness="5") == 302
    assert PracticeProgress.objects.get().given["loan"]["correctness"] == 3


def test_a_missing_criterion_or_a_level_that_is_none_is_asked_for_again(reviewer: Client) -> None:
    for wrong in ("", "6", "2.5", "-1"):
        assert rate(reviewer, 1, faithfulness=wrong) == 409
    assert not PracticeProgress.objects.exists()


def test_it_goes_on_where_it_was_left_and_around_what_was_skipped(reviewer: Client) -> None:
    for number in (1, 2, 4):
        rate(reviewer, number)
    assert f'class="button primary" href="{reverse("practice-example", args=[3])}"' in shown(reviewer, "practice")
    for number in (5, 6, 7, 8, 9, 10):
        rate(reviewer, number)
    assert f'action="{reverse("practice-example", args=[3])}"' in shown(reviewer, "practice-example", 10)


def test_it_can_be_gone_through_again_and_counts_how_often(reviewer: Client) -> None:
    for number in range(1, 11):
        rate(reviewer, number)
    assert "You have rated every example." in shown(reviewer, "practice")
    assert reviewer.post(reverse("practice-restart")).status_code == 302
    row = PracticeProgress.objects.get()
    assert (row.given, row.rounds) == ({}, 1)


def test_it_is_nobody_elses(reviewer: Client) -> None:
    rate(reviewer, 1)
    other = Client()
    other.force_login(make_user(Role.LEAD, language="en"))
    assert "Where we would" not in shown(other, "practice-example", 1)
    assert "We would" not in shown(other, "practice-example", 1)


def test_it_makes_no_rating(reviewer: Client) -> None:
    for number in range(1, 11):
        rate(reviewer, number)
    assert not Rating.objects.exists()


@pytest.mark.parametrize("number", [0, 11, 999])
def test_there_is_no_other_example(reviewer: Client, number: int) -> None:
    assert reviewer.get(f"/practice/{number}/").status_code == 404


def test_the_pages_ask_little_of_the_database(reviewer: Client, django_assert_num_queries: object) -> None:
    rate(reviewer, 1)
    for name, args, queries in (("practice", [], 4), ("practice-example", [1], 3), ("practice-example", [2], 3)):
        # Session, person and their progress; for the navigation of the start their roles.
        with django_assert_num_queries(queries):  # type: ignore[operator]
            reviewer.get(reverse(name, args=args))


def test_a_reviewer_finds_it_at_the_queues_and_at_home(reviewer: Client) -> None:
    link = f'href="{reverse("practice")}"'
    assert link in shown(reviewer, "queue-list")
    assert link in shown(reviewer, "home")
