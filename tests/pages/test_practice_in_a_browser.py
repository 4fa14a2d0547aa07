"""Practice in a real browser: by keyboard alone, clean and accessible in both languages, wide and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from evaluation.core.roles import Role
from review.models import PracticeProgress
from tests.factories import make_user
from tests.pages.browser import VIEWS, Visit, visit, wrong_with

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def rate_by_keys(found: Visit, keys: str) -> None:
    """Rate the example that is open and come to its feedback."""
    for key in keys:
        found.page.keyboard.press(key)
    found.page.keyboard.press("Enter")
    found.page.wait_for_selector("#reveal")
    found.page.wait_for_timeout(450)  # an Enter right after the page came is taken for the one before


def place(number: int) -> str:
    return reverse("practice-example", args=[number])


@pytest.mark.parametrize(("language", "size"), VIEWS, ids=["en", "ko"])
def test_every_state_of_practice_is_clean_and_accessible(
    browser: Any, live_server: Any, settings: Any, language: str, size: tuple[int, int]
) -> None:
    settings.DEBUG = True
    wrong: list[str] = []
    with visit(browser, live_server.url, make_user(Role.REVIEWER), language=language, size=size) as found:
        for path in (reverse("practice"), place(2)):
            assert found.open(path) == 200
            wrong += wrong_with(found, path)
        rate_by_keys(found, "554")
        wrong += wrong_with(found, "feedback")
        found.open(reverse("practice"))
        wrong += wrong_with(found, "begun")
    assert wrong == []


def test_practice_needs_nothing_but_the_keyboard(browser: Any, live_server: Any, settings: Any) -> None:
    settings.DEBUG = True
    with visit(browser, live_server.url, make_user(Role.REVIEWER), language="ko") as found:
        found.open(place(1))
        found.page.keyboard.press("1")
        found.page.keyboard.press("Enter")  # two criteria are missing: nothing is sent
        assert not PracticeProgress.objects.exists()
        rate_by_keys(found, "55")
        assert PracticeProgress.objects.get().given["loan"] == {
            "correctness": 1, "faithfulness": 5, "completeness": 5,
        }  # fmt: skip
        found.go("Enter")
        assert found.path.rstrip("?") == place(2)
        found.go("s")
        assert found.path.rstrip("?") == place(3)
        assert found.complaints == []
