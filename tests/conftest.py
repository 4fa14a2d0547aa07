"""Fixtures every test may use: the database with its triggers, people, and sample data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from evaluation import append_only

_TRIGGERS = {"installed": True}


def pytest_configure() -> None:
    """Passwords are hashed quickly: what makes hashing slow on purpose is Django's, and tested there."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def _is_transactional(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker("django_db")
    fixtures = {"transactional_db", "live_server"} & set(request.fixturenames)
    return bool(fixtures or (marker and marker.kwargs.get("transaction")))


@pytest.fixture(autouse=True)
def append_only_triggers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Triggers are on in every database test; transactional ones end with a flush, which triggers would refuse."""
    uses_database = request.node.get_closest_marker("django_db") or {
        "db",
        "transactional_db",
        "live_server",
    } & set(request.fixturenames)
    if not uses_database:
        yield
        return
    request.getfixturevalue("_django_db_helper")
    if not _TRIGGERS["installed"]:
        append_only.install()
        _TRIGGERS["installed"] = True
    yield
    if _is_transactional(request):
        append_only.uninstall()
        _TRIGGERS["installed"] = False


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The folder of real sample data; tests that need it are skipped where there is none."""
    folder = os.environ.get("CONCORD_TEST_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("CONCORD_TEST_DATA names no folder of sample data")
    return Path(folder)
