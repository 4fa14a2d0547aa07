"""A real browser for tests of pages: the distribution's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from evaluation.accounts.models import User

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE, PHONE = (1280, 800), (390, 844)


@dataclass
class Visit:
    """A page in a browser that somebody is logged in with. ``complaints`` are console errors and uncaught ones."""

    page: Any
    base: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> int:
        """Load an address of the site; its status."""
        response = self.page.goto(self.base + path)
        self.settle()
        return int(response.status)

    def settle(self) -> None:
        """Wait until what a key or a press set off has happened, the fetching of the next card too."""
        self.page.wait_for_load_state("networkidle")
        if self.page.locator("html.has-script #rating").count():
            self.page.wait_for_selector("#rating[data-ready]")

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
    found = Visit(context.new_page(), base)
    found.page.on("console", lambda said: found.complaints.append(said.text) if said.type == "error" else None)
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    yield found
    context.close()


def session_of(user: User) -> str:
    """The key of a new session of the person."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)
