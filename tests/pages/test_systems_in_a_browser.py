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
from tests.evaluation.systems.asking import questions
from tests.evaluation.systems.conftest import asked, service
from tests.factories import make_user
from tests.pages.browser import PHONE, WIDE, Visit, visit, wrong_with

__all__ = ["asked", "service"]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).parents[2]
QUESTIONS = 2
KINDS = {
    "http": ("en", WIDE, {"address": "{origin}/ask", "reply__model": "model"}),
    "command": ("ko", PHONE, {"command": "toy"}),
    "chat": ("en", PHONE, {"base_url": "{origin}/v1", "model": "toy-1"}),
    "callable": ("ko", WIDE, {"function": "toy"}),
}


@pytest.fixture
def allowed(asked: RagService, settings: Any, tmp_path: Path) -> RagService:
    """What the operator lets systems reach; workers run within the site."""
    program = tmp_path / "toy"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m examples.rag_command "$@"\n')
    program.chmod(0o755)
    settings.CONCORD_SYSTEM_COMMANDS = {"toy": shlex.split(f"{program} ask {{query}} --top-k {{k}}")}
    settings.CONCORD_SYSTEM_CALLABLES = {"toy": "examples.retrieval:answer"}
    settings.CONCORD_DISPATCHER = "local"
    return asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_lead_makes_a_system_tries_a_question_and_sees_its_answers(
    allowed: RagService, browser: Any, live_server: Any, kind: str
) -> None:
    questioned = questions(QUESTIONS)
    lead = make_user(Role.LEAD, questioned.project)
    language, size, given = KINDS[kind]
    wrong: list[str] = []

    def press(window: Visit, selector: str) -> None:
        with window.page.expect_navigation():
            window.page.locator(selector).first.click()
        window.settle()

    with visit(browser, live_server.url, lead, language=language, size=size) as window:
        page = window.page
        window.open("/evaluations/new/")
        press(window, "main a[href='/admin/evaluation/systemversion/add/']")
        if kind != "http":  # whose form comes first
            press(window, f"main a[href='?connector={kind}']")
        page.select_option("[name=project]", str(questioned.project_id))
        page.fill("[name=system_name]", "my-rag")
        for name, value in given.items():
            page.fill(f"[name={name}]", value.format(origin=allowed.origin))
        press(window, "[name=_save]")

        window.open("/evaluations/new/")
        page.fill("#ask_k", "2")
        press(window, "button[formaction='/evaluations/try/']")
        page.fill("[name=question]", "How long is <annual> leave?")
        press(window, "main form button.primary")
        shown = page.locator("section[aria-labelledby=answer] pre").all()
        request, reply, mapping = (one.inner_text() for one in shown)
        assert "How long is <annual> leave?" in request
        assert reply
        read = json.loads(mapping)
        assert read["answer"]
        assert len(read["contexts"] or ()) == (0 if kind == "chat" else 2)
        assert not AnswerSet.objects.exists()
        wrong += wrong_with(window, f"{kind}: tried")

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
    assert not wrong, "\n".join(wrong)
