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
from tests.examples import is_thorough
from tests.pages.browser import (
    FIRST_VIEW_FAST,
    PHONE,
    READ_MS,
    SECOND_VIEW_FAST,
    VIEW_IDS,
    Visit,
    visit,
    wrong_with,
)
from tests.pages.tours import forgotten, pages_of_a_lead, pages_of_a_reviewer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_no_page_is_forgotten(toured: dict[str, User]) -> None:
    paths = ["/login/", *pages_of_a_lead(), *pages_of_a_reviewer(toured["reviewer1"])]
    assert forgotten(paths, toured["lead"]) == []


def check_pages(window: Visit, paths: list[str]) -> None:
    """Open each address without errors in the console and expect nothing wrong with its page: axe and zoom take a
    second a page, and the fast tests try them on every fourth."""
    wrong: list[str] = []
    for number, path in enumerate(paths):
        assert window.open(path) == 200, path
        if is_thorough() or number % 4 == 0:
            wrong += wrong_with(window, path)
    assert wrong == []
    assert window.complaints == []


# A sixth of the pages each, which workers share better than one long test.
@pytest.mark.parametrize("sixth", range(6))
@pytest.mark.parametrize(("language", "size"), FIRST_VIEW_FAST, ids=VIEW_IDS)
def test_pages_of_a_lead_are_clean_and_accessible(
    toured: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int], sixth: int
) -> None:
    with visit(browser, live_server.url, toured["lead"], language=language, size=size) as window:
        check_pages(window, pages_of_a_lead()[sixth::6])


@pytest.mark.parametrize(("language", "size"), SECOND_VIEW_FAST, ids=VIEW_IDS)
def test_pages_of_a_reviewer_are_clean_and_accessible(
    toured: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    with visit(browser, live_server.url, toured["reviewer1"], language=language, size=size) as window:
        check_pages(window, pages_of_a_reviewer(toured["reviewer1"]))


@pytest.mark.parametrize(("language", "size"), FIRST_VIEW_FAST, ids=VIEW_IDS)
def test_the_log_in_page_is_clean_and_accessible(
    demo: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    with visit(browser, live_server.url, None, language=language, size=size) as window:
        check_pages(window, ["/login/"])


# Each model has a list, a form and the form of a new row, which are alike: the fast tests open a few of each.
@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_the_back_office_keeps_to_the_policy(demo: dict[str, User], browser: Any, live_server: Any, every: int) -> None:
    with visit(browser, live_server.url, demo["boss"]) as window:
        for model, table in list(admin.site._registry.items())[::every]:
            meta = model._meta
            start = f"admin:{meta.app_label}_{meta.model_name}"
            assert window.open(reverse(f"{start}_changelist")) == 200
            if table.add is not None:
                assert window.open(reverse(f"{start}_add")) == 200
            row = model._default_manager.order_by("pk").first()
            if row is not None:
                assert window.open(reverse(f"{start}_change", args=[row.pk])) == 200
        assert window.complaints == []


@pytest.mark.parametrize("language", ["en", pytest.param("ko", marks=pytest.mark.slow)])
def test_a_reviewer_needs_nothing_but_the_keyboard(
    demo: dict[str, User], browser: Any, live_server: Any, language: str
) -> None:
    queue = ReviewQueue.objects.get(example=False)
    with visit(browser, live_server.url, demo["reviewer1"], language=language) as window:
        window.open(f"/review/{queue.pk}/")
        first = window.path
        press = window.page.keyboard.press
        press("1")
        press("Numpad1")
        assert window.page.locator("fieldset[data-metric]:not([hidden])").get_attribute("data-metric") == "completeness"
        press("k")
        assert window.page.locator("fieldset[data-metric]:not([hidden])").get_attribute("data-metric") == "faithfulness"
        press("Enter")  # one is missing: nothing is sent
        window.settle()
        assert window.path == first
        press("1")
        window.wait_for_draft("saved")
        draft = Draft.objects.get(assignment__item__queue=queue, assignment__reviewer=demo["reviewer1"])
        assert draft.payload["values"]["completeness"]["value"] == 1
        press("Enter")
        window.wait_to_leave(first, or_show="#reveal")
        seen = walk_reveal(window)
        window.settle()
        assert window.path != first
        press("m")
        assert window.page.locator("[data-source]").is_visible()
        press("a")
        press("Shift+Slash")
        assert window.page.locator("#help").is_visible()
        press("Escape")
        before = window.path
        press("s")
        window.wait_to_leave(before)
        window.follow("z")
        assert window.path == before
        press("f")
        press("Space")
        press("Tab")
        window.page.keyboard.type("s f z 1")  # typing is no command
        assert window.path == before
        assert window.page.input_value("#flag-comment") == "s f z 1"
        press("Tab")
        press("Enter")
        window.wait_to_leave(before)
        assert window.complaints == []
    mine = demo["reviewer1"].assignments.filter(item__queue=queue)
    states = sorted(mine.values_list("state", flat=True))
    assert states.count("finished") == 1, (states, seen)
    assert states.count("flagged") == 1


def walk_reveal(window: Visit) -> bool:
    """Keep the rating if the judge is shown: an Enter that is held does nothing, a new one does."""
    if not window.page.locator("#reveal").count():
        return False
    here = window.path
    window.page.evaluate(
        "document.dispatchEvent(new KeyboardEvent('keydown', {code: 'Enter', repeat: true, bubbles: true}))"
    )
    window.pass_time(READ_MS)
    assert window.path == here
    window.follow("Enter")
    return True


@pytest.mark.slow
def test_keys_do_nothing_while_an_input_method_composes_or_when_switched_off(
    demo: dict[str, User], browser: Any, live_server: Any
) -> None:
    queue = ReviewQueue.objects.get(example=False)
    with visit(browser, live_server.url, demo["reviewer1"], language="ko") as window:
        window.open(f"/review/{queue.pk}/")
        here = window.path
        for event in (
            "{code: 'KeyS', isComposing: true",
            "{code: 'KeyS', keyCode: 229",
            "{code: 'KeyS', ctrlKey: true",
        ):
            window.page.evaluate(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {event}, bubbles: true}}))")
        window.settle()
        assert window.path == here
        window.page.keyboard.press("Shift+Slash")
        window.page.check("[data-switch-keys]")
        window.page.keyboard.press("Escape")
        window.page.keyboard.press("s")
        window.settle()
        assert window.path == here
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
        window.wait_to_leave(here)


