"""From a disagreement to a version that proved itself, a approved run and a comparison, in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.judges.shipped import profile_row, save_judge
from evaluation.models import Endpoint, JudgeVersion, RubricVersion, Run
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker import dispatch
from evaluation.worker.lifecycle import start
from review.calibration import anchors, holdout_tests
from review.calibration.approvals import run_approvals
from review.calibration.versions import freeze
from review.models import AnchorCheck, GoldSet, HoldoutTest
from tests.factories import make_user
from tests.jobs import work_on_job
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import LONG_VIEWS, VIEW_IDS, BrowserPage, open_window, page_problems
from tests.review.calibration.labelled import rated_run, rubric_with_instruction
from tests.review.calibration.test_whole_path import biased_judge

__all__ = ["judge_server"]

MAX_CLICKS = 12
POLL_MS = 3000

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
    for run in Run.objects.filter(state__in=[Run.State.PREFLIGHT, Run.State.RUNNING]):
        drain(run.pk, seconds=120)


class Walk:
    """A window with the clicks that lead from rated answers to an accepted prompt."""

    def __init__(self, window: BrowserPage) -> None:
        self.window, self.clicks = window, 0

    def click(self, selector: str) -> None:
        """Click a control that leads to another page."""
        self.clicks += 1
        self.window.click_through(selector)

    def press(self, selector: str) -> None:
        """Click a control that stays on the page."""
        self.clicks += 1
        self.window.page.locator(selector).first.click()

    def wait_for_workers(self, appears: str) -> None:
        """Work on all jobs and let the open page notice it."""
        work_on_all_jobs()
        for _ in range(2):
            self.window.pass_time(POLL_MS)
            self.window.settle()
        self.window.page.wait_for_selector(appears)


@pytest.mark.parametrize("answer_count", [160])
@pytest.mark.slow
def test_page_says_what_is_missing_before_and_after_freezing(
    judge: JudgeVersion, browser: Any, live_server: Any
) -> None:
    lead = make_user(Role.LEAD, judge.project)
    with open_window(browser, live_server.url, lead) as window:
        window.open("/calibration/")
        needs = "Needs 200 rated answers in 60 question groups. Available: 160 in 160."
        assert needs in window.page.inner_text("#needs")
        window.click_through("form[action$='/freeze/'] button")
        assert needs in window.page.inner_text("#labels")
        assert needs in window.page.inner_text("#steps li:nth-child(1)")
        for step in (4, 5):
            assert "Save a draft first." in window.page.inner_text(f"#steps li:nth-child({step})")
        assert window.page.locator("#accept button").is_disabled()
        window.page.keyboard.press("e")
        window.page.keyboard.type("SKILLED ")
        window.click_through("#edit button.primary")
        assert "has 80 in 80." in window.page.inner_text("#accept")
        assert window.page.locator("#accept form[action$='/holdout-test/'] button").is_disabled()
        assert " 0 groups" not in window.page.inner_text("main")


@pytest.mark.slow
@pytest.mark.parametrize("answer_count", [24])
def test_page_updates_itself_and_keeps_unsaved_text(
    judge: JudgeVersion, browser: Any, live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "enqueue_run", lambda run_id: None)
    lead = make_user(Role.LEAD, judge.project)
    freeze(Run.objects.get(), "gold", by=None)
    with open_window(browser, live_server.url, lead) as window:
        window.open(reverse("calibration", args=[GoldSet.objects.get().pk]))
        window.click_through("#differ form[action$='/run/'] button")
        run = Run.objects.latest("pk")
        assert f"#{run.pk}" in window.page.inner_text("#pending")
        window.page.fill("#id_instruction", "Not saved yet")
        window.pass_time(POLL_MS)
        window.settle()
        assert window.page.locator("#pending").count() == 1
        work_on_all_jobs()
        window.pass_time(POLL_MS)
        window.settle()
        window.page.wait_for_selector(".difference")
        assert window.page.locator("#pending").count() == 0
        assert "done" in window.page.inner_text("#steps li:nth-child(2)")
        assert window.page.input_value("#id_instruction") == "Not saved yet"
        window.page.keyboard.press("Escape")
        window.page.keyboard.press("j")
        assert window.page.locator(".difference[open]").count() == 1


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_lead_tests_and_activates_a_better_prompt(
    judge: JudgeVersion, browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    rated_run = Run.objects.get()
    lead = make_user(Role.LEAD, rated_run.project)
    problems: list[str] = []

    def check_page(name: str) -> None:
        problems.extend(page_problems(window, name))

    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        walk, page = Walk(window), window.page
        window.open("/")
        walk.click("nav a[href='/calibration/']")
        check_page("1-freeze")
        walk.click("form[action$='/freeze/'] button")
        workbench_path = window.path
        assert workbench_path == reverse("calibration", args=[GoldSet.objects.get().pk])
        walk.click("#differ form[action$='/run/'] button")
        walk.wait_for_workers(".difference")
        run_before = run_judge(rated_run, judge)
        check_page("2-disagreements")
        page.keyboard.press("j")
        assert page.locator(".difference[open]").count() == 1
        check_page("3-disagreement")
        page.keyboard.press("k")
        walk.press("#id_instruction")
        page.fill("#id_instruction", "SKILLED")
        page.fill("#id_note", "It read two levels too far.")
        walk.click("#edit button.primary")
        version = RubricVersion.objects.get(project=judge.project)
        assert version.note == "It read two levels too far."
        assert version.rubric == rubric_with_instruction("SKILLED").model_copy(
            update={"version": version.rubric.version}
        )
        check_page("4-draft")
        walk.click("#compare form[action$='/run/'] button")
        walk.wait_for_workers("#compare .big")
        assert "→ 100%" in page.inner_text("#compare .big")
        check_page("5-compared")
        walk.click("#accept form[action$='/holdout-test/'] button")
        holdout_test = HoldoutTest.objects.get()
        if not hasattr(holdout_test, "result"):  # nobody works here but this test
            work_on_job(holdout_tests.advance_holdout_test, holdout_test.pk)
        walk.wait_for_workers("#accept .big")
        assert page.inner_text("#accept .big") == ("accepted" if language == "en" else "승인됨")
        print(f"{walk.clicks} clicks from rated answers to an accepted prompt")
        assert walk.clicks <= MAX_CLICKS
        candidate_path = window.path.partition("#")[0]
        window.open(candidate_path)
        check_page("6-accepted")
        assert page.locator("#steps .done").count() == 5
        page.locator("#accept details:has(form[action$='/check/'])").evaluate("fold => { fold.open = true; }")
        for _ in range(2):
            window.click_through(f"form[action='{workbench_path}check/'] button")
            for check in AnchorCheck.objects.filter(ended_at=None):
                work_on_job(anchors.check_anchors, check.pk)
            page.locator("#accept details:has(form[action$='/check/'])").evaluate("fold => { fold.open = true; }")
        window.open("/")
        window.open(candidate_path)
        check_page("7-watched")
        run_after = run_judge(rated_run, judge)
        assert [approval.state for approval in run_approvals(run_after) if approval.metric == "correctness"] == [
            "approved"
        ]
        window.open(reverse("run", args=[run_after.pk]))
        check_page("8-approved")
        window.open(f"{reverse('run-compare')}?runs={run_before.pk},{run_after.pk}")
        check_page("9-compared")
        window.open(reverse("judge", args=[judge.pk]))
        check_page("10-card")
    assert problems == []
