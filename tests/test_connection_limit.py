"""The newest connections of an address beyond the limit are closed, and no others."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ipaddress import ip_network

import pytest

from config import connection_limit
from config.connection_limit import close_excess_connections

LIMIT = 3
Connect = Callable[[str, int], list[socket.socket]]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Open connections from an address of this machine to a server in this process; returns the ends of the clients."""
    monkeypatch.setattr(connection_limit, "MAX_CONNECTIONS_PER_ADDRESS", LIMIT)
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def open_connections(address: str, count: int) -> list[socket.socket]:
            clients = []
            for _ in range(count):
                client = socket.create_connection(server.getsockname(), source_address=(address, 0))
                clients.append(stack.enter_context(client))
                stack.enter_context(server.accept()[0])
            return clients

        yield open_connections


def open_count(connections: list[socket.socket]) -> int:
    """Count the connections that the server has not closed, and check that these are the oldest."""
    states = []
    for connection in connections:
        connection.setblocking(False)
        try:
            states.append(bool(connection.recv(1)))
        except BlockingIOError:
            states.append(True)
    assert states == sorted(states, reverse=True)
    return sum(states)


def test_newest_connections_beyond_the_limit_are_closed(connect: Connect) -> None:
    excess, others = connect("127.0.0.1", 9), connect("127.0.0.2", LIMIT)
    assert close_excess_connections([]) == {"127.0.0.1": 6}
    assert (open_count(excess), open_count(others)) == (LIMIT, LIMIT)


def test_proxies_may_have_any_number_of_connections(connect: Connect) -> None:
    excess, of_proxy = connect("127.0.0.1", 9), connect("127.0.0.2", 9)
    close_excess_connections([ip_network("127.0.0.2/32")])
    assert (open_count(excess), open_count(of_proxy)) == (LIMIT, 9)


def test_connections_to_other_servers_are_not_counted(connect: Connect) -> None:
    """The ends of the clients are connections of this process to 127.0.0.1 as well."""
    clients = connect("127.0.0.2", 9)
    close_excess_connections([ip_network("127.0.0.2/32")])
    assert open_count(clients) == 9
