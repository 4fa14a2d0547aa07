"""PostgreSQL backend that checks an idle connection by its socket instead of a query.

A server restart or an administrator may have closed a persistent connection. Django sends ``SELECT 1`` before each
request to find out; the state of the socket shows it without a round trip."""

import select
import zlib

from django.conf import settings
from django.db.backends.postgresql import base
from psycopg import OperationalError
from psycopg.pq import ConnStatus

from evaluation.storage.versions import refuse_newer_database

# Arbitrary first key of the advisory locks of `serve`; the second is a checksum of the host's name.
SERVE_LOCK = 20_711
# The server notices after 30 + 3 * 10 s that a host without power is gone.
DETECT_DEAD_HOST = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
HOLDER = """SELECT coalesce(host(client_addr), 'this machine'), to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ')
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND datname = current_database()"""


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL connection with a check that sends nothing."""

    def init_connection_state(self) -> None:
        """Prepare the session, and refuse a database of newer code."""
        super().init_connection_state()
        refuse_newer_database(self)

    def claim(self, part: str) -> str:
        """Reserve a part of ``serve`` while this connection is open; the session that has reserved it, in words.

        Any number of hosts may serve one database, but each worker needs a host name of its own. Behind a pooler
        nothing is reserved, because sessions are shared there."""
        if part != "worker" or "prepare_threshold" not in self.settings_dict["OPTIONS"]:
            return ""
        if self.connection is not None and not self.is_usable():
            self.close()
        key = [SERVE_LOCK, zlib.crc32(settings.CONCORD_HOST.encode()) & 0x7FFFFFFF]
        with self.cursor() as cursor:
            cursor.execute(DETECT_DEAD_HOST)
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
            if cursor.fetchone()[0]:
                return ""
            cursor.execute(HOLDER, key)
            address, since = cursor.fetchone() or ("another host", "a moment ago")
        return f"a process on {address} (host name {settings.CONCORD_HOST}, since {since})"

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
