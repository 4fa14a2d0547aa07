"""From a disagreement to a version that proved itself, a licensed run and a comparison, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.judges.shipped import profile_row, save_judge
from evaluation.judging.draft_checks import rubric_yaml
from evaluation.models import Endpoint, JudgeVersion, RubricVersion, Run
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import start
from review.calibration import anchors, holdout_tests
from review.calibration.approvals import run_approvals
from review.models import AnchorCheck, GoldSet, HoldoutTest
from tests.factories import make_user
from tests.jobs import work_on_job
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import LONG_VIEWS, VIEW_IDS, open_window, page_problems
from tests.review.calibration.labelled import rated_run, rubric_with_instruction
from tests.review.calibration.test_whole_path import biased_judge

__all__ = ["judge_server"]

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def answer_count() -> int:
    """Number of rated answers, enough to accept a prompt."""
    return 240


@pytest.fixture
def judge(settings: Any, judge_server: JudgeServer, answer_count: int) -> JudgeVersion:
    """A judge that is two levels off until its prompt says how to read, and answers that two experts rated."""
    settings.CONCORD_DISPATCHER = "local"
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    judge_server.behave(biased_judge())
    run = rated_run(answer_count)
    endpoint = Endpoint.objects.create(name="llm", base_url=judge_server.base_url)
    return save_judge(run.project, "gpt", endpoint, model="m", language="en")


def run_judge(run: Run, judge: JudgeVersion) -> Run:
    """A run of the same answers by what the judge works by now."""
    judged_run = prepare_run(run.answer_set, profile_row(run.project, "graphrag"), judge=judge)
    start(judged_run, None)
    drain(judged_run.pk, seconds=120)
    return judged_run


def work_on_all_jobs() -> None:
    """Have every run judged to its end."""
    for run in Run.objects.filter(state=Run.State.RUNNING):
        drain(run.pk, seconds=120)


@pytest.mark.parametrize("answer_count", [24])
def test_lead_drafts_a_prompt_from_disagreements(judge: JudgeVersion, browser: Any, live_server: Any) -> None:
    lead = make_user(Role.LEAD, judge.project)
    with open_window(browser, live_server.url, lead) as window:
        window.open("/calibration/")
        window.page.fill("form[action$='/freeze/'] input[name=name]", "gold")
        window.click_through("form[action$='/freeze/'] button")
        workbench = reverse("calibration", args=[GoldSet.objects.get().pk])
        assert window.path == workbench
        window.click_through(f"form[action='{workbench}run/'] button")
        work_on_all_jobs()
        window.open(workbench)
        assert page_problems(window, "disagreements") == []
        window.page.keyboard.press("j")
        window.page.keyboard.press("e")
        assert window.page.evaluate("document.activeElement.id") == "text"
        window.page.fill("#text", rubric_yaml(rubric_with_instruction("SKILLED")))
        window.page.fill("#note", "It read two levels too far.")
        window.click_through(f"form[action='{workbench}draft/'] button.primary")
    assert RubricVersion.objects.get(project=judge.project).note == "It read two levels too far."


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_lead_tests_and_activates_a_better_prompt(
    judge: JudgeVersion, browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    rated_run = Run.objects.get()
    run_before = run_judge(rated_run, judge)
    lead = make_user(Role.LEAD, rated_run.project)
    problems: list[str] = []

    def check_page(name: str) -> None:
        problems.extend(page_problems(window, name))

    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        window.open("/calibration/")
        check_page("1-empty")
        window.page.fill("form[action$='/freeze/'] input[name=name]", "gold")
        window.click_through("form[action$='/freeze/'] button")
        gold = GoldSet.objects.get()
        workbench_path = window.path
        assert workbench_path == reverse("calibration", args=[gold.pk])
        window.click_through(
            f"form[action='{workbench_path}run/'] button"
        )  # the prompt in force, on examples and validation
        work_on_all_jobs()
        window.open(workbench_path)
        check_page("2-disagreements")
        window.page.keyboard.press("j")
        window.page.keyboard.press("e")
        assert window.page.evaluate("document.activeElement.id") == "text"
        window.page.fill("#text", rubric_yaml(rubric_with_instruction("SKILLED")))
        window.page.fill("#note", "It read two levels too far.")
        window.click_through(f"form[action='{workbench_path}draft/'] button.primary")
        window.click_through(f"form[action='{workbench_path}run/'] button")
        work_on_all_jobs()
        candidate_path = window.path
        window.open(candidate_path)
        check_page("3-draft")
        window.click_through(f"form[action='{workbench_path}propose/'] button")
        window.click_through(f"form[action='{workbench_path}holdout-test/'] button")
        holdout_test = HoldoutTest.objects.get()
        if not hasattr(holdout_test, "result"):  # nobody works here but this test
            work_on_job(holdout_tests.advance_holdout_test, holdout_test.pk)
        window.open(candidate_path)
        check_page("4-accepted")
        assert window.page.locator("#proof ~ div b, section[aria-labelledby=proof] b").inner_text() == (
            "accepted" if language == "en" else "승인됨"
        )
        for _ in range(2):
            window.click_through(f"form[action='{workbench_path}check/'] button")
            for check in AnchorCheck.objects.filter(ended_at=None):
                work_on_job(anchors.check_anchors, check.pk)
        window.open(candidate_path)
        check_page("5-watched")
        run_after = run_judge(rated_run, judge)
        assert [approval.state for approval in run_approvals(run_after) if approval.metric == "correctness"] == [
            "licensed"
        ]
        window.open(reverse("run", args=[run_after.pk]))
        check_page("6-licensed")
        window.open(f"{reverse('run-compare')}?runs={run_before.pk},{run_after.pk}")
        check_page("7-compared")
        window.open(reverse("judge", args=[judge.pk]))
        check_page("8-card")
    assert problems == []
