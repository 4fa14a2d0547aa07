"""Triggers that enforce rules over several rows, on SQLite and PostgreSQL.

Constraints check one row and unique indexes one table; guards can read other tables. SQLite refuses to rebuild a table
that another table's trigger names, so ``migrate`` removes all guards first and installs them last: see
:func:`suspended`."""

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
    """Rule that refuses a change of a table with :class:`django.db.IntegrityError` and ``message``.

    ``event``: ``INSERT`` or ``UPDATE OF`` columns. ``when`` (reads only ``NEW`` and ``OLD``) and ``violated_when`` (may
    read any table): SQL conditions for both databases; the change is refused if both hold. ``locks``: query whose rows
    PostgreSQL locks first, so that of two concurrent transactions the second sees the result of the first; SQLite has a
    single writer anyway."""

    name: str
    table: str
    event: str
    message: str
    when: str = "TRUE"
    violated_when: str = "TRUE"
    locks: str = ""

    @property
    def trigger(self) -> str:
        """Name of the trigger, and of its function on PostgreSQL."""
        return f"guard_{self.name}"

    def sql(self, vendor: str) -> list[str]:
        """Statements that create the guard."""
        if vendor == "postgresql":
            lock = f"PERFORM 1 FROM {self.locks} FOR NO KEY UPDATE;" if self.locks else ""
            return [
                f"CREATE OR REPLACE FUNCTION {self.trigger}() RETURNS trigger LANGUAGE plpgsql AS $guard$ "
                f"BEGIN {lock} IF {self.violated_when} THEN RAISE EXCEPTION '{self.message}' "
                f"USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = '{self.trigger}'; END IF; "
                "RETURN NEW; END $guard$",
                f"CREATE OR REPLACE TRIGGER {self.trigger} BEFORE {self.event} ON {self.table} "
                f"FOR EACH ROW WHEN ({self.when}) EXECUTE FUNCTION {self.trigger}()",
            ]
        return [
            f"CREATE TRIGGER {self.trigger} BEFORE {self.event} ON {self.table} "
            f"WHEN ({self.when}) AND ({self.violated_when}) BEGIN SELECT RAISE(ABORT, '{self.message}'); END"
        ]


_REGISTERED: dict[str, Sequence[Guard]] = {}


def guards() -> list[Guard]:
    """All registered guards."""
    return [guard for app_guards in _REGISTERED.values() for guard in app_guards]


def register(app: str, app_guards: Sequence[Guard]) -> None:
    """Register an app's guards; call it in ``AppConfig.ready()``."""
    _REGISTERED[app] = app_guards


def install(database: BaseDatabaseWrapper | None = None) -> None:
    """Create all guards in their current definition; idempotent."""
    database = database or connection
    with transaction.atomic(using=database.alias), database.cursor() as cursor:
        remove(database)
        for guard in guards():
            for statement in guard.sql(database.vendor):
                cursor.execute(statement)


def remove(database: BaseDatabaseWrapper | None = None) -> None:
    """Remove all guards, including those no longer defined."""
    database = database or connection
    with database.cursor() as cursor:
        for name, table in _installed_triggers(database):
            cursor.execute(f"DROP TRIGGER {name}" + (f" ON {table}" if database.vendor == "postgresql" else ""))


@contextmanager
def suspended(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Remove the guards while migrations are pending, and install them afterwards, also after an error.

    They are not installed if migrations remain, because guards need the newest tables. :func:`missing_guards` is empty
    inside."""
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
def bypassed(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Make :func:`missing_guards` empty while migrations are pending."""
    token = _migrating.set(not _is_migrated(database))
    try:
        yield
    finally:
        _migrating.reset(token)


def missing_guards() -> list[str]:
    """Names of registered guards without a trigger."""
    if _migrating.get():
        return []
    present = {name for name, _ in _installed_triggers(connection)}
    return [guard.name for guard in guards() if guard.trigger not in present]


def _installed_triggers(database: BaseDatabaseWrapper) -> list[tuple[str, str]]:
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
