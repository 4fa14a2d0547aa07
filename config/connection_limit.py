"""Limit of open connections per client address, in each web process.

granian accepts connections itself and has no such limit. A thread therefore looks through the sockets of the process
and closes the newest connections of an address that has too many (docs/decisions/0021)."""

import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from evaluation.core.addresses import IPNetwork, client_network, is_in_networks

log = logging.getLogger("concord.web")
# Browsers open six; the rest is for people who share an address.
MAX_CONNECTIONS_PER_ADDRESS = 256
# Within this time a process takes at most as many connections as `evaluation/worker/serving.py` lets it have.
CHECK_SECONDS = 0.5
LOG_SECONDS = 60.0


def enforce_connection_limit(exempt: Collection[IPNetwork]) -> None:
    """Close excess connections while the process runs, and log which addresses had too many, at most once a minute.

    :param exempt: networks of trusted proxies."""
    closed: Counter[str] = Counter()
    logged_at = 0.0
    while True:
        time.sleep(CHECK_SECONDS)
        try:
            closed += close_excess_connections(exempt)
        except OSError:
            log.exception("cannot count the connections of this process")
        if closed and time.monotonic() - logged_at > LOG_SECONDS:
            counts = ", ".join(f"{count} of {address}" for address, count in closed.most_common(10))
            log.warning("closed connections above the limit of %s per address: %s", MAX_CONNECTIONS_PER_ADDRESS, counts)
            closed.clear()
            logged_at = time.monotonic()


def close_excess_connections(exempt: Collection[IPNetwork]) -> Counter[str]:
    """Close the newest connections of each address that has too many; returns how many, by address.

    A process gives new connections its lowest free file number, so the oldest ones have the lowest numbers."""
    numbers = sorted(int(name) for name in os.listdir("/dev/fd"))
    open_connections: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    if len(numbers) <= MAX_CONNECTIONS_PER_ADDRESS:
        return closed
    ports = set()
    for number in numbers:
        # Files that are not sockets, and those that were closed meanwhile.
        with suppress(OSError), _socket(number) as connection:
            if connection.family not in {socket.AF_INET, socket.AF_INET6}:
                continue
            port = connection.getsockname()[1]
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                ports.add(port)
            # Connections to a database or a judge have another port here.
            elif port in ports:
                peer = connection.getpeername()[0]
                address = client_network(peer)
                open_connections[address] += 1
                if open_connections[address] > MAX_CONNECTIONS_PER_ADDRESS and not is_in_networks(peer, exempt):
                    connection.shutdown(socket.SHUT_RDWR)
                    closed[address] += 1
    return closed


@contextmanager
def _socket(number: int) -> Iterator[socket.socket]:
    """Open a second handle of a socket, which stays valid if the server closes its own meanwhile."""
    copy = os.dup(number)
    try:
        connection = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
    with connection:
        yield connection
