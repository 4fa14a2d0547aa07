"""Second factor pages in a browser. ``test_log_ins.py`` runs this file in a process with the feature enabled."""

from __future__ import annotations

from typing import Any

import pytest

from contrib.second_factor.tests.second_factor_on import CODE_PATH, FACTOR_PATH, PASSWORD, code
from evaluation.core.roles import Role
from tests.factories import make_project, make_user
from tests.pages.browser import VIEW_IDS, VIEWS, BrowserPage, chromium, open_window, page_problems

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def log_in(window: BrowserPage, name: str) -> None:
    """Log in by keyboard, as the page is focused."""
    window.open("/login/")
    window.page.fill("[name=username]", name)
    window.page.fill("[name=password]", PASSWORD)
    window.follow("Enter")


@pytest.mark.parametrize(("language", "size"), VIEWS, ids=VIEW_IDS)
def test_second_factor_is_set_up_and_used_on_clean_pages(
    live_server: Any, language: str, size: tuple[int, int]
) -> None:
    user = make_user(Role.LEAD, make_project(), language=language)
    with chromium() as browser, open_window(browser, live_server.url, None, language=language, size=size) as window:
        log_in(window, user.username)
        window.open(FACTOR_PATH)
        assert page_problems(window, FACTOR_PATH) == []
        window.page.fill("[name=code]", code(window.page.inner_text("li code").replace(" ", "")))
        window.page.fill("[name=password]", PASSWORD)
        window.follow("Enter")
        assert page_problems(window, "recovery codes") == []
        recovery = window.page.locator(".codes code").first.inner_text()
        window.open(FACTOR_PATH)
        assert page_problems(window, f"{FACTOR_PATH} with a factor") == []
        window.page.context.clear_cookies()
        log_in(window, user.username)
        assert window.path == CODE_PATH
        assert page_problems(window, CODE_PATH) == []
        window.page.fill("[name=code]", recovery)
        window.follow("Enter")
        assert window.path == "/"
        assert window.complaints == []
