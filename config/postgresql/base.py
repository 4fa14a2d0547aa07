"""Django's PostgreSQL, whose connections are looked at before a request instead of asked.

A connection that is kept may have ended meanwhile: a server was restarted, an administrator ended it. Django asks each
with ``SELECT 1`` before a request uses it. The end of a connection can be read from its socket, which needs no answer.
"""

import select

from django.db.backends.postgresql import base
from psycopg import OperationalError
from psycopg.pq import ConnStatus


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that knows its end when it sees it."""

    def is_usable(self) -> bool:
        """Whether the server has not ended it; what it said meanwhile is read."""
        if self.connection is None:
            return False
        line = self.connection.pgconn
        waiting = select.poll()
        try:
            waiting.register(line.socket, select.POLLIN)
            while waiting.poll(0):
                line.consume_input()  # raises at the end of the line
        except OperationalError:
            return False
        return bool(line.status == ConnStatus.OK)