@pytest.mark.slow
def test_the_rating_bar_leaves_half_of_a_phone(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    queue = ReviewQueue.objects.get(example=False)
    for language in ("en", "ko"):
        for size in (PHONE, (360, 640)):
            with visit(browser, live_server.url, demo["reviewer1"], language=language, size=size) as window:
                window.open(f"/review/{queue.pk}/")
                box = window.page.locator(".bar").bounding_box()
                assert box["height"] <= size[1] / 2 + 1
                assert window.page.locator("fieldset[data-metric]:visible").count() == 1
                assert window.page.locator("[data-submit]").is_visible()


def test_everything_can_be_done_without_scripts(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    queue = ReviewQueue.objects.get(example=False)
    mine = Rating.objects.filter(reviewer=demo["reviewer1"], assignment__item__queue=queue)
    assert not mine.exists()
    with visit(browser, live_server.url, demo["reviewer1"], scripts=False) as window:
        window.open(f"/review/{queue.pk}/")
        here = window.path
        for metric in ("correctness", "faithfulness", "completeness"):
            window.page.check(f'input[name="value:{metric}"][value="3"]')
        window.page.click("[data-submit]")
        if window.page.locator("#reveal").count():
            window.page.click("[data-keep]")
        assert window.path != here + "submit/"
    assert mine.filter(phase="initial").count() == 3


def test_the_preview_of_a_queue_follows_the_form(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    run = Run.objects.exclude(name__contains="graph").latest("pk")
    with visit(browser, live_server.url, demo["lead"]) as window:
        window.open(f"{reverse('queue-new')}?run={run.pk}")
        count = window.page.locator("aside .big").first
        count.wait_for()
        most = int(count.inner_text())
        assert 20 < most <= 40  # 60 are asked for
        window.page.fill('input[name="size"]', str(most - 1))
        window.page.keyboard.press("Tab")
        window.page.locator("aside .big").get_by_text(str(most - 1), exact=True).wait_for()
        assert window.complaints == []
