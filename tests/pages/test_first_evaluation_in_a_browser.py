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
from tests.pages.browser import LONG_VIEWS, READ_MS, VIEW_IDS, BrowserPage, open_window, page_problems

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


def paid_calls(plan: Plan) -> dict[str, int]:
    """Calls by rubric."""
    return {paid.rubric.split()[0]: paid.calls for paid in plan.paid if paid.calls}


def files(folder: Path) -> tuple[str, str]:
    questions_path, answers_path = folder / "faq.jsonl", folder / "answers.jsonl"
    rows = [
        {"id": f"q{n}", "question": f"How long is leave {n}?", "category": "leave", "reference": f"{n + 1} days"}
        for n in range(QUESTIONS)
    ]
    questions_path.write_text("\n".join(map(json.dumps, rows)))
    answers = [
        {"question_id": f"q{n}", "answer": f"Leave {n} is {n + 1} days.", "contexts": [f"Leave {n}: {n + 1} days."]}
        for n in range(QUESTIONS)
    ]
    answers_path.write_text("\n".join(map(json.dumps, answers)))
    return str(questions_path), str(answers_path)


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_lead_gets_from_empty_project_to_reviewed_run(
    project: Project, browser: Any, live_server: Any, tmp_path: Path, language: str, size: tuple[int, int]
) -> None:
    questions, answers = files(tmp_path)
    lead, expert = make_user(Role.LEAD, project), make_user(Role.REVIEWER, project)
    problems: list[str] = []

    def check_page(window: BrowserPage, name: str) -> None:
        problems.extend(page_problems(window, name))

    def press(window: BrowserPage, selector: str) -> None:
        with window.page.expect_navigation():
            window.page.locator(selector).first.click()
        window.settle()

    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        window.open("/")
        check_page(window, "1-empty")
        press(window, "a[href='/question-sets/upload/']")
        window.page.set_input_files("input[name=file]", questions)
        press(window, "main form button.primary")
        check_page(window, "2-questions")
        press(window, "form[action$='/confirm/'] button.primary")
        check_page(window, "3-question-set")
        press(window, "a[href*='/evaluations/new/']")
        window.page.set_input_files("input[name=file]", answers)
        window.page.fill("input[name=system]", "my-rag")
        check_page(window, "4-new")
        press(window, "form[enctype] button.primary")
        assert not AnswerSet.objects.exists()
        check_page(window, "5-preview")
        press(window, "form[action$='/confirm/'] button.primary")
        check_page(window, "6-measure")
        press(window, "button[name=plan]")
        check_page(window, "7-plan")
        assert not Run.objects.filter(judges__isnull=False).exists()
        run_spec = RunSpec(judge="gpt", use_cache=False)
        estimate = paid_calls(plan_run(AnswerSet.objects.get(), run_spec, None))
        press(window, "button[name=start]")
        run = Run.objects.latest("pk")
        assert (window.path, run.state) == (f"/runs/{run.pk}/", Run.State.COMPLETED)
        real = Reply.objects.filter(attempt__unit__run_judge__judge_version__name="gpt", outcome="ok")
        # An answer takes one call for its quality, two for its claims and two for what its reference states.
        assert estimate == {"answer_quality": QUESTIONS, "claims": 2 * QUESTIONS, "statements": 2 * QUESTIONS}
        repeated_plan = plan_run(run.answer_set, run_spec, None)
        assert (paid_calls(repeated_plan), sum(paid.calls for paid in repeated_plan.paid)) == (estimate, real.count())
        check_page(window, "8-run")
        press(window, "a[href*='/queues/new/'], a[href*='queue'][href*='run=']")
        check_page(window, "9-queue")
        window.page.locator("details:has(input[name=metrics]) > summary").click()
        for box in window.page.locator("input[name=metrics]").all():
            box.set_checked(box.get_attribute("value") in {"correctness", "completeness"})
        window.pass_time(600)  # the preview follows
        window.settle()
        press(window, "#queue-form button.primary")
    with open_window(browser, live_server.url, expert, language=language, size=size) as window:
        window.open("/")
        press(window, "main a.button.primary")
        check_page(window, "10-card")
        for _ in range(60):
            if not window.page.locator("#rating, #reveal").count():
                break
            if window.page.locator("#reveal").count():
                window.pass_time(READ_MS)
                window.follow("Enter")
                continue
            item_path = window.path
            for _ in range(window.page.locator("fieldset[data-metric]").count()):
                window.page.keyboard.press("1")
            window.page.keyboard.press("Enter")
            window.wait_to_leave(item_path, or_show="#reveal")
    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        window.open(f"/runs/{run.pk}/")
        check_page(window, "11-reviewed")
    assert Rating.objects.values("assignment__item").distinct().count() == QUESTIONS
    assert problems == []
