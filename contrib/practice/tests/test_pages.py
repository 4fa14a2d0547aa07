"""Practice: resumable, repeatable, personal, and in no figure."""

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
    """Post an example with its expected levels, except the named ones; return the status."""
    expected = practice_items()[number - 1].ratings
    values = {name: str(expected[name].level) for name in METRICS} | levels  # type: ignore[index]
    body = {f"value:{name}": level for name, level in values.items()}
    return client.post(reverse("practice-example", args=[number]), body).status_code


def page_text(client: Client, name: str, *args: int) -> str:
    return compact(client.get(reverse(name, args=args)).content.decode())


def test_expected_rating_is_hidden_before_the_own_rating(reviewer: Client) -> None:
    why = practice_items()[1].ratings["faithfulness"].why.en
    assert why not in page_text(reviewer, "practice-example", 2)
    assert rate(reviewer, 2) == 302
    assert why in page_text(reviewer, "practice-example", 2)


def test_largest_difference_is_shown_first_with_its_reason(reviewer: Client) -> None:
    rate(reviewer, 2, faithfulness="4")  # expected is 1
    page = page_text(reviewer, "practice-example", 2)
    assert "Differences from the expected rating" in page
    assert 'aria-label="On the scale: you 4, expected 1"' in page


def test_answer_words_are_highlighted_in_the_passages(reviewer: Client) -> None:
    shaded = '<mark class="taken">100 won a day for each book</mark>'
    assert shaded in page_text(reviewer, "practice-example", 4)
    rate(reviewer, 4)
    assert shaded in page_text(reviewer, "practice-example", 4)


def test_rating_is_final_after_its_feedback(reviewer: Client) -> None:
    rate(reviewer, 1, correctness="3")
    assert rate(reviewer, 1, correctness="5") == 302
    assert PracticeProgress.objects.get().given["loan"]["correctness"] == 3


def test_missing_or_invalid_level_is_asked_again(reviewer: Client) -> None:
    for invalid_level in ("", "6", "2.5", "-1"):
        assert rate(reviewer, 1, faithfulness=invalid_level) == 409
    assert not PracticeProgress.objects.exists()


def test_practice_resumes_where_it_was_left(reviewer: Client) -> None:
    for number in (1, 2, 4):
        rate(reviewer, number)
    assert f'class="button primary" href="{reverse("practice-example", args=[3])}"' in page_text(reviewer, "practice")
    for number in (5, 6, 7, 8, 9, 10):
        rate(reviewer, number)
    assert f'action="{reverse("practice-example", args=[3])}"' in page_text(reviewer, "practice-example", 10)


def test_practice_can_be_repeated_and_counts_rounds(reviewer: Client) -> None:
    for number in range(1, 11):
        rate(reviewer, number)
    assert "You have rated every example." in page_text(reviewer, "practice")
    assert reviewer.post(reverse("practice-restart")).status_code == 302
    row = PracticeProgress.objects.get()
    assert (row.given, row.rounds) == ({}, 1)


def test_practice_is_personal(reviewer: Client) -> None:
    rate(reviewer, 1)
    other_client = Client()
    other_client.force_login(make_user(Role.LEAD, language="en"))
    assert "Differences from the expected" not in page_text(other_client, "practice-example", 1)
    assert "Your rating matches" not in page_text(other_client, "practice-example", 1)


def test_practice_creates_no_rating(reviewer: Client) -> None:
    for number in range(1, 11):
        rate(reviewer, number)
    assert not Rating.objects.exists()


@pytest.mark.parametrize("number", [0, 11, 999])
def test_unknown_example_is_not_found(reviewer: Client, number: int) -> None:
    assert reviewer.get(f"/practice/{number}/").status_code == 404


def test_pages_need_few_queries(reviewer: Client, django_assert_num_queries: object) -> None:
    rate(reviewer, 1)
    for name, args, queries in (("practice", [], 4), ("practice-example", [1], 3), ("practice-example", [2], 3)):
        # Session, person and their progress; for the navigation of the start their roles.
        with django_assert_num_queries(queries):  # type: ignore[operator]
            reviewer.get(reverse(name, args=args))


def test_practice_is_linked_from_queues_and_home(reviewer: Client) -> None:
    link = f'href="{reverse("practice")}"'
    assert link in page_text(reviewer, "queue-list")
    assert link in page_text(reviewer, "home")
