"""A PostgreSQL connection that ended while nobody used it is noticed before a request uses it (T7), without asking."""

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
def other() -> Iterator[Any]:
    """A connection beside the test's own."""
    one: Any = connection.copy()
    one.connect()
    yield one
    one.close()


def number_of(one: Any) -> int:
    with one.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_a_connection_that_the_server_ended_is_replaced(other: Any) -> None:
    ended = number_of(other)
    assert other.is_usable()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])  # waits until it is gone
        assert cursor.fetchone()[0]
    assert not other.is_usable()
    other.health_check_enabled, other.health_check_done = True, False  # as at the beginning of a request
    assert number_of(other) != ended


def test_what_the_server_says_meanwhile_is_no_end(other: Any) -> None:
    with other.cursor() as cursor:
        cursor.execute("LISTEN said")
    number = number_of(other)
    speaker: Any = connection.copy()
    with speaker.cursor() as cursor:
        cursor.execute("NOTIFY said, 'something'")
    speaker.close()
    assert select.select([other.connection.pgconn.socket], [], [], 10)[0]  # it has come
    assert other.is_usable()
    assert number_of(other) == number


def test_looking_asks_the_server_nothing(other: Any) -> None:
    other.force_debug_cursor = True
    assert other.is_usable()
    assert list(other.queries_log) == []
