"""A browser for all tests of a file, and the demo, which is loaded once and copied from then on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from evaluation.models import User
from review.management.demo.loading import demo_project, load_demo, set_people
from tests.pages.browser import chromium
from tests.pages.tours import prepare

_COPIES: dict[str, sqlite3.Connection] = {}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running Chromium; each visit has a window with cookies of its own."""
    with chromium() as running:
        yield running


@pytest.fixture
def demo(transactional_db: None, settings: Any) -> dict[str, User]:
    """The demo as it is after loading, with its people by name and ``boss``, who may do everything."""
    settings.CONCORD_DISPATCHER = "local"
    settings.DEBUG = True  # static files are served from where they are
    return _once("demo", _load)


@pytest.fixture
def toured(demo: dict[str, User]) -> dict[str, User]:
    """The demo's people, with something on every page."""
    return _once("toured", lambda: prepare(demo))


def _once(name: str, make: Callable[[], None]) -> dict[str, User]:
    connection.ensure_connection()
    if name in _COPIES:
        _COPIES[name].backup(connection.connection)
    else:
        make()
        if connection.vendor == "sqlite":
            _COPIES[name] = sqlite3.connect(":memory:")
            connection.connection.backup(_COPIES[name])
    return {user.username: user for user in User.objects.all()}


def _load() -> None:
    project = demo_project()
    set_people(project)
    load_demo(project)
    User.objects.create_superuser("boss", password="a good password")
