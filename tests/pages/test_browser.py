"""Every page in a real browser: no console error, nothing stopped by the content security policy, no accessibility
violation, nothing wider than the screen; in both languages, wide and light, and dark on a phone. ``make test`` visits
every page in one view."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.urls import reverse

from evaluation.models import Run, User
from review.models import Draft, Rating, ReviewQueue
from tests.examples import all_examples_enabled
from tests.pages.browser import (
    FIRST_VIEW_FAST,
    PHONE,
    READ_MS,
    SECOND_VIEW_FAST,
    VIEW_IDS,
    BrowserPage,
    open_window,
    page_problems,
)
from tests.pages.tours import pages_of_a_lead, pages_of_a_reviewer, uncovered_pages

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_tours_cover_every_page(toured: dict[str, User]) -> None:
    paths = ["/login/", *pages_of_a_lead(), *pages_of_a_reviewer(toured["reviewer1"])]
    assert uncovered_pages(paths, toured["lead"]) == []


def check_pages(window: BrowserPage, paths: list[str]) -> None:
    """Open each address without errors in the console and expect nothing wrong with its page: axe and zoom take a
    second a page, and the fast tests try them on every fourth."""
    problems: list[str] = []
    for number, path in enumerate(paths):
        assert window.open(path) == 200, path
        if all_examples_enabled() or number % 4 == 0:
            problems += page_problems(window, path)
    assert problems == []
    assert window.complaints == []


# A sixth of the pages each, which workers share better than one long test.
@pytest.mark.parametrize("sixth", range(6))
@pytest.mark.parametrize(("language", "size"), FIRST_VIEW_FAST, ids=VIEW_IDS)
def test_pages_of_a_lead_have_no_problems(
    toured: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int], sixth: int
) -> None:
    with open_window(browser, live_server.url, toured["lead"], language=language, size=size) as window:
        check_pages(window, pages_of_a_lead()[sixth::6])


@pytest.mark.parametrize(("language", "size"), SECOND_VIEW_FAST, ids=VIEW_IDS)
def test_pages_of_a_reviewer_have_no_problems(
    toured: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    with open_window(browser, live_server.url, toured["reviewer1"], language=language, size=size) as window:
        check_pages(window, pages_of_a_reviewer(toured["reviewer1"]))


@pytest.mark.parametrize(("language", "size"), FIRST_VIEW_FAST, ids=VIEW_IDS)
def test_login_page_has_no_problems(
    demo: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    with open_window(browser, live_server.url, None, language=language, size=size) as window:
        check_pages(window, ["/login/"])


# Each model has a list, a form and the form of a new row, which are alike: the fast tests open a few of each.
@pytest.mark.parametrize("step", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_back_office_follows_content_security_policy(
    demo: dict[str, User], browser: Any, live_server: Any, step: int
) -> None:
    with open_window(browser, live_server.url, demo["boss"]) as window:
        for model, table in list(admin.site._registry.items())[::step]:
            meta = model._meta
            start = f"admin:{meta.app_label}_{meta.model_name}"
            assert window.open(reverse(f"{start}_changelist")) == 200
            if table.add_action is not None:
                assert window.open(reverse(f"{start}_add")) == 200
            row = model._default_manager.order_by("pk").first()
            if row is not None:
                assert window.open(reverse(f"{start}_change", args=[row.pk])) == 200
        assert window.complaints == []


@pytest.mark.parametrize("language", ["en", pytest.param("ko", marks=pytest.mark.slow)])
def test_reviewer_can_work_with_keyboard_only(
    demo: dict[str, User], browser: Any, live_server: Any, language: str
) -> None:
    queue = ReviewQueue.objects.get(example=False)
    with open_window(browser, live_server.url, demo["reviewer1"], language=language) as window:
        window.open(f"/review/{queue.pk}/")
        first_path = window.path
        press = window.page.keyboard.press
        press("1")
        press("Numpad1")
        assert window.page.locator("fieldset[data-metric]:not([hidden])").get_attribute("data-metric") == "completeness"
        press("k")
        assert window.page.locator("fieldset[data-metric]:not([hidden])").get_attribute("data-metric") == "faithfulness"
        press("Enter")  # one is missing: nothing is sent
        window.settle()
        assert window.path == first_path
        press("1")
        window.wait_for_draft("saved")
        draft = Draft.objects.get(assignment__item__queue=queue, assignment__reviewer=demo["reviewer1"])
        assert draft.payload["values"]["completeness"]["value"] == 1
        press("Enter")
        window.wait_to_leave(first_path, or_show="#reveal")
        judge_revealed = walk_reveal(window)
        window.settle()
        assert window.path != first_path
        press("m")
        assert window.page.locator("[data-source]").is_visible()
        press("a")
        press("Shift+Slash")
        assert window.page.locator("#help").is_visible()
        press("Escape")
        item_path = window.path
        press("s")
        window.wait_to_leave(item_path)
        window.follow("z")
        assert window.path == item_path
        press("f")
        press("Space")
        press("Tab")
        window.page.keyboard.type("s f z 1")  # typing is no command
        assert window.path == item_path
        assert window.page.input_value("#flag-comment") == "s f z 1"
        press("Tab")
        press("Enter")
        window.wait_to_leave(item_path)
        assert window.complaints == []
    assignments = demo["reviewer1"].assignments.filter(item__queue=queue)
    states = sorted(assignments.values_list("state", flat=True))
    assert states.count("finished") == 1, (states, judge_revealed)
    assert states.count("flagged") == 1


def walk_reveal(window: BrowserPage) -> bool:
    """Keep the rating if the judge is shown: an Enter that is held does nothing, a new one does."""
    if not window.page.locator("#reveal").count():
        return False
    item_path = window.path
    window.page.evaluate(
        "document.dispatchEvent(new KeyboardEvent('keydown', {code: 'Enter', repeat: true, bubbles: true}))"
    )
    window.pass_time(READ_MS)
    assert window.path == item_path
    window.follow("Enter")
    return True


@pytest.mark.slow
def test_keys_are_ignored_during_composition_or_when_switched_off(
    demo: dict[str, User], browser: Any, live_server: Any
) -> None:
    queue = ReviewQueue.objects.get(example=False)
    with open_window(browser, live_server.url, demo["reviewer1"], language="ko") as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        for event in (
            "{code: 'KeyS', isComposing: true",
            "{code: 'KeyS', keyCode: 229",
            "{code: 'KeyS', ctrlKey: true",
        ):
            window.page.evaluate(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {event}, bubbles: true}}))")
        window.settle()
        assert window.path == item_path
        window.page.keyboard.press("Shift+Slash")
        window.page.check("[data-switch-keys]")
        window.page.keyboard.press("Escape")
        window.page.keyboard.press("s")
        window.settle()
        assert window.path == item_path
        # By the key's place: with a Korean layout the key of s sends another character.
        assert User.objects.get(username="reviewer1").keys_off
        window.page.keyboard.press("Shift+Slash")  # off too: the button opens the help
        window.page.click("[data-opens=help]")
        window.page.uncheck("[data-switch-keys]")
        window.page.keyboard.press("Escape")
        window.settle()
        assert not User.objects.get(username="reviewer1").keys_off
        # By the key's place: with a Korean layout the key of s sends another character.
        event = "new KeyboardEvent('keydown', {code: 'KeyS', key: 'ㄴ', bubbles: true})"
        window.page.evaluate(f"document.body.dispatchEvent({event})")
        window.wait_to_leave(item_path)


@pytest.mark.slow
def test_rating_bar_leaves_half_of_a_phone_screen(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    queue = ReviewQueue.objects.get(example=False)
    for language in ("en", "ko"):
        for size in (PHONE, (360, 640)):
            with open_window(browser, live_server.url, demo["reviewer1"], language=language, size=size) as window:
                window.open(f"/review/{queue.pk}/")
                box = window.page.locator(".bar").bounding_box()
                assert box["height"] <= size[1] / 2 + 1
                assert window.page.locator("fieldset[data-metric]:visible").count() == 1
                assert window.page.locator("[data-submit]").is_visible()


def test_reviewing_works_without_scripts(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    queue = ReviewQueue.objects.get(example=False)
    ratings = Rating.objects.filter(reviewer=demo["reviewer1"], assignment__item__queue=queue)
    assert not ratings.exists()
    with open_window(browser, live_server.url, demo["reviewer1"], scripts=False) as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        for metric in ("correctness", "faithfulness", "completeness"):
            window.page.check(f'input[name="value:{metric}"][value="3"]')
        window.page.click("[data-submit]")
        if window.page.locator("#reveal").count():
            window.page.click("[data-keep]")
        assert window.path != item_path + "submit/"
    assert ratings.filter(phase="initial").count() == 3


@pytest.mark.slow
def test_queue_preview_follows_the_form(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    run = Run.objects.exclude(name__contains="graph").latest("pk")
    with open_window(browser, live_server.url, demo["lead"]) as window:
        window.open(f"{reverse('queue-new')}?run={run.pk}")
        count = window.page.locator("aside .big").first
        count.wait_for()
        most = int(count.inner_text())
        assert 20 < most <= 40  # 60 are asked for
        window.page.fill('input[name="size"]', str(most - 1))
        window.page.keyboard.press("Tab")
        window.page.locator("aside .big").get_by_text(str(most - 1), exact=True).wait_for()
        assert window.complaints == []
