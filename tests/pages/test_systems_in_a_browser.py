"""Each kind of system that can be asked, made, tried and evaluated by a lead in a browser: no command, no REST."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluation.core.roles import Role
from evaluation.models import Answer, AnswerSet, Run
from examples.rag_service import RagService
from tests.evaluation.systems.asking import make_questions
from tests.evaluation.systems.conftest import rag_service, service
from tests.factories import make_user
from tests.pages.browser import DESKTOP, PHONE, BrowserPage, open_window, page_problems

__all__ = ["rag_service", "service"]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).parents[2]
QUESTIONS = 2
CONNECTOR_CASES = {
    "http": ("en", DESKTOP, {"address": "{origin}/ask", "reply__model": "model"}),
    "command": ("ko", PHONE, {"command": "toy"}),
    "chat": ("en", PHONE, {"base_url": "{origin}/v1", "model": "toy-1"}),
    "callable": ("ko", DESKTOP, {"function": "toy"}),
}


@pytest.fixture
def allowed_service(rag_service: RagService, settings: Any, tmp_path: Path) -> RagService:
    """Allow the service as a system; workers run within the site."""
    program = tmp_path / "toy"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m examples.rag_command "$@"\n')
    program.chmod(0o755)
    settings.CONCORD_SYSTEM_COMMANDS = {"toy": shlex.split(f"{program} ask {{query}} --top-k {{k}}")}
    settings.CONCORD_SYSTEM_CALLABLES = {"toy": "examples.retrieval:answer"}
    settings.CONCORD_DISPATCHER = "local"
    return rag_service


@pytest.mark.parametrize("kind", CONNECTOR_CASES)
def test_lead_adds_a_system_tries_a_question_and_collects_answers(
    allowed_service: RagService, browser: Any, live_server: Any, kind: str
) -> None:
    questioned = make_questions(QUESTIONS)
    lead = make_user(Role.LEAD, questioned.project)
    language, size, settings_text = CONNECTOR_CASES[kind]
    problems: list[str] = []

    def press(window: BrowserPage, selector: str) -> None:
        with window.page.expect_navigation():
            window.page.locator(selector).first.click()
        window.settle()

    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        page = window.page
        window.open("/evaluations/new/")
        press(window, "main a[href='/admin/evaluation/systemversion/add/']")
        if kind != "http":  # whose form comes first
            press(window, f"main a[href='?connector={kind}']")
        page.select_option("[name=project]", str(questioned.project_id))
        page.fill("[name=system_name]", "my-rag")
        for name, value in settings_text.items():
            page.fill(f"[name={name}]", value.format(origin=allowed_service.origin))
        press(window, "[name=_save]")

        window.open("/evaluations/new/")
        page.fill("#ask_k", "2")
        press(window, "button[formaction='/evaluations/try/']")
        page.fill("[name=question]", "How long is <annual> leave?")
        press(window, "main form button.primary")
        outputs = page.locator("section[aria-labelledby=answer] pre").all()
        request, reply, mapping = (output.inner_text() for output in outputs)
        assert "How long is <annual> leave?" in request
        assert reply
        mapped_reply = json.loads(mapping)
        assert mapped_reply["answer"]
        assert len(mapped_reply["contexts"] or ()) == (0 if kind == "chat" else 2)
        assert not AnswerSet.objects.exists()
        problems += page_problems(window, f"{kind}: tried")

        press(window, "main .trail a")
        page.fill("#ask_k", "2")
        press(window, "form[action='/evaluations/new/run/'] button:not([formaction])")
        page.select_option("[name=judge]", "-")
        press(window, "button[name=plan]")
        press(window, "button[name=start]")
        run = Run.objects.get()
        assert (window.path, run.state) == (f"/runs/{run.pk}/", Run.State.COMPLETED)
        press(window, f"main a[href^='/runs/{run.pk}/answers/']")
        press(window, "main tbody a[href^='/answers/']")
        answers = Answer.objects.filter(status="ok", answer_set__system_version__adapter=kind)
        assert answers.count() == QUESTIONS
        assert any(answer.text in page.locator("main").inner_text() for answer in answers)
    assert not problems, "\n".join(problems)
