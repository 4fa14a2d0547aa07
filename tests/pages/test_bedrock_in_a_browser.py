"""A judge at Amazon Bedrock in a browser: endpoint, judge, trial and run, against a server that checks signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluation.core.roles import Role
from evaluation.models import Endpoint, JudgeVersion, Reply, Run
from tests.evaluation.runs.remote import make_answers
from tests.factories import make_user
from tests.judge_server import aws
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import SECOND_VIEW_FAST, VIEW_IDS, BrowserPage, open_window, page_problems

__all__ = ["judge_server"]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"


def press(window: BrowserPage, selector: str) -> None:
    with window.page.expect_navigation():
        window.page.locator(selector).first.click()
    window.settle()


@pytest.mark.parametrize(("language", "size"), SECOND_VIEW_FAST, ids=VIEW_IDS)
def test_administrator_adds_bedrock_and_evaluates_with_it(
    settings: Any,
    judge_server: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
    browser: Any,
    live_server: Any,
    tmp_path: Path,
    language: str,
    size: tuple[int, int],
) -> None:
    aws.set_credentials(monkeypatch, tmp_path)
    settings.CONCORD_DISPATCHER = "local"
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    judge_server.behave(aws.signed_only())
    answers = make_answers(2)
    admin, lead = make_user(Role.ADMIN, answers.project), make_user(Role.LEAD, answers.project)
    problems: list[str] = []
    with open_window(browser, live_server.url, admin, language=language, size=size) as window:
        window.open("/admin/evaluation/endpoint/add/")
        problems += page_problems(window, "endpoint")
        window.page.fill("input[name=name]", "aws")
        window.page.select_option("select[name=provider]", "bedrock")
        window.page.fill("input[name=base_url]", f"{judge_server.origin}/other")
        window.page.fill("input[name=try_model]", MODEL)
        press(window, "input[name=_try]")
        assert MODEL in window.page.locator(".messagelist").inner_text()
        endpoint = Endpoint.objects.get()
        assert (endpoint.provider, endpoint.key_env, judge_server.preflights) == ("bedrock", "", 1)
    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        window.open("/admin/evaluation/judgeversion/add/")
        window.page.select_option("select[name=project]", str(answers.project_id))
        window.page.fill("input[name=name]", "sonnet")
        window.page.select_option("select[name=endpoint]", str(endpoint.pk))
        window.page.fill("input[name=model]", MODEL)
        window.page.fill("input[name=seed]", "7")
        press(window, "input[name=_save]")
        # Bedrock takes no seed.
        assert "seed" in window.page.locator(".errornote ~ .errorlist, .errorlist").first.inner_text()
        assert not JudgeVersion.objects.filter(name="sonnet").exists()
        window.page.fill("input[name=seed]", "")
        press(window, "input[name=_save]")
        judge = JudgeVersion.objects.get(name="sonnet")
        window.open(f"/judges/{judge.pk}/")
        press(window, "form[action$='/try/'] button")
        assert "json_schema" in window.page.content()
        window.open(f"/evaluations/new/run/?answers={answers.pk}")
        problems += page_problems(window, "new")
        press(window, "button[name=plan]")
        press(window, "button[name=start]")
        run = Run.objects.get()
        assert (window.path, run.state) == (f"/runs/{run.pk}/", Run.State.COMPLETED)
        problems += page_problems(window, "run")
    assert set(Reply.objects.filter(http_status__isnull=False).values_list("outcome", flat=True)) == {"ok"}
    assert all("AWS4-HMAC-SHA256" in request.headers["Authorization"] for request in judge_server.requests)
    assert problems == []
