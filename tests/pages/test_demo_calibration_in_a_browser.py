"""The demo's calibration exercise, from log-in to an accepted prompt, judged by the toy judge."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from evaluation.models import Endpoint, User
from examples.toy_judge import ToyJudge
from review.calibration import holdout_tests
from review.management.demo.calibration import load_calibration
from review.management.demo.loader import create_demo_users, demo_project
from review.models import GoldSet, HoldoutTest
from tests.jobs import work_on_job
from tests.pages.browser import LONG_VIEWS, VIEW_IDS, open_window, page_problems
from tests.pages.test_calibration_in_a_browser import Walk

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def toy_origin() -> Iterator[str]:
    with ToyJudge(0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_lead_has_the_better_prompt_accepted(
    toy_origin: str, browser: Any, live_server: Any, settings: Any, language: str, size: tuple[int, int]
) -> None:
    settings.CONCORD_DISPATCHER = "local"
    settings.CONCORD_JUDGE_ORIGINS = [toy_origin]
    project = demo_project()
    create_demo_users(project)
    lead = User.objects.get(username="lead")
    for exercise_language in ("ko", "en"):
        load_calibration(project, lead, exercise_language)
    Endpoint.objects.update(base_url=f"{toy_origin}/v1")
    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        walk, page = Walk(window), window.page
        window.open("/")
        walk.click("nav a[href='/calibration/']")
        walk.click("main section:first-of-type h2 a")
        assert window.path.startswith(f"/calibration/{GoldSet.objects.get(name=f'calibration-{language}').pk}/")
        walk.click("#differ form[action$='/run/'] button")
        walk.wait_for_workers("#compare .big")
        before, after = (int(part.strip(" %")) for part in page.inner_text("#compare .big").split("→"))
        assert before + 20 <= after < 100
        problems = page_problems(window, "compared")
        walk.click("#accept form[action$='/holdout-test/'] button")
        holdout_test = HoldoutTest.objects.get()
        if not hasattr(holdout_test, "result"):
            work_on_job(holdout_tests.advance_holdout_test, holdout_test.pk)
        walk.wait_for_workers("#accept .big")
        assert page.inner_text("#accept .big") == ("accepted" if language == "en" else "승인됨")
        assert problems == []
        assert walk.clicks == 4
