"""Pages that no address alone leads to, in a real browser: refusals and failures, the judge shown where it differs, one
decision for many before it counts, criteria in the back office, and the report as a file."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.urls import reverse
from django.utils.translation import override

from evaluation.models import CriterionVersion, User
from evaluation.runs.exports import count_export
from review.agreement.pages import render_agreement_plots
from review.models import Rating
from review.ratings import views as ratings_views
from review.reports import views as reports_views
from review.reports.exports import export_to
from tests.evaluation.criteria.written import drafted
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run
from tests.pages.browser import FIRST_VIEW_FAST, READ_MS, VIEW_IDS, VIEWS, BrowserPage, open_window, page_problems
from tests.pages.tours import judged_runs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
both_views = pytest.mark.parametrize(("language", "size"), VIEWS, ids=VIEW_IDS)


def refused_page_problems(window: BrowserPage, status: int, name: str) -> list[str]:
    """Return the problems of an open error page, except the browser's note of its status."""
    status_notes = [complaint for complaint in window.complaints if f"status of {status}" in complaint]
    assert len(status_notes) == 1, (name, window.complaints)
    window.complaints.remove(status_notes[0])
    assert window.page.locator("h1").count() == 1
    return page_problems(window, name)


@pytest.mark.slow
@both_views
def test_error_pages_have_no_problems(
    demo: dict[str, User],
    browser: Any,
    live_server: Any,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    language: str,
    size: tuple[int, int],
) -> None:
    def raise_error(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    def raise_database_full(*_: object) -> None:
        why = sqlite3.OperationalError("database or disk is full")
        why.sqlite_errorname = "SQLITE_FULL"
        raise OperationalError from why

    settings.DEBUG = False
    settings.CONCORD_EXPORTS_PER_HOUR = 1
    _, run = judged_runs()
    count_export(demo["lead"])
    monkeypatch.setattr(reports_views, "load_open_work", raise_error)
    monkeypatch.setattr(ratings_views, "signed_in_user", raise_database_full)
    pages = {
        ("lead", "/nothing/here/"): 404,
        ("lead", reverse("run-report", args=[run.pk])): 429,
        ("lead", reverse("home")): 500,
        ("lead", reverse("review-keys")): 503,
        ("reviewer1", reverse("run", args=[run.pk])): 403,
    }
    problems: list[str] = []
    for (username, path), status in pages.items():
        with open_window(browser, live_server.url, demo[username], language=language, size=size) as window:
            assert window.open(path) == status
            problems += refused_page_problems(window, status, f"{status}")
            assert window.page.get_attribute("html", "lang") == language
    with open_window(browser, live_server.url, None, language=language, size=size) as window:
        window.open("/login/")
        window.page.context.clear_cookies()
        window.page.context.add_cookies([{"name": "django_language", "value": language, "url": live_server.url}])
        with window.page.expect_navigation():
            window.page.evaluate("document.querySelector('main form').submit()")
        problems += refused_page_problems(window, 403, "403 of a form")
    assert problems == []


@pytest.mark.parametrize(("language", "size"), FIRST_VIEW_FAST, ids=VIEW_IDS)
@pytest.mark.slow
def test_change_towards_differing_judge_needs_a_reason(
    browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    question_set = make_question_set(make_project(), 2)
    run = make_scored_run(
        make_answer_set(question_set), values=[1], metrics=["correctness", "faithfulness"], reason="Because."
    )
    queue = make_queue(run, 1, metrics=["correctness", "faithfulness"], reveal="always")
    reviewer = queue.members.get().reviewer
    problems: list[str] = []
    with open_window(browser, live_server.url, reviewer, language=language, size=size) as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        for key in ("5", "1", "Enter"):
            window.page.keyboard.press(key)
        window.wait_to_leave(item_path, or_show="#reveal")
        problems += page_problems(window, "the judge differs")
        window.page.locator("#reveal details.change summary").first.click()
        window.page.check('#reveal input[name="value:correctness"][value="2"]', force=True)
        problems += page_problems(window, "changed by three levels")
        window.page.evaluate("document.querySelectorAll('#reveal [required]').forEach(one => one.required = false)")
        with window.page.expect_navigation():
            window.page.click("[data-change]")
        window.settle()
        assert window.page.locator("#reveal [role=alert]").is_visible()
        problems += refused_page_problems(window, 409, "without a reason")
        window.page.locator('#reveal input[name="reason:correctness"]').first.check(force=True)
        window.page.evaluate("document.activeElement.blur()")
        window.pass_time(READ_MS)
        window.follow("Enter")
    final = Rating.objects.get(phase="final", metric__name="correctness")
    assert (final.value, bool(final.reason_code)) == (2, True)  # the change that was refused, not the first rating
    assert problems == []


@pytest.mark.slow
@both_views
def test_bulk_decision_is_previewed(
    demo: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    _, run = judged_runs()
    problems: list[str] = []
    with open_window(browser, live_server.url, demo["lead"], language=language, size=size) as window:
        window.open(f"{reverse('run-answers', args=[run.pk])}?metric=correctness")
        window.page.evaluate(
            """() => { const form = document.querySelector("form[action$='/override/']");
            form.querySelectorAll('details').forEach(one => one.open = true);
            form.closest('details')?.setAttribute('open', ''); }"""
        )
        form = window.page.locator("form[action$='/override/']")
        form.locator('input[name="value:correctness"][value="2"]').check(force=True)
        form.locator('[name="reason"]').fill("Checked against the regulation.")
        problems += page_problems(window, "deciding")
        with window.page.expect_navigation():
            form.locator("button:not([name=confirm])").last.click()
        window.settle()
        assert window.page.locator("button[name=confirm]").is_visible()
        problems += page_problems(window, "the preview")
    assert problems == []


@pytest.mark.slow
@both_views
def test_criterion_pages_have_no_problems(
    demo: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    _, run = judged_runs()
    version = drafted(run.project)
    version_address = reverse("admin:evaluation_criterionversion_change", args=[version.pk])
    problems: list[str] = []
    with open_window(browser, live_server.url, demo["boss"], language=language, size=size) as window:
        for path in ("changelist", "add"):
            assert window.open(reverse(f"admin:evaluation_criterionversion_{path}")) == 200
            problems += page_problems(window, path)
        assert window.open(version_address) == 200
        problems += page_problems(window, "a criterion")
        for step in ("prompt", "trial"):
            with window.page.expect_navigation():
                window.page.click(f"button[name=do][value={step}]")
            window.settle()
            assert window.page.locator(f"#{step}").is_visible()
            problems += page_problems(window, step)
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False], ids=["script", "none"])
def test_criterion_levels_are_separate_fields(
    demo: dict[str, User], browser: Any, live_server: Any, scripts: bool
) -> None:
    with open_window(browser, live_server.url, demo["boss"], scripts=scripts) as window:
        page = window.page
        window.open(reverse("admin:evaluation_criterionversion_add"))
        rows, remove = page.locator("[data-level]:visible"), page.locator("[data-remove]:visible")
        assert (rows.count(), remove.count()) == ((2, 0) if scripts else (11, 0))
        for name, content in {"name": "tone", "title_ko": "말투", "title_en": "Tone", "question_en": "Polite?"}.items():
            page.fill(f"[name={name}]", content)
        for index, text in enumerate(["Rude", "Cold"]):
            page.fill(f"[name=levels-{index}-key]", str(index + 1))
            page.fill(f"[name=levels-{index}-en]", text)
        if scripts:  # the third row, the fourth, and away with the third, all by keys
            page.focus("[data-add]")
            page.keyboard.press("Enter")
            page.keyboard.press("Tab")
            page.keyboard.type("Dull")
            page.focus("[data-add]")
            page.keyboard.press("Space")
            page.keyboard.press("Tab")
            page.keyboard.type("Polite")
            assert (rows.count(), page.input_value("[name=levels-3-key]")) == (4, "4")
            page.focus("[data-level]:nth-child(3) [data-remove]")
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.name") == "levels-2-key"
            page.keyboard.press("ControlOrMeta+A")
            page.keyboard.type("3")
            assert rows.count() == 3
        else:
            page.fill("[name=levels-7-key]", "3")  # rows between may stay empty
            page.fill("[name=levels-7-en]", "Polite")
        with page.expect_navigation():
            page.click("[name=_save]")
        window.settle()
        assert window.complaints == []
    spec = CriterionVersion.objects.get(criterion__name="tone").read()
    assert [(level.value, level.text) for level in spec.texts("en").levels] == [(1, "Rude"), (2, "Cold"), (3, "Polite")]
    assert spec.languages == ("en",)


@pytest.mark.slow
@both_views
def test_html_report_file_has_no_problems(
    demo: dict[str, User], browser: Any, live_server: Any, tmp_path: Path, language: str, size: tuple[int, int]
) -> None:
    _, run = judged_runs()
    file = tmp_path / "report.html"
    with override(language):
        export_to(run, file, pictures=render_agreement_plots)
    with open_window(browser, live_server.url, None, language=language, size=size) as window:
        window.page.goto(file.as_uri())
        assert window.page.locator("svg").count() > 3
        assert page_problems(window, "the report") == []
