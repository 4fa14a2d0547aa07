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
from tests.jobs import work
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.browser import LONG_VIEWS, VIEW_IDS, visit, wrong_with
from tests.review.calibration.labelled import rated_run, reworded
from tests.review.calibration.test_whole_path import biased

__all__ = ["judge_server"]

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def answers() -> int:
    """How many answers are rated: enough to prove a prompt."""
    return 240


@pytest.fixture
def judge(settings: Any, judge_server: JudgeServer, answers: int) -> JudgeVersion:
    """A judge who is two levels off until its prompt says how to read, and answers that two experts rated."""
    settings.CONCORD_DISPATCHER = "local"
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    judge_server.behave(biased())
    run = rated_run(answers)
    endpoint = Endpoint.objects.create(name="llm", base_url=judge_server.base_url)
    return save_judge(run.project, "gpt", endpoint, model="m", language="en")


def judged(run: Run, judge: JudgeVersion) -> Run:
    """A run of the same answers by what the judge works by now."""
    made = prepare_run(run.answer_set, profile_row(run.project, "graphrag"), judge=judge)
    start(made, None)
    drain(made.pk, seconds=120)
    return made


def drain_all() -> None:
    """Have every run judged to its end."""
    for run in Run.objects.filter(state=Run.State.RUNNING):
        drain(run.pk, seconds=120)


@pytest.mark.parametrize("answers", [24])
def test_a_lead_drafts_a_prompt_from_disagreements(judge: JudgeVersion, browser: Any, live_server: Any) -> None:
    lead = make_user(Role.LEAD, judge.project)
    with visit(browser, live_server.url, lead) as window:
        window.open("/calibration/")
        window.page.fill("form[action$='/freeze/'] input[name=name]", "gold")
        window.click_through("form[action$='/freeze/'] button")
        workbench = reverse("calibration", args=[GoldSet.objects.get().pk])
        assert window.path == workbench
        window.click_through(f"form[action='{workbench}run/'] button")
        drain_all()
        window.open(workbench)
        assert wrong_with(window, "disagreements") == []
        window.page.keyboard.press("j")
        window.page.keyboard.press("e")
        assert window.page.evaluate("document.activeElement.id") == "text"
        window.page.fill("#text", rubric_yaml(reworded("SKILLED")))
        window.page.fill("#note", "It read two levels too far.")
        window.click_through(f"form[action='{workbench}draft/'] button.primary")
    assert RubricVersion.objects.get(project=judge.project).note == "It read two levels too far."


@pytest.mark.parametrize(("language", "size"), LONG_VIEWS, ids=VIEW_IDS)
def test_a_lead_makes_a_judge_prove_a_better_prompt(
    judge: JudgeVersion, browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    rated = Run.objects.get()
    before = judged(rated, judge)
    lead = make_user(Role.LEAD, rated.project)
    wrong: list[str] = []

    def look(name: str) -> None:
        wrong.extend(wrong_with(window, name))

    with visit(browser, live_server.url, lead, language=language, size=size) as window:
        window.open("/calibration/")
        look("1-empty")
        window.page.fill("form[action$='/freeze/'] input[name=name]", "gold")
        window.click_through("form[action$='/freeze/'] button")
        gold = GoldSet.objects.get()
        at = window.path
        assert at == reverse("calibration", args=[gold.pk])
        window.click_through(f"form[action='{at}run/'] button")  # the prompt in force, on examples and validation
        drain_all()
        window.open(at)
        look("2-disagreements")
        window.page.keyboard.press("j")
        window.page.keyboard.press("e")
        assert window.page.evaluate("document.activeElement.id") == "text"
        window.page.fill("#text", rubric_yaml(reworded("SKILLED")))
        window.page.fill("#note", "It read two levels too far.")
        window.click_through(f"form[action='{at}draft/'] button.primary")
        window.click_through(f"form[action='{at}run/'] button")
        drain_all()
        here = window.path
        window.open(here)
        look("3-draft")
        window.click_through(f"form[action='{at}offer/'] button")
        window.click_through(f"form[action='{at}look/'] button")
        taken = HoldoutTest.objects.get()
        if not hasattr(taken, "result"):  # nobody works here but this test
            work(holdout_tests.advance_holdout_test, taken.pk)
        window.open(here)
        look("4-accepted")
        assert window.page.locator("#proof ~ div b, section[aria-labelledby=proof] b").inner_text() == (
            "accepted" if language == "en" else "승인됨"
        )
        for _ in range(2):
            window.click_through(f"form[action='{at}check/'] button")
            for check in AnchorCheck.objects.filter(ended_at=None):
                work(anchors.check_anchors, check.pk)
        window.open(here)
        look("5-watched")
        after = judged(rated, judge)
        assert [one.state for one in run_approvals(after) if one.metric == "correctness"] == ["licensed"]
        window.open(reverse("run", args=[after.pk]))
        look("6-licensed")
        window.open(f"{reverse('run-compare')}?runs={before.pk},{after.pk}")
        look("7-compared")
        window.open(reverse("judge", args=[judge.pk]))
        look("8-card")
    assert wrong == []
