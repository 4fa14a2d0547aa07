"""Practice in a real browser: by keyboard alone, clean and accessible in both languages, wide and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from contrib.practice.models import PracticeProgress
from evaluation.core.roles import Role
from tests.factories import make_user
from tests.pages.browser import READ_MS, VIEW_IDS, VIEWS, BrowserPage, open_window, page_problems
from tests.pages.conftest import browser, worker_browser

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
__all__ = ["browser", "worker_browser"]


def rate_by_keys(window: BrowserPage, keys: str) -> None:
    """Rate the open example and go to its feedback."""
    for key in keys:
        window.page.keyboard.press(key)
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector("#reveal")
    window.pass_time(READ_MS)


def example_path(number: int) -> str:
    return reverse("practice-example", args=[number])


@pytest.mark.parametrize(("language", "size"), VIEWS, ids=VIEW_IDS)
def test_every_practice_page_is_clean_and_accessible(
    browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    problems: list[str] = []
    with open_window(browser, live_server.url, make_user(Role.REVIEWER), language=language, size=size) as window:
        for path in (reverse("practice"), example_path(2)):
            assert window.open(path) == 200
            problems += page_problems(window, path)
        rate_by_keys(window, "554")
        problems += page_problems(window, "feedback")
        window.open(reverse("practice"))
        problems += page_problems(window, "begun")
    assert problems == []


def test_practice_works_with_the_keyboard_alone(browser: Any, live_server: Any) -> None:
    with open_window(browser, live_server.url, make_user(Role.REVIEWER), language="ko") as window:
        window.open(example_path(1))
        window.page.keyboard.press("1")
        window.page.keyboard.press("Enter")  # two criteria are missing: nothing is sent
        assert not PracticeProgress.objects.exists()
        rate_by_keys(window, "55")
        assert PracticeProgress.objects.get().given["loan"] == {
            "correctness": 1, "faithfulness": 5, "completeness": 5,
        }  # fmt: skip
        window.follow("Enter")
        assert window.path.rstrip("?") == example_path(2)
        window.follow("s")
        assert window.path.rstrip("?") == example_path(3)
        assert window.complaints == []
