"""A browser for all tests of a worker, and the demo, which is built once for all workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from evaluation.models import User
from review.management.demo.loader import create_demo_users, demo_project, load_demo
from tests.pages.browser import chromium, use_event_loop
from tests.pages.sites import load_site
from tests.pages.tours import prepare_tour


@pytest.fixture(scope="session")
def worker_browser() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """The worker's Chromium, and the event loop by which Playwright talks to it."""
    with chromium() as chromium_browser:
        loop = asyncio.get_running_loop()
        use_event_loop(None)
        yield chromium_browser, loop
        use_event_loop(loop)


@pytest.fixture
def browser(worker_browser: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """A running Chromium; each visit has a window with cookies of its own."""
    chromium_browser, loop = worker_browser
    use_event_loop(loop)
    yield chromium_browser
    use_event_loop(None)


@pytest.fixture
def demo(transactional_db: None, settings: Any) -> dict[str, User]:
    """The demo after loading: its users by name, and the superuser ``boss``."""
    settings.CONCORD_DISPATCHER = "local"
    load_site("demo", _load_demo)
    return _users_by_name()


@pytest.fixture
def toured(demo: dict[str, User]) -> dict[str, User]:
    """The demo's people, with something on every page."""
    load_site("toured", lambda: prepare_tour(demo))
    return _users_by_name()


def _users_by_name() -> dict[str, User]:
    return {user.username: user for user in User.objects.all()}


def _load_demo() -> None:
    project = demo_project()
    create_demo_users(project)
    load_demo(project, "en")
    User.objects.create_superuser("boss", password="a good password")
