"""Fixtures every test may use: the database with its triggers, people, and sample data."""

from __future__ import annotations

import gc
import os
import zlib
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.test import TransactionTestCase

from evaluation.models import Project
from tests.databases import Baseline

# Allocations, collections of the youngest, and collections of the middle generation from one collection to the next.
RARE_COLLECTIONS = (20_000, 10, 20)
# Time is the machine's business. `make test-all` tries more examples; see tests/examples.py.
hypothesis.settings.register_profile("fast", deadline=None, max_examples=25)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=100)
hypothesis.settings.load_profile("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which CI runs a part of the slow tests."""
    parser.addoption("--slice", metavar="NUMBER/COUNT", help="run one of so many parts of the tests")


def pytest_configure() -> None:
    """Hash passwords quickly: slow hashing is Django's, and tested there. Use no embeddings but those a test brings,
    whatever is installed."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.CONCORD_LOCAL_MODEL = "none"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that use the database, before tests are selected by their marks; keep those of the slice."""
    for item in items:
        fixtures = {"db", "transactional_db", "live_server"} & set(getattr(item, "fixturenames", ()))
        if fixtures or item.get_closest_marker("django_db"):
            item.add_marker("database")
    if part := config.getoption("slice"):
        number, count = map(int, part.split("/"))
        items[:] = [item for item in items if zlib.crc32(item.nodeid.partition("[")[0].encode()) % count == number]


@pytest.fixture(scope="session")
def baseline(django_db_blocker: Any) -> Baseline:
    """The migrated database that every test starts from."""
    with django_db_blocker.unblock():
        return Baseline.prepare()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None, baseline: Baseline) -> None:
    """Have Django create its test database from the migrated one."""


@pytest.fixture(scope="session")
def django_db_setup(baseline: Baseline, django_db_setup: None, django_db_blocker: Any) -> None:
    """Start without the project of a new site, and restore the database after tests that commit."""
    with django_db_blocker.unblock():
        Project.objects.all().delete()
        baseline.record()
    # Django's own flush empties every table and creates all permissions again, and append-only triggers refuse it.
    TransactionTestCase._fixture_teardown = lambda test_case: baseline.restore()


def pytest_collection_finish() -> None:
    """Collect garbage rarely: each full collection walks all tests and all they import, which took an eighth of the
    processor time of the tests of pages and ratings."""
    gc.set_threshold(*RARE_COLLECTIONS)


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The folder of real sample data; tests that need it are skipped where there is none."""
    folder = os.environ.get("CONCORD_TEST_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("CONCORD_TEST_DATA names no folder of sample data")
    return Path(folder)
