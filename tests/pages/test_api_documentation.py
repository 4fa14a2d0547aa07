"""Swagger UI shows the OpenAPI document and sends requests, under the site's content security policy."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.roles import Role
from tests.factories import make_project, make_user
from tests.pages.browser import BrowserPage, open_window

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_documentation_lists_operations_and_sends_requests_with_the_session(browser: Any, live_server: Any) -> None:
    user = make_user(Role.LEAD, make_project())
    with open_window(browser, live_server.url, user) as window:
        window.open("/api/v1/documentation/")
        draw(window, window.page.locator("#operations-tag-question-sets")).click()
        assert window.page.locator(".opblock-tag").count() > 20
        operation = window.page.locator(".opblock-get:has([data-path='/api/v1/question-sets/'])")
        draw(window, operation.locator("button.opblock-summary-control")).click()
        draw(window, operation.get_by_role("button", name="Try it out")).click()
        draw(window, operation.get_by_role("button", name="Execute")).click()
        body = draw(window, operation.locator(".live-responses-table .highlight-code").first)
        assert '"results": []' in body.inner_text()
        assert window.complaints == []


def draw(window: BrowserPage, element: Any) -> Any:
    """Let Swagger UI, which draws in steps, draw the element."""
    for _ in range(100):
        if element.count():
            break
        window.pass_time(500)
    return element
