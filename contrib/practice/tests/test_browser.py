"""Practice in a real browser: by keyboard alone, clean and accessible in both languages, wide and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from contrib.practice.models import PracticeProgress
from evaluation.core.roles import Role
from tests.factories import make_user
from tests.pages.browser import READ_MS, VIEW_IDS, VIEWS, Visit, visit, wrong_with
from tests.pages.conftest import browser, worker_browser

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
__all__ = ["browser", "worker_browser"]


def rate_by_keys(window: Visit, keys: str) -> None:
    """Rate the example that is open and come to its feedback."""
    for key in keys:
        window.page.keyboard.press(key)
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector("#reveal")
    window.pass_time(READ_MS)


def place(number: int) -> str:
    return reverse("practice-example", args=[number])


@pytest.mark.parametrize(("language", "size"), VIEWS, ids=VIEW_IDS)
def test_every_state_of_practice_is_clean_and_accessible(
    browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    wrong: list[str] = []
    with visit(browser, live_server.url, make_user(Role.REVIEWER), language=language, size=size) as window:
        for path in (reverse("practice"), place(2)):
            assert window.open(path) == 200
            wrong += wrong_with(window, path)
        rate_by_keys(window, "554")
        wrong += wrong_with(window, "feedback")
        window.open(reverse("practice"))
        wrong += wrong_with(window, "begun")
    assert wrong == []


def test_practice_needs_nothing_but_the_keyboard(browser: Any, live_server: Any) -> None:
    with visit(browser, live_server.url, make_user(Role.REVIEWER), language="ko") as window:
        window.open(place(1))
        window.page.keyboard.press("1")
        window.page.keyboard.press("Enter")  # two criteria are missing: nothing is sent
        assert not PracticeProgress.objects.exists()
        rate_by_keys(window, "55")
        assert PracticeProgress.objects.get().given["loan"] == {
            "correctness": 1, "faithfulness": 5, "completeness": 5,
        }  # fmt: skip
        window.follow("Enter")
        assert window.path.rstrip("?") == place(2)
        window.follow("s")
        assert window.path.rstrip("?") == place(3)
        assert window.complaints == []
