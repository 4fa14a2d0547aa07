"""Every page in a real browser: no console error, nothing stopped by the content security policy, no accessibility
violation, nothing wider than the screen; in both languages, wide and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.urls import reverse

from evaluation.models import Run, User
from review.models import Draft, Rating, ReviewQueue
from tests.pages.browser import PHONE, VIEWS, Visit, visit, wrong_with
from tests.pages.tours import forgotten, pages_of_a_lead, pages_of_a_reviewer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_no_page_is_forgotten(toured: dict[str, User]) -> None:
    paths = ["/login/", *pages_of_a_lead(), *pages_of_a_reviewer(toured["reviewer1"])]
    assert forgotten(paths, toured["lead"]) == []


@pytest.mark.parametrize("who", ["lead", "reviewer1", None], ids=["lead", "reviewer", "nobody"])
@pytest.mark.parametrize(("language", "size"), VIEWS, ids=["en", "ko"])
def test_every_page_is_clean_and_accessible(
    toured: dict[str, User], browser: Any, live_server: Any, who: str | None, language: str, size: tuple[int, int]
) -> None:
    paths = pages_of_a_lead() if who == "lead" else pages_of_a_reviewer(toured[who]) if who else ["/login/"]
    wrong: list[str] = []
    with visit(browser, live_server.url, toured[who] if who else None, language=language, size=size) as found:
        for path in paths:
            assert found.open(path) == 200, path
            wrong += wrong_with(found, path)
    assert wrong == []


def test_the_back_office_keeps_to_the_policy(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    with visit(browser, live_server.url, demo["boss"]) as found:
        for model, table in admin.site._registry.items():
            meta = model._meta
            start = f"admin:{meta.app_label}_{meta.model_name}"
            assert found.open(reverse(f"{start}_changelist")) == 200
            if table.add is not None:
                assert found.open(reverse(f"{start}_add")) == 200
            row = model._default_manager.order_by("pk").first()
            if row is not None:
                assert found.open(reverse(f"{start}_change", args=[row.pk])) == 200
        assert found.complaints == []


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_reviewer_needs_nothing_but_the_keyboard(
    demo: dict[str, User], browser: Any, live_server: Any, language: str
) -> None:
    queue = ReviewQueue.objects.get(example=False)
    with visit(browser, live_server.url, demo["reviewer1"], language=language) as found:
        found.open(f"/review/{queue.pk}/")
        first = found.path
        press = found.page.keyboard.press
        press("1")
        press("Numpad1")
        assert found.page.locator("fieldset[data-metric]:not([hidden])").get_attribute("data-metric") == "completeness"
        press("k")
        assert found.page.locator("fieldset[data-metric]:not([hidden])").get_attribute("data-metric") == "faithfulness"
        press("Enter")  # one is missing: nothing is sent
        found.settle()
        assert found.path == first
        press("1")
        found.told_of_the_draft("saved")
        draft = Draft.objects.get(assignment__item__queue=queue, assignment__reviewer=demo["reviewer1"])
        assert draft.payload["values"]["completeness"]["value"] == 1
        press("Enter")
        found.moves_from(first, or_shows="#reveal")
        seen = walk_reveal(found)
        found.settle()
        assert found.path != first
        press("m")
        assert found.page.locator("[data-source]").is_visible()
        press("a")
        press("Shift+Slash")
        assert found.page.locator("#help").is_visible()
        press("Escape")
        before = found.path
        press("s")
        found.moves_from(before)
        found.go("z")
        assert found.path == before
        press("f")
        press("Space")
        press("Tab")
        found.page.keyboard.type("s f z 1")  # typing is no command
        assert found.path == before
        assert found.page.input_value("#flag-comment") == "s f z 1"
        press("Tab")
        press("Enter")
        found.moves_from(before)
        assert found.complaints == []
    mine = demo["reviewer1"].assignments.filter(item__queue=queue)
    states = sorted(mine.values_list("state", flat=True))
    assert states.count("finished") == 1, (states, seen)
    assert states.count("flagged") == 1


def walk_reveal(found: Visit) -> bool:
    """Keep the rating if the judge is shown: an Enter that is held does nothing, a new one does."""
    if not found.page.locator("#reveal").count():
        return False
    here = found.path
    found.page.evaluate(
        "document.dispatchEvent(new KeyboardEvent('keydown', {code: 'Enter', repeat: true, bubbles: true}))"
    )
    found.page.wait_for_timeout(500)
    assert found.path == here
    found.go("Enter")
    return True


def test_keys_do_nothing_while_an_input_method_composes_or_when_switched_off(
    demo: dict[str, User], browser: Any, live_server: Any
) -> None:
    queue = ReviewQueue.objects.get(example=False)
    with visit(browser, live_server.url, demo["reviewer1"], language="ko") as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        for event in (
            "{code: 'KeyS', isComposing: true",
            "{code: 'KeyS', keyCode: 229",
            "{code: 'KeyS', ctrlKey: true",
        ):
            found.page.evaluate(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {event}, bubbles: true}}))")
        found.settle()
        assert found.path == here
        found.page.keyboard.press("Shift+Slash")
        found.page.check("[data-switch-keys]")
        found.page.keyboard.press("Escape")
        found.page.keyboard.press("s")
        found.settle()
        assert found.path == here
        # By the key's place: with a Korean layout the key of s sends another character.
        assert User.objects.get(username="reviewer1").keys_off
        found.page.keyboard.press("Shift+Slash")  # off too: the button opens the help
        found.page.click("[data-opens=help]")
        found.page.uncheck("[data-switch-keys]")
        found.page.keyboard.press("Escape")
        found.settle()
        assert not User.objects.get(username="reviewer1").keys_off
        # By the key's place: with a Korean layout the key of s sends another character.
        event = "new KeyboardEvent('keydown', {code: 'KeyS', key: 'ㄴ', bubbles: true})"
        found.page.evaluate(f"document.body.dispatchEvent({event})")
        found.moves_from(here)


def test_the_rating_bar_leaves_half_of_a_phone(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    queue = ReviewQueue.objects.get(example=False)
    for language in ("en", "ko"):
        for size in (PHONE, (360, 640)):
            with visit(browser, live_server.url, demo["reviewer1"], language=language, size=size) as found:
                found.open(f"/review/{queue.pk}/")
                box = found.page.locator(".bar").bounding_box()
                assert box["height"] <= size[1] / 2 + 1
                assert found.page.locator("fieldset[data-metric]:visible").count() == 1
                assert found.page.locator("[data-submit]").is_visible()


def test_everything_can_be_done_without_scripts(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    queue = ReviewQueue.objects.get(example=False)
    mine = Rating.objects.filter(reviewer=demo["reviewer1"], assignment__item__queue=queue)
    assert not mine.exists()
    with visit(browser, live_server.url, demo["reviewer1"], scripts=False) as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        for metric in ("correctness", "faithfulness", "completeness"):
            found.page.check(f'input[name="value:{metric}"][value="3"]')
        found.page.click("[data-submit]")
        if found.page.locator("#reveal").count():
            found.page.click("[data-keep]")
        assert found.path != here + "submit/"
    assert mine.filter(phase="initial").count() == 3


def test_the_preview_of_a_queue_follows_the_form(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    run = Run.objects.exclude(name__contains="graph").latest("pk")
    with visit(browser, live_server.url, demo["lead"]) as found:
        found.open(f"{reverse('queue-new')}?run={run.pk}")
        count = found.page.locator("aside .big").first
        count.wait_for()
        most = int(count.inner_text())
        assert 20 < most <= 40  # 60 are asked for
        found.page.fill('input[name="size"]', str(most - 1))
        found.page.keyboard.press("Tab")
        found.page.locator("aside .big").get_by_text(str(most - 1), exact=True).wait_for()
        assert found.complaints == []
