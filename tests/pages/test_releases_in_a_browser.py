"""The section of changed answers in a browser: one click creates the queue of pairs."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.roles import Role
from review.models import ReviewQueue
from tests.factories import make_user
from tests.pages.browser import LONG_VIEWS, VIEW_IDS, open_window, page_problems
from tests.review.releases.built import make_releases, rate_queue

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_lead_creates_the_queue_with_one_click(
    browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    old, new = make_releases(40, 20)
    lead, reviewer = make_user(Role.LEAD, new.project), make_user(Role.REVIEWER, new.project)
    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        window.open(f"/runs/compare/?runs={old.pk},{new.pk}")
        assert "40" in window.page.inner_text("section[aria-labelledby='changed-1']")
        assert not page_problems(window, "changed answers")
        window.click_through("form[action*='/pairs/'] button")
        queue = ReviewQueue.objects.get()
        assert window.page.url.endswith(f"/queues/{queue.pk}/")
        rate_queue(queue, reviewer, lambda answer: 4 if answer.text.startswith("New: ") else 3)
        window.open(f"/runs/compare/?runs={old.pk},{new.pk}")
        assert window.page.locator("section[aria-labelledby='changed-1'] b").inner_text()
        assert not page_problems(window, "verdict on changed answers")
