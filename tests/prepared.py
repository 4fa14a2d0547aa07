"""A database state that all tests of a module start from, written once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A transaction around all tests of a module: fixtures with the scope of the module write in it, and each test in a
    savepoint of its own. Not for tests that commit."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


def analyze() -> None:
    """Update PostgreSQL's statistics within an open transaction; without them it may join hundreds of answers as if
    there were one."""
    if connection.vendor == "postgresql":
        # Only own tables: catalogues of the server are shared with other workers, whose transactions keep their locks.
        tables = ", ".join(map(connection.ops.quote_name, connection.introspection.table_names()))
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {tables}")
