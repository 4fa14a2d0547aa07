"""A real browser for tests of pages: the distribution's Chromium, driven by Playwright."""

from __future__ import annotations

import asyncio
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
from tests.pages.layout import close_targets, zoom_problems

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# No style sheet or film is fetched once more, and no path to an element is worked out.
AXE = {"resultTypes": ["violations"], "preload": False, "selectors": False}
RUN_AXE = "async (options) => (await axe.run(options)).violations.map(({id, nodes}) => [id, nodes.map((n) => n.html)])"
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
DESKTOP, PHONE = (1280, 800), (390, 844)
#: Between them, the two views of a page show both languages, both sizes and both colour schemes: English on a wide
#: screen is light, Korean on a phone is dark.
VIEWS = (("en", DESKTOP), ("ko", PHONE))
#: Both views, of which ``make test`` takes one.
FIRST_VIEW_FAST = (VIEWS[0], pytest.param(*VIEWS[1], marks=pytest.mark.slow))
SECOND_VIEW_FAST = (pytest.param(*VIEWS[0], marks=pytest.mark.slow), VIEWS[1])
#: For walks of a minute through pages that are checked one by one in both views anyway.
LONG_VIEWS = (pytest.param(*VIEWS[0], marks=pytest.mark.endurance), pytest.param(*VIEWS[1], marks=pytest.mark.slow))
VIEW_IDS = ("en", "ko")

READ_MS = 500  # after the judge is shown, a page takes no Enter for 400 ms: it may be the one before, still held
DRAFT_MS = 600  # a draft is sent half a second after the last change
# Whether htmx is at work, once the page has done what it was about to do. Page clocks do not reach messages.
IS_QUIET = """async () => {
  for (let turn = 0; turn < 2; turn += 1) {
    await new Promise((resolve) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(null);
    });
  }
  return !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added");
}"""
BUSY_MS = 10  # between two looks at a page that is busy
QUIET_SECONDS = 0.025  # without a new request, after a page was left
LONGEST_MS = 180_000  # for which a page may be busy: other tests have the cores as well


@dataclass
class BrowserPage:
    """A page in a browser with a logged-in user.

    ``complaints`` are console errors and uncaught exceptions, ``pending`` the unanswered requests; ``scripts`` tells
    whether the page may run any."""

    page: Any
    base: str
    scripts: bool = True
    complaints: list[str] = field(default_factory=list)
    pending: set[Any] = field(default_factory=set)

    def watch(self, page: Any) -> None:
        """Go on with this page."""
        self.page = page
        self.pending.clear()
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.pending.add(request))
        page.on("requestfinished", lambda request: self.pending.discard(request))
        page.on("requestfailed", lambda request: self.pending.discard(request))

    def open(self, path: str) -> int:
        """Load an address of the site; its status."""
        response = self.page.goto(self.base + path)
        self.settle()
        return int(response.status)

    def settle(self) -> None:
        """Wait until the page has done all that a key or a press set off, and fetched the next card."""
        deadline = time.monotonic() + LONGEST_MS / 1000
        self.page.wait_for_load_state()
        while not self._is_quiet():
            if time.monotonic() > deadline:
                raise AssertionError(f"still waiting for {[request.url for request in self.pending]}")
            self.page.wait_for_timeout(BUSY_MS)
        if self.page.locator("html.has-script #rating").count():
            self.page.wait_for_selector("#rating[data-ready]")

    def _is_quiet(self) -> bool:
        from playwright.sync_api import Error

        if not self.scripts:
            return not self.pending
        try:
            return bool(self.page.evaluate(IS_QUIET)) and not self.pending
        except Error as error:
            if "navigati" not in str(error):
                raise
            self.page.wait_for_load_state()
            return False

    def pass_time(self, milliseconds: int) -> None:
        """Advance the page's clock without waiting."""
        self.page.clock.run_for(milliseconds)

    def wait_for_draft(self, state: str) -> None:
        """Wait until the draft was sent, or could not be: ``saved`` or ``unsaved``."""
        self.pass_time(DRAFT_MS)
        text = self.page.get_attribute("#rating", f"data-{state}")
        self.page.locator("[data-draft-state]", has_text=text).wait_for()
        self.settle()

    def follow(self, key: str) -> None:
        """Press a key that leads to another page, and wait for it."""
        with self.page.expect_navigation():
            self.page.keyboard.press(key)
        self.settle()

    def click_through(self, selector: str) -> None:
        """Click what leads to another page, and wait for it."""
        with self.page.expect_navigation():
            self.page.locator(selector).first.click()
        self.settle()

    def wait_to_leave(self, path: str, *, or_show: str = "") -> None:
        """Wait until the browser is at another path, by another page or the next card in place, or shows an element."""
        deadline = time.monotonic() + LONGEST_MS / 1000
        while self.path == path and not (or_show and self.page.locator(or_show).count()):
            if time.monotonic() > deadline:
                raise AssertionError(f"still at {path}")
            self.page.wait_for_timeout(BUSY_MS)
        self.settle()

    @property
    def path(self) -> str:
        """Current path of the browser."""
        return str(self.page.url).removeprefix(self.base)


