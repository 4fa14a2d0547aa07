"""The pages of the second factor in a browser. Run by ``test_log_ins.py`` in a process that has them."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.roles import Role
from tests.evaluation.extras.second_factor_on import CODE, OWN, PASSWORD, code
from tests.factories import make_project, make_user
from tests.pages.browser import VIEWS, Visit, chromium, visit, wrong_with

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def log_in(found: Visit, name: str) -> None:
    """By keys, as the page is focused."""
    found.open("/login/")
    found.page.fill("[name=username]", name)
    found.page.fill("[name=password]", PASSWORD)
    found.go("Enter")


@pytest.mark.parametrize(("language", "size"), VIEWS, ids=["en", "ko"])
def test_somebody_sets_it_up_and_gets_in_by_it_on_clean_pages(
    settings: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    settings.DEBUG = True  # static files are served from where they are
    who = make_user(Role.LEAD, make_project(), language=language)
    with chromium() as browser, visit(browser, live_server.url, None, language=language, size=size) as found:
        log_in(found, who.username)
        found.open(OWN)
        assert wrong_with(found, OWN) == []
        found.page.fill("[name=code]", code(found.page.inner_text("li code").replace(" ", "")))
        found.page.fill("[name=password]", PASSWORD)
        found.go("Enter")
        assert wrong_with(found, "recovery codes") == []
        recovery = found.page.locator(".codes code").first.inner_text()
        found.open(OWN)
        assert wrong_with(found, f"{OWN} with a factor") == []
        found.page.context.clear_cookies()
        log_in(found, who.username)
        assert found.path == CODE
        assert wrong_with(found, CODE) == []
        found.page.fill("[name=code]", recovery)
        found.go("Enter")
        assert found.path == "/"
        assert found.complaints == []
