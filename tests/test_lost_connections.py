"""A PostgreSQL connection that ended while idle is detected before a request uses it, without a query."""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="an embedded database has no line that ends"),
    pytest.mark.both_databases,
]


@pytest.fixture
def second_connection() -> Iterator[Any]:
    """Second database connection beside the test's own."""
    new_connection: Any = connection.copy()
    new_connection.connect()
    yield new_connection
    new_connection.close()


def backend_pid(database: Any) -> int:
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_connection_ended_by_server_is_replaced(second_connection: Any) -> None:
    old_pid = backend_pid(second_connection)
    assert second_connection.is_usable()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [old_pid])  # waits until it is gone
        assert cursor.fetchone()[0]
    assert not second_connection.is_usable()
    second_connection.health_check_enabled, second_connection.health_check_done = (
        True,
        False,
    )  # as at the beginning of a request
    assert backend_pid(second_connection) != old_pid


def test_server_notification_does_not_end_the_connection(second_connection: Any) -> None:
    with second_connection.cursor() as cursor:
        cursor.execute("LISTEN said")
    number = backend_pid(second_connection)
    speaker: Any = connection.copy()
    with speaker.cursor() as cursor:
        cursor.execute("NOTIFY said, 'something'")
    speaker.close()
    assert select.select([second_connection.connection.pgconn.socket], [], [], 10)[0]  # it has come
    assert second_connection.is_usable()
    assert backend_pid(second_connection) == number


def test_usability_check_sends_no_query(second_connection: Any) -> None:
    second_connection.force_debug_cursor = True
    assert second_connection.is_usable()
    assert list(second_connection.queries_log) == []
