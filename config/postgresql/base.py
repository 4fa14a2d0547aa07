"""PostgreSQL backend that checks an idle connection by its socket instead of a query.

A server restart or an administrator may have closed a persistent connection. Django sends ``SELECT 1`` before each
request to find out; the state of the socket shows it without a round trip."""

import select

from django.db.backends.postgresql import base
from psycopg import OperationalError
from psycopg.pq import ConnStatus


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL connection with a check that sends nothing."""

    def is_usable(self) -> bool:
        """Return whether the connection is still open. Reads pending notices of the server."""
        if self.connection is None:
            return False
        pgconn = self.connection.pgconn
        poller = select.poll()
        try:
            poller.register(pgconn.socket, select.POLLIN)
            while poller.poll(0):
                # Raises if the server closed the connection.
                pgconn.consume_input()
        except OperationalError:
            return False
        return bool(pgconn.status == ConnStatus.OK)
