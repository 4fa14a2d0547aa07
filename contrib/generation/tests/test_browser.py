"""Sixty generated questions are decided by keyboard in a browser, become a set and are evaluated."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from contrib.generation.tests.test_sixty_questions import assert_evaluated, run_generation
from evaluation.core.roles import Role
from tests.factories import make_user
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import LONG_VIEWS, VIEW_IDS, open_window, page_problems
from tests.pages.conftest import browser, worker_browser

__all__ = ["browser", "judge_server", "worker_browser"]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DRAFTS_LEFT = """left => document.querySelector("nav a[href^='?show=waiting']").textContent.includes(`(${left})`)"""


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_lead_decides_on_sixty_by_keyboard(
    language: str, size: tuple[int, int], judge_server: JudgeServer, settings: Any, browser: Any, live_server: Any
) -> None:
    generation = run_generation(language, judge_server, settings)
    waiting = list(generation.drafts.filter(removed_by="").order_by("position"))
    rejected, edited = waiting[:2]
    lead = make_user(Role.LEAD, generation.corpus.project)
    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        window.open(reverse("generation", args=[generation.pk]))
        assert page_problems(window, "generation") == []
        for decided_count in range(61):
            if decided_count == 1:
                window.page.keyboard.press("e")
                window.page.keyboard.type("So? ")
                window.page.locator(".draft details.edit[open] button").click()
            else:
                window.page.keyboard.press("a" if decided_count else "r")
            window.page.wait_for_function(DRAFTS_LEFT, arg=len(waiting) - decided_count - 1)
            window.page.wait_for_load_state()
        window.page.locator(f"form[action='{reverse('generation-set', args=[generation.pk])}'] button").click()
        window.settle()
        assert window.complaints == []
    assert [draft.decisions.get().verb for draft in (rejected, edited)] == ["rejected", "accepted"]
    assert "So? " in edited.decisions.get().content["text"]
    assert_evaluated(generation)
