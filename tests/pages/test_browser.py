"""Every page in a real browser: no console error, nothing stopped by the content security policy, no accessibility
violation, nothing wider than the screen; in both languages, wide and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.urls import reverse

from evaluation.accounts.models import User
from evaluation.runs.models import Run
from review.demo.loading import demo_project, load_demo
from review.demo.people import set_people
from review.models.draws import FrameMember
from review.models.queues import Draft, ReviewQueue
from tests.pages.browser import PHONE, WIDE, Visit, chromium, visit
from tests.pages.tours import forgotten, pages_of_a_lead, pages_of_a_reviewer, prepare

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def demo(settings: Any) -> dict[str, User]:
    """The demo, with its people by name."""
    settings.CONCORD_DISPATCHER = "local"
    settings.DEBUG = True  # static files are served from where they are
    project = demo_project()
    set_people(project)
    load_demo(project)
    people = {user.username: user for user in User.objects.all()}
    people["boss"] = User.objects.create_superuser("boss", password="a good password")
    return people


@pytest.fixture
def toured(demo: dict[str, User]) -> dict[str, User]:
    """The demo's people, with something on every page."""
    prepare(demo)
    return demo


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def wrong_with(found: Visit, path: str, check: Callable[[Any], Any]) -> list[str]:
    """What is wrong with a page that is open."""
    said = [f"{path}: {complaint}" for complaint in found.complaints]
    found.complaints.clear()
    width = found.page.viewport_size["width"]
    if (wide := found.page.evaluate("document.documentElement.scrollWidth")) > width:
        said.append(f"{path}: {wide} pixels wide on a screen of {width}")
    for violation in check(found.page)["violations"]:
        where = [node["html"][:120] for node in violation["nodes"]][:2]
        said.append(f"{path}: {violation['id']} at {where}")
    return said


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_page_is_clean_and_accessible(
    toured: dict[str, User], browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    check = pytest.importorskip("axe_core_python.sync_playwright").Axe().run
    wrong: list[str] = []
    tours: list[tuple[str | None, list[str]]] = [
        (None, ["/login/"]), ("lead", pages_of_a_lead()), ("reviewer1", pages_of_a_reviewer(toured["reviewer1"])),
    ]  # fmt: skip
    assert forgotten([path for _, paths in tours for path in paths], toured["lead"]) == []
    for name, paths in tours:
        with visit(browser, live_server.url, toured[name] if name else None, language=language, size=size) as found:
            for path in paths:
                assert found.open(path) == 200, path
                wrong += wrong_with(found, path, check)
    assert wrong == []


def test_the_pages_are_accessible_in_the_dark(toured: dict[str, User], browser: Any, live_server: Any) -> None:
    check = pytest.importorskip("axe_core_python.sync_playwright").Axe().run
    wrong: list[str] = []
    for name, paths in (("lead", pages_of_a_lead()[:5]), ("reviewer1", pages_of_a_reviewer(toured["reviewer1"]))):
        with visit(browser, live_server.url, toured[name]) as found:
            found.page.emulate_media(color_scheme="dark")
            for path in paths:
                assert found.open(path) == 200
                wrong += wrong_with(found, path, check)
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
        found.page.wait_for_timeout(900)
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
    with visit(browser, live_server.url, demo["reviewer1"], scripts=False) as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        for metric in ("correctness", "faithfulness", "completeness"):
            found.page.check(f'input[name="value:{metric}"][value="3"]')
        found.page.click("[data-submit]")
        if found.page.locator("#reveal").count():
            found.page.click("[data-keep]")
        assert found.path not in {here, here + "submit/"}


def test_the_preview_of_a_queue_follows_the_form(demo: dict[str, User], browser: Any, live_server: Any) -> None:
    run = Run.objects.filter(name__contains="graph").latest("pk")
    drawn = FrameMember.objects.filter(answer__answer_set=run.answer_set, sampled=True).values("answer").distinct()
    left = 40 - drawn.count()
    assert 1 < left < 40
    with visit(browser, live_server.url, demo["lead"]) as found:
        found.open(f"{reverse('queue-new')}?run={run.pk}")
        found.page.locator("aside .big").get_by_text(str(left), exact=True).wait_for()  # 60 are asked for
        found.page.fill('input[name="size"]', str(left - 1))
        found.page.keyboard.press("Tab")
        found.page.locator("aside .big").get_by_text(str(left - 1), exact=True).wait_for()
        assert found.complaints == []
