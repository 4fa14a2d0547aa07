"""Sixty generated questions are decided on by keys in a browser, become a set and are evaluated."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from contrib.generation.tests.test_sixty_questions import evaluated, written
from evaluation.core.roles import Role
from tests.factories import make_user
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import LONG_VIEWS, VIEW_IDS, visit, wrong_with
from tests.pages.conftest import browser, worker_browser

__all__ = ["browser", "judge_server", "worker_browser"]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
LEFT = """left => document.querySelector("nav a[href^='?show=waiting']").textContent.includes(`(${left})`)"""


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_a_lead_decides_on_sixty_by_keys(
    language: str, size: tuple[int, int], judge_server: JudgeServer, settings: Any, browser: Any, live_server: Any
) -> None:
    generation = written(language, judge_server, settings)
    waiting = list(generation.drafts.filter(removed_by="").order_by("position"))
    rejected, edited = waiting[:2]
    lead = make_user(Role.LEAD, generation.corpus.project)
    with visit(browser, live_server.url, lead, language=language, size=size) as window:
        window.open(reverse("generation", args=[generation.pk]))
        assert wrong_with(window, "generation") == []
        for done in range(61):
            if done == 1:
                window.page.keyboard.press("e")
                window.page.keyboard.type("So? ")
                window.page.locator(".draft details.edit[open] button").click()
            else:
                window.page.keyboard.press("a" if done else "r")
            window.page.wait_for_function(LEFT, arg=len(waiting) - done - 1)
            window.page.wait_for_load_state()
        window.page.locator(f"form[action='{reverse('generation-set', args=[generation.pk])}'] button").click()
        window.settle()
        assert window.complaints == []
    assert [draft.decisions.get().verb for draft in (rejected, edited)] == ["rejected", "accepted"]
    assert "So? " in edited.decisions.get().content["text"]
    evaluated(generation)
