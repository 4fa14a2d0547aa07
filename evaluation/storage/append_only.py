"""Base models, and the triggers that enforce append-only tables on SQLite and PostgreSQL.

SQLite drops a table's triggers whenever a migration rebuilds the table. Every such migration therefore ends with
:func:`install`, and ``evaluation/checks.py`` checks that all triggers exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar

from django.apps import apps
from django.conf import settings
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

#: An import that takes longer starts again with another set. ``purge`` deletes the rows of the former one.
UNFINISHED_LIMIT = timedelta(days=1)


class TimestampedModel(models.Model):
    """Row with its creation time.

    The audit log holds digests of tables, called seals (``evaluation/accounts/audit.py``): of the ``sealed_fields``,
    which never change, and of all columns of append-only tables. They leave out ``purged_rows``, which ``purge``
    deletes, and rows of an unfinished set, whose column is at the path ``unfinished``."""

    sealed_fields: ClassVar[tuple[str, ...]] = ()
    purged_rows: ClassVar[dict[str, Any]] = {}
    unfinished: ClassVar[str] = ""

    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        abstract = True

    @classmethod
    def unsupported(cls, rows: models.QuerySet[Any]) -> Iterable[int]:
        """Primary keys of the rows that contradict other tables or a content hash; checked before rows are sealed."""
        return ()


class AppendOnly(TimestampedModel):
    """Row that is inserted and never changed or deleted, enforced by database triggers.

    ``mutable_while`` names a column: while it is true, the row may be changed. Tables with ``is_digested`` are sealed.
    The texts of ``erasable`` columns have a digest of their own, because ``purge`` replaces them; they are personal
    texts of the user at the path ``author_path``, if there is one. ``erasure_filter`` restricts the rows to erase."""

    mutable_while: ClassVar[str] = ""
    is_digested: ClassVar[bool] = True
    erasable: ClassVar[tuple[str, ...]] = ()
    author_path: ClassVar[str] = ""
    erasure_filter: ClassVar[dict[str, Any]] = {}

    class Meta:
        abstract = True


class PausableEndpoint(models.Model):
    """Network endpoint that may be paused.

    No worker calls it before ``cooldown_until``. ``down_since``: start of a series of transient faults; ``fault``: the
    last of them. During an outage, one call at a time probes the endpoint."""

    cooldown_until = models.DateTimeField(_("paused until"), null=True, blank=True, editable=False)
    down_since = models.DateTimeField(_("not responding since"), null=True, blank=True, editable=False)
    fault = models.CharField(_("last error"), max_length=30, blank=True, default="", editable=False)

    class Meta:
        abstract = True


class Authored(models.Model):
    """Row with its creator; empty if the product itself created it."""

    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("created by"),
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )

    class Meta:
        abstract = True


_VERBS = ("update", "delete")
_PG_FUNCTION = """
CREATE OR REPLACE FUNCTION concord_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'append-only table % refuses %', TG_TABLE_NAME, TG_OP
  USING ERRCODE = 'integrity_constraint_violation'; END $$
"""


def append_only_tables() -> dict[str, str]:
    """All append-only tables, sorted, with the column ``mutable_while``."""
    return dict(sorted((m._meta.db_table, m.mutable_while) for m in apps.get_models() if issubclass(m, AppendOnly)))


def _trigger(table: str, verb: str) -> str:
    return f"append_only_{verb}_{table}"


def install(_apps: object = None, schema_editor: Any = None) -> None:
    """Create the missing triggers of all existing append-only tables; idempotent.

    Takes the arguments of ``RunPython``, so that migrations can use it directly."""
    database = connection if schema_editor is None else schema_editor.connection
    with database.cursor() as cursor:
        existing = set(database.introspection.table_names(cursor))
        if database.vendor == "postgresql":
            cursor.execute(_PG_FUNCTION)
        for table, mutable_while in append_only_tables().items():
            for verb in _VERBS if table in existing else ():
                _create(database, cursor, table, verb, f"WHEN (NOT OLD.{mutable_while}) " if mutable_while else "")


def _create(database: BaseDatabaseWrapper, cursor: Any, table: str, verb: str, condition: str) -> None:
    name = _trigger(table, verb)
    if database.vendor == "postgresql":
        cursor.execute(
            f'CREATE OR REPLACE TRIGGER "{name}" BEFORE {verb.upper()} ON "{table}" '
            f"FOR EACH ROW {condition}EXECUTE FUNCTION concord_refuse()"
        )
        if verb == "delete":
            cursor.execute(
                f'CREATE OR REPLACE TRIGGER "{_trigger(table, "truncate")}" BEFORE TRUNCATE ON "{table}" '
                "FOR EACH STATEMENT EXECUTE FUNCTION concord_refuse()"
            )
    else:
        cursor.execute(
            f'CREATE TRIGGER IF NOT EXISTS "{name}" BEFORE {verb.upper()} ON "{table}" {condition}'
            f"BEGIN SELECT RAISE(ABORT, 'append-only table {table} refuses {verb.upper()}'); END"
        )


def uninstall() -> None:
    """Remove all triggers inside a transaction, for ``purge`` and for tests that flush the database."""
    with connection.cursor() as cursor:
        existing = set(connection.introspection.table_names(cursor))
        for table in set(append_only_tables()) & existing:
            for verb in (*_VERBS, "truncate"):
                suffix = f' ON "{table}"' if connection.vendor == "postgresql" else ""
                cursor.execute(f'DROP TRIGGER IF EXISTS "{_trigger(table, verb)}"{suffix}')


@contextmanager
def suspended() -> Iterator[None]:
    """Remove the triggers inside the context and restore them afterwards, for tests."""
    uninstall()
    try:
        yield
    finally:
        install()


def tables_without_triggers() -> list[str]:
    """Append-only tables without all their triggers."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT tgname FROM pg_trigger WHERE tgname LIKE 'append_only_%%' AND tgenabled <> 'D'")
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        # PostgreSQL truncates identifiers to 63 bytes.
        present = {row[0] for row in cursor.fetchall()}
        existing = set(connection.introspection.table_names(cursor))
    return [
        t for t in append_only_tables() if t in existing and any(_trigger(t, v)[:63] not in present for v in _VERBS)
    ]