def find_chromium() -> str:
    """The browser's path; the test is skipped where there is none."""
    pytest.importorskip("playwright")
    path = next((path for name in NAMES if (path := shutil.which(name))), "")
    if not path:
        pytest.skip("no Chromium on this machine")
    return path


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser."""
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    try:
        with sync_playwright() as playwright:
            use_event_loop(asyncio.get_running_loop())
            browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
            yield browser
            browser.close()
    finally:
        use_event_loop(None)


def use_event_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Mark Playwright's loop as the running one of this thread, or none, so that tests may run their own loops.

    While it is started, Playwright marks its loop between its calls and expects the mark to stay. Django treats all
    code in such a thread as asynchronous unless ``DJANGO_ALLOW_ASYNC_UNSAFE`` is set."""
    asyncio._set_running_loop(loop)
    if loop is None:
        os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
    else:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


@contextmanager
def open_window(
    browser: Any,
    base: str,
    user: User | None,
    *,
    language: str = "en",
    size: tuple[int, int] = DESKTOP,
    scripts: bool = True,
) -> Iterator[BrowserPage]:
    """Open a new window of the size, logged in as the user, in the language; dark on a phone (see ``VIEWS``)."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        java_script_enabled=scripts,
        locale=language,
        color_scheme="dark" if size == PHONE else "light",
        reduced_motion="reduce",
    )
    cookies = [{"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": base}]
    if user is not None:
        User.objects.filter(pk=user.pk).update(language=language)
        cookies.append({"name": settings.SESSION_COOKIE_NAME, "value": create_session(user), "url": base})
    context.add_cookies(cookies)
    context.set_default_timeout(LONGEST_MS)
    if scripts:
        context.clock.install()
    window = BrowserPage(None, base, scripts)
    window.watch(context.new_page())
    with wait_for_requests():
        try:
            yield window
            window.page.goto("about:blank")  # what a page sends when it is left, it sends now
        finally:
            context.close()


@contextmanager
def wait_for_requests() -> Iterator[None]:
    """Wait at the end until the server has no pending request, because the database is about to be restored."""
    count = Counter[str]()

    def count_started(**_: Any) -> None:
        count["started"] += 1

    def count_finished(**_: Any) -> None:
        count["finished"] += 1

    request_started.connect(count_started)
    request_finished.connect(count_finished)
    try:
        yield
    finally:
        deadline = time.monotonic() + LONGEST_MS / 1000
        while True:
            previous = dict(count)
            time.sleep(QUIET_SECONDS)
            if previous == dict(count) and count["started"] == count["finished"]:
                break
            if time.monotonic() > deadline:
                raise AssertionError(f"requests: {dict(count)}")
        request_started.disconnect(count_started)
        request_finished.disconnect(count_finished)


def create_session(user: User) -> str:
    """The key of a new session of the person."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def accessibility_violations(page: Any, name: str = "page") -> list[str]:
    """Violations of accessibility, as the page is open."""
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.axe_script)
    return [f"{name}: {rule} at {[html[:120] for html in nodes][:2]}" for rule, nodes in page.evaluate(RUN_AXE, AXE)]


def page_problems(window: BrowserPage, name: str) -> list[str]:
    """Return the problems of the open page: console errors, accessibility violations, and content wider than the
    screen, in the current size, in the other one and at 400 %."""
    page = window.page
    problems = (
        _overflow(page, name)
        + accessibility_violations(page, name)
        + close_targets(page, name)
        + zoom_problems(page, name)
    )
    size = page.viewport_size
    page.set_viewport_size(
        dict(zip(("width", "height"), DESKTOP if size["width"] < DESKTOP[0] else PHONE, strict=True))
    )
    problems += _overflow(page, f"{name} in the other size")
    page.set_viewport_size(size)
    problems += [f"{name}: {complaint}" for complaint in window.complaints]
    window.complaints.clear()
    return problems


def _overflow(page: Any, name: str) -> list[str]:
    width = page.viewport_size["width"]
    content_width = page.evaluate("document.documentElement.scrollWidth")
    return [f"{name}: {content_width} pixels wide on a screen of {width}"] if content_width > width else []
