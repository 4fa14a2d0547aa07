"""Rules over several rows that the database keeps against everybody: triggers, on SQLite and PostgreSQL.

A constraint sees one row, a unique index one table; a guard sees others too. Unlike append-only triggers, which a
migration may leave in place, guards name tables beside their own, and SQLite refuses to rebuild a table that a trigger
elsewhere names. So ``migrate`` takes all of them away first and puts them back last: see :func:`away`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

_migrating: ContextVar[bool] = ContextVar("guards are away", default=False)


@dataclass(frozen=True, slots=True)
class Guard:
    """A change of a table that is refused as an :class:`django.db.IntegrityError` which says ``says``.

    ``on`` is ``INSERT`` or ``UPDATE OF`` columns. The row is refused where ``when``, which reads nothing but ``NEW``
    and ``OLD``, and ``broken``, which may look anywhere, are both true; the SQL of both is read alike by both
    databases. ``locks`` is a query whose rows PostgreSQL locks first, so that of two transactions at the same moment
    the second sees what the first did; SQLite has one writer at a time.
    """

    name: str
    table: str
    on: str
    says: str
    when: str = "TRUE"
    broken: str = "TRUE"
    locks: str = ""

    @property
    def trigger(self) -> str:
        """The trigger's name, and on PostgreSQL its function's."""
        return f"guard_{self.name}"

    def sql(self, vendor: str) -> list[str]:
        """Statements that create the guard where it is not there."""
        if vendor == "postgresql":
            lock = f"PERFORM 1 FROM {self.locks} FOR NO KEY UPDATE;" if self.locks else ""
            return [
                f"CREATE OR REPLACE FUNCTION {self.trigger}() RETURNS trigger LANGUAGE plpgsql AS $guard$ "
                f"BEGIN {lock} IF {self.broken} THEN RAISE EXCEPTION '{self.says}' "
                f"USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = '{self.trigger}'; END IF; "
                "RETURN NEW; END $guard$",
                f"CREATE OR REPLACE TRIGGER {self.trigger} BEFORE {self.on} ON {self.table} "
                f"FOR EACH ROW WHEN ({self.when}) EXECUTE FUNCTION {self.trigger}()",
            ]
        return [
            f"CREATE TRIGGER {self.trigger} BEFORE {self.on} ON {self.table} "
            f"WHEN ({self.when}) AND ({self.broken}) BEGIN SELECT RAISE(ABORT, '{self.says}'); END"
        ]


_REGISTERED: dict[str, Sequence[Guard]] = {}


def guards() -> list[Guard]:
    """All registered guards."""
    return [guard for several in _REGISTERED.values() for guard in several]


def register(app: str, guards_of_app: Sequence[Guard]) -> None:
    """Register the guards of an app, in its ``AppConfig.ready()``."""
    _REGISTERED[app] = guards_of_app


def install(database: BaseDatabaseWrapper | None = None) -> None:
    """Create every guard as it is defined now; safe to repeat."""
    database = database or connection
    with transaction.atomic(using=database.alias), database.cursor() as cursor:
        remove(database)
        for guard in guards():
            for statement in guard.sql(database.vendor):
                cursor.execute(statement)


def remove(database: BaseDatabaseWrapper | None = None) -> None:
    """Take all guards away, also those that are no longer defined."""
    database = database or connection
    with database.cursor() as cursor:
        for name, table in _present(database):
            cursor.execute(f"DROP TRIGGER {name}" + (f" ON {table}" if database.vendor == "postgresql" else ""))


@contextmanager
def away(database: BaseDatabaseWrapper) -> Iterator[None]:
    """No guards inside where there is anything to migrate, and all of them after it, also after an error; except where
    migrations are left, because guards are made for the newest tables. :func:`missing` is empty inside."""
    if not _is_migrated(database):
        remove(database)
    token = _migrating.set(True)
    try:
        yield
    finally:
        _migrating.reset(token)
        if _is_migrated(database):
            install(database)


@contextmanager
def excused(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Where migrations are left, :func:`missing` is empty inside: no guard is expected before they have run."""
    token = _migrating.set(not _is_migrated(database))
    try:
        yield
    finally:
        _migrating.reset(token)


def missing() -> list[str]:
    """Names of the guards that are not there."""
    if _migrating.get():
        return []
    present = {name for name, _ in _present(connection)}
    return [guard.name for guard in guards() if guard.trigger not in present]


def _present(database: BaseDatabaseWrapper) -> list[tuple[str, str]]:
    with database.cursor() as cursor:
        if database.vendor == "postgresql":
            cursor.execute(
                "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE 'guard\\_%' "
                "AND tgenabled <> 'D' AND NOT tgisinternal"
            )
        else:
            cursor.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'guard_%'")
        return [(str(name), str(table)) for name, table in cursor.fetchall()]


def _is_migrated(database: BaseDatabaseWrapper) -> bool:
    executor = MigrationExecutor(database)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())
