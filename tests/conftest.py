"""Fixtures every test may use: the database with its triggers, people, and sample data."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings

from evaluation.models import Project
from evaluation.storage import append_only

LONG = (
    "tests/conversion/test_published",
    "tests/pages/test_browser",
    "tests/pages/test_degenerate_runs",
    "tests/evaluation/questions/test_real_files",
    "tests/faults",
    "tests/test_settings",
    "tests/test_access_matrix",
    "tests/test_rest_schema",
    "tests/pages/test_unmarked_texts",
)
#: Allocations, collections of the youngest, and collections of the middle generation from one collection to the next.
SELDOM = (20_000, 10, 20)
_TRIGGERS: dict[str, Any] = {"installed": True, "database": None}


def pytest_configure() -> None:
    """Passwords are hashed quickly: what makes hashing slow on purpose is Django's, and tested there. No embeddings but
    those a test brings, whatever is installed."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.CONCORD_LOCAL_MODEL = "none"
    hypothesis.settings.register_profile("concord", deadline=None)  # time is the machine's business
    hypothesis.settings.load_profile("concord")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first: at the end one process would wait for another one that is in one of them. What
    uses the database that the settings name is marked so, before anything is chosen by its marks."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    for item in items:
        fixtures = {"db", "transactional_db", "live_server"} & set(getattr(item, "fixturenames", ()))
        if fixtures or item.get_closest_marker("django_db"):
            item.add_marker("database")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Without the project that a site starts with: tests make their own."""
    with django_db_blocker.unblock():
        Project.objects.all().delete()


def _is_transactional(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker("django_db")
    fixtures = {"transactional_db", "live_server"} & set(request.fixturenames)
    return bool(fixtures or (marker and marker.kwargs.get("transaction")))


def pytest_collection_finish() -> None:
    """From here on cycles are looked for seldom: each full collection walks all the tests and all they import, and
    in the tests of pages and ratings that took an eighth of the processor time."""
    gc.set_threshold(*SELDOM)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Triggers come back before a test opens its transaction: inside it they would leave again with its rollback."""
    if not _TRIGGERS["installed"]:
        with _TRIGGERS["database"].unblock():
            append_only.install()
        _TRIGGERS["installed"] = True


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
    yield
    if _is_transactional(request):
        append_only.uninstall()
        _TRIGGERS.update(installed=False, database=request.getfixturevalue("django_db_blocker"))


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The folder of real sample data; tests that need it are skipped where there is none."""
    folder = os.environ.get("CONCORD_TEST_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("CONCORD_TEST_DATA names no folder of sample data")
    return Path(folder)
