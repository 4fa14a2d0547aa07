"""From an empty project to a run that experts reviewed, in a browser: no command, no REST."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.core.roles import Role
from evaluation.judges.shipped import save_judge
from evaluation.models import AnswerSet, Endpoint, Project, Reply, Run
from evaluation.models.run_spec import RunSpec
from evaluation.runs.planning import Plan, plan_run
from review.models import Rating
from tests.factories import make_project, make_user
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import LONG_VIEWS, READ_MS, VIEW_IDS, Visit, visit, wrong_with

__all__ = ["judge_server"]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
QUESTIONS = 4


@pytest.fixture
def project(settings: Any, judge_server: JudgeServer) -> Project:
    """A project with a judge and without anything else."""
    settings.CONCORD_DISPATCHER = "local"
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.base_url.removesuffix("/v1")]
    project = make_project()
    endpoint = Endpoint.objects.create(name="llm", base_url=judge_server.base_url)
    save_judge(project, "gpt", endpoint, model="m", language="en")
    return project


def about(plan: Plan) -> dict[str, int]:
    """Calls by rubric."""
    return {one.rubric.split()[0]: one.calls for one in plan.paid if one.calls}


def files(folder: Path) -> tuple[str, str]:
    asked, said = folder / "faq.jsonl", folder / "answers.jsonl"
    rows = [
        {"id": f"q{n}", "question": f"How long is leave {n}?", "category": "leave", "reference": f"{n + 1} days"}
        for n in range(QUESTIONS)
    ]
    asked.write_text("\n".join(map(json.dumps, rows)))
    answers = [
        {"question_id": f"q{n}", "answer": f"Leave {n} is {n + 1} days.", "contexts": [f"Leave {n}: {n + 1} days."]}
        for n in range(QUESTIONS)
    ]
    said.write_text("\n".join(map(json.dumps, answers)))
    return str(asked), str(said)


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_a_lead_gets_from_nothing_to_a_reviewed_run(
    project: Project, browser: Any, live_server: Any, tmp_path: Path, language: str, size: tuple[int, int]
) -> None:
    questions, answers = files(tmp_path)
    lead, expert = make_user(Role.LEAD, project), make_user(Role.REVIEWER, project)
    wrong: list[str] = []

    def look(window: Visit, name: str) -> None:
        wrong.extend(wrong_with(window, name))

    def press(window: Visit, selector: str) -> None:
        with window.page.expect_navigation():
            window.page.locator(selector).first.click()
        window.settle()

    with visit(browser, live_server.url, lead, language=language, size=size) as window:
        window.open("/")
        look(window, "1-empty")
        press(window, "a[href='/question-sets/upload/']")
        window.page.set_input_files("input[name=file]", questions)
        press(window, "main form button.primary")
        look(window, "2-questions")
        press(window, "form[action$='/confirm/'] button.primary")
        look(window, "3-question-set")
        press(window, "a[href*='/evaluations/new/']")
        window.page.set_input_files("input[name=file]", answers)
        window.page.fill("input[name=system]", "my-rag")
        look(window, "4-new")
        press(window, "form[enctype] button.primary")
        assert not AnswerSet.objects.exists()
        look(window, "5-preview")
        press(window, "form[action$='/confirm/'] button.primary")
        look(window, "6-measure")
        press(window, "button[name=plan]")
        look(window, "7-plan")
        assert not Run.objects.filter(judges__isnull=False).exists()
        wanted = RunSpec(judge="gpt", use_cache=False)
        told = about(plan_run(AnswerSet.objects.get(), wanted, None))
        press(window, "button[name=start]")
        run = Run.objects.latest("pk")
        assert (window.path, run.state) == (f"/runs/{run.pk}/", Run.State.COMPLETED)
        real = Reply.objects.filter(attempt__unit__run_judge__judge_version__name="gpt", outcome="ok")
        # An answer takes one call for its quality, two for its claims and two for what its reference states.
        assert told == {"answer_quality": QUESTIONS, "claims": 2 * QUESTIONS, "statements": 2 * QUESTIONS}
        again = plan_run(run.answer_set, wanted, None)
        assert (about(again), sum(one.calls for one in again.paid)) == (told, real.count())
        look(window, "8-run")
        press(window, "a[href*='/queues/new/'], a[href*='queue'][href*='run=']")
        look(window, "9-queue")
        window.page.locator("details:has(input[name=metrics]) > summary").click()
        for box in window.page.locator("input[name=metrics]").all():
            box.set_checked(box.get_attribute("value") in {"correctness", "completeness"})
        window.pass_time(600)  # the preview follows
        window.settle()
        press(window, "#queue-form button.primary")
    with visit(browser, live_server.url, expert, language=language, size=size) as window:
        window.open("/")
        press(window, "main a.button.primary")
        look(window, "10-card")
        for _ in range(60):
            if not window.page.locator("#rating, #reveal").count():
                break
            if window.page.locator("#reveal").count():
                window.pass_time(READ_MS)
                window.follow("Enter")
                continue
            here = window.path
            for _ in range(window.page.locator("fieldset[data-metric]").count()):
                window.page.keyboard.press("1")
            window.page.keyboard.press("Enter")
            window.wait_to_leave(here, or_show="#reveal")
    with visit(browser, live_server.url, lead, language=language, size=size) as window:
        window.open(f"/runs/{run.pk}/")
        look(window, "11-reviewed")
    assert Rating.objects.values("assignment__item").distinct().count() == QUESTIONS
    assert wrong == []
