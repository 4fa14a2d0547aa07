"""The pages of the second factor in a browser. Run by ``test_log_ins.py`` in a process that has them."""

from __future__ import annotations

from typing import Any

import pytest

from contrib.second_factor.tests.second_factor_on import CODE, OWN, PASSWORD, code
from evaluation.core.roles import Role
from tests.factories import make_project, make_user
from tests.pages.browser import VIEW_IDS, VIEWS, Visit, chromium, visit, wrong_with

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def log_in(window: Visit, name: str) -> None:
    """By keys, as the page is focused."""
    window.open("/login/")
    window.page.fill("[name=username]", name)
    window.page.fill("[name=password]", PASSWORD)
    window.follow("Enter")


@pytest.mark.parametrize(("language", "size"), VIEWS, ids=VIEW_IDS)
def test_second_factor_is_set_up_and_used_on_clean_pages(
    live_server: Any, language: str, size: tuple[int, int]
) -> None:
    who = make_user(Role.LEAD, make_project(), language=language)
    with chromium() as browser, visit(browser, live_server.url, None, language=language, size=size) as window:
        log_in(window, who.username)
        window.open(OWN)
        assert wrong_with(window, OWN) == []
        window.page.fill("[name=code]", code(window.page.inner_text("li code").replace(" ", "")))
        window.page.fill("[name=password]", PASSWORD)
        window.follow("Enter")
        assert wrong_with(window, "recovery codes") == []
        recovery = window.page.locator(".codes code").first.inner_text()
        window.open(OWN)
        assert wrong_with(window, f"{OWN} with a factor") == []
        window.page.context.clear_cookies()
        log_in(window, who.username)
        assert window.path == CODE
        assert wrong_with(window, CODE) == []
        window.page.fill("[name=code]", recovery)
        window.follow("Enter")
        assert window.path == "/"
        assert window.complaints == []
