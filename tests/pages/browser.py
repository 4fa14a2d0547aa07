"""A real browser for tests of pages: the distribution's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.core.signals import request_finished, request_started

from evaluation.models import User
from tests.pages.layout import too_close, wrong_when_zoomed

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules whose outcome a colour scheme can change
AXE = {"resultTypes": ["violations"], "preload": False}  # no style sheet or film is fetched once more
RUN_AXE = "options => axe.run(options)"
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE, PHONE = (1280, 800), (390, 844)
#: A page is looked at in full as these name it, then (``wrong_with``) in the other size and in the dark: every
#: language, size and colour scheme meets every other.
VIEWS = (("en", WIDE), ("ko", PHONE))
# For ways of a minute through pages that are looked at one by one in both views anyway.
LONG_VIEWS = (pytest.param("en", WIDE, marks=pytest.mark.endurance), ("ko", PHONE))


QUIET_MS = 40  # longer than htmx takes from an answer to the next question, and than two frames


@dataclass
class Visit:
    """A page in a browser that somebody is logged in with. ``complaints`` are console errors and uncaught ones,
    ``asked`` what the page has asked the server for and not got yet."""

    page: Any
    base: str
    complaints: list[str] = field(default_factory=list)
    asked: set[Any] = field(default_factory=set)

    def watch(self, page: Any) -> None:
        """Make the page the one that is looked at."""
        self.page = page
        self.asked.clear()
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda one: self.asked.add(one))
        page.on("requestfinished", lambda one: self.asked.discard(one))
        page.on("requestfailed", lambda one: self.asked.discard(one))

    def open(self, path: str) -> int:
        """Load an address of the site; its status."""
        response = self.page.goto(self.base + path)
        self.settle()
        return int(response.status)

    def settle(self) -> None:
        """Wait until what a key or a press set off has happened, the fetching of the next card too."""
        self.page.wait_for_load_state()
        for _ in range(1000):
            before = bool(self.asked)
            self.page.wait_for_timeout(QUIET_MS)
            if not before and not self.asked:
                break
        else:
            raise AssertionError(f"still asking for {[one.url for one in self.asked]}")
        if self.page.locator("html.has-script #rating").count():
            self.page.wait_for_selector("#rating[data-ready]")

    def told_of_the_draft(self, what: str) -> None:
        """Wait until the draft of what was entered last was sent, or could not be: ``saved`` or ``unsaved``."""
        self.page.wait_for_timeout(550)  # it is sent half a second after the last change
        said = self.page.get_attribute("#rating", f"data-{what}")
        self.page.locator("[data-draft-state]", has_text=said).wait_for()
        self.settle()

    def go(self, key: str) -> None:
        """Press a key that leads to another page, and wait for it."""
        with self.page.expect_navigation():
            self.page.keyboard.press(key)
        self.settle()

    def moves_from(self, path: str, *, or_shows: str = "") -> None:
        """Wait until the browser is elsewhere, by another page or the next card in place, or shows what is named."""
        for _ in range(200):
            if self.path != path or (or_shows and self.page.locator(or_shows).count()):
                break
            self.page.wait_for_timeout(50)
        else:
            raise AssertionError(f"still at {path}")
        self.settle()

    @property
    def path(self) -> str:
        """Where the browser is."""
        return str(self.page.url).removeprefix(self.base)


def installed() -> str:
    """The browser's path; the test is skipped where there is none."""
    pytest.importorskip("playwright")
    found = next((path for name in NAMES if (path := shutil.which(name))), "")
    if not found:
        pytest.skip("no Chromium on this machine")
    return found


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser."""
    from playwright.sync_api import sync_playwright

    path = installed()
    # Playwright keeps an event loop in this thread, which Django would take for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
            yield browser
            browser.close()
    finally:
        os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)


@contextmanager
def visit(
    browser: Any,
    base: str,
    user: User | None,
    *,
    language: str = "en",
    size: tuple[int, int] = WIDE,
    scripts: bool = True,
) -> Iterator[Visit]:
    """A fresh window of the size, logged in as the person and in the language."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, java_script_enabled=scripts, locale=language
    )
    cookies = [{"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": base}]
    if user is not None:
        User.objects.filter(pk=user.pk).update(language=language)
        cookies.append({"name": settings.SESSION_COOKIE_NAME, "value": session_of(user), "url": base})
    context.add_cookies(cookies)
    found = Visit(None, base)
    found.watch(context.new_page())
    with answered():
        yield found
        found.page.goto("about:blank")  # what a page sends when it is left, it sends now
        context.close()


@contextmanager
def answered() -> Iterator[None]:
    """In the end the server has no request left: the database is about to be flushed under it."""
    count = Counter[str]()

    def started(**_: Any) -> None:
        count["started"] += 1

    def finished(**_: Any) -> None:
        count["finished"] += 1

    request_started.connect(started)
    request_finished.connect(finished)
    try:
        yield
        for _ in range(400):
            before = dict(count)
            time.sleep(0.025)
            if before == dict(count) and count["started"] == count["finished"]:
                break
        else:
            raise AssertionError(f"requests: {dict(count)}")
    finally:
        request_started.disconnect(started)
        request_finished.disconnect(finished)


def session_of(user: User) -> str:
    """The key of a new session of the person."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def wrong_with(found: Visit, name: str) -> list[str]:
    """What is wrong with a page that is open: complaints, overflow in either size and at 400 %, violations of
    accessibility as it is open, and of the rules about colour in the other size in the dark."""
    axe, page = pytest.importorskip("axe_core_python.sync_playwright").Axe(), found.page
    page.evaluate(axe.axe_script)
    here = (page.viewport_size["width"], page.viewport_size["height"])
    said = _overflow(found, name) + _violations(page.evaluate(RUN_AXE, AXE), name)
    said += too_close(page, name) + wrong_when_zoomed(page, name)
    page.set_viewport_size(dict(zip(("width", "height"), PHONE if here == WIDE else WIDE, strict=True)))
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")  # no colour on its way to the other
    dark = page.evaluate(RUN_AXE, AXE | {"runOnly": COLOURS})
    said += _overflow(found, f"{name} in the other size") + _violations(dark, f"{name} in the dark")
    page.set_viewport_size(dict(zip(("width", "height"), here, strict=True)))
    page.emulate_media(color_scheme="light")
    said += [f"{name}: {complaint}" for complaint in found.complaints]
    found.complaints.clear()
    return said


def _overflow(found: Visit, name: str) -> list[str]:
    width = found.page.viewport_size["width"]
    wide = found.page.evaluate("document.documentElement.scrollWidth")
    return [f"{name}: {wide} pixels wide on a screen of {width}"] if wide > width else []


def _violations(result: dict[str, Any], name: str) -> list[str]:
    return [
        f"{name}: {violation['id']} at {[node['html'][:120] for node in violation['nodes']][:2]}"
        for violation in result["violations"]
    ]
