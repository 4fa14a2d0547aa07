"""Base classes of tables, and the triggers that make append-only ones append-only, on SQLite and PostgreSQL.

SQLite drops a table's triggers whenever a migration rebuilds it, so every migration that touches such a table ends
with :func:`install`, and ``evaluation/checks.py`` looks whether they are all there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.apps import apps
from django.conf import settings
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class Row(models.Model):
    """A row that knows when it was made."""

    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        abstract = True


class AppendOnly(Row):
    """A row that is inserted and never changed or deleted; triggers in the database refuse both.

    ``evaluation/storage/append_only.py`` installs the triggers for every subclass. Of tables that are ``in_seals`` the
    audit log holds digests, of all columns but the ``erasable`` ones, which hold what people wrote: the person that
    the path ``written_by`` leads to, whose rows ``erased_where`` narrows.
    """

    in_seals: ClassVar[bool] = False
    erasable: ClassVar[tuple[str, ...]] = ()
    written_by: ClassVar[str] = ""
    erased_where: ClassVar[dict[str, Any]] = {}

    class Meta:
        abstract = True


class Restable(models.Model):
    """Somebody who is called over the network, and may not be called at present: no worker calls before
    ``cooldown_until``. ``down_since`` is when one call after the other began to end with what passes, ``fault`` how the
    last one ended; while it is there a single call at a time finds out whether that is over."""

    cooldown_until = models.DateTimeField(_("resting until"), null=True, blank=True, editable=False)
    down_since = models.DateTimeField(_("not answering since"), null=True, blank=True, editable=False)
    fault = models.CharField(_("last fault"), max_length=30, blank=True, default="", editable=False)

    class Meta:
        abstract = True


class Authored(models.Model):
    """A row that a person made; empty where the product itself did."""

    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("made by"),
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


def tables() -> list[str]:
    """Names of all append-only tables, sorted."""
    return sorted(m._meta.db_table for m in apps.get_models() if issubclass(m, AppendOnly))


def _trigger(table: str, verb: str) -> str:
    return f"append_only_{verb}_{table}"


def install(_apps: object = None, schema_editor: Any = None) -> None:
    """Create the missing triggers of every append-only table that exists; safe to repeat.

    Takes what ``RunPython`` passes, so that a migration can name it directly.
    """
    database = connection if schema_editor is None else schema_editor.connection
    with database.cursor() as cursor:
        existing = set(database.introspection.table_names(cursor))
        if database.vendor == "postgresql":
            cursor.execute(_PG_FUNCTION)
        for table in set(tables()) & existing:
            for verb in _VERBS:
                _create(database, cursor, table, verb)


def _create(database: BaseDatabaseWrapper, cursor: Any, table: str, verb: str) -> None:
    name = _trigger(table, verb)
    if database.vendor == "postgresql":
        cursor.execute(
            f'CREATE OR REPLACE TRIGGER "{name}" BEFORE {verb.upper()} ON "{table}" '
            "FOR EACH ROW EXECUTE FUNCTION concord_refuse()"
        )
        if verb == "delete":
            cursor.execute(
                f'CREATE OR REPLACE TRIGGER "{_trigger(table, "truncate")}" BEFORE TRUNCATE ON "{table}" '
                "FOR EACH STATEMENT EXECUTE FUNCTION concord_refuse()"
            )
    else:
        cursor.execute(
            f'CREATE TRIGGER IF NOT EXISTS "{name}" BEFORE {verb.upper()} ON "{table}" '
            f"BEGIN SELECT RAISE(ABORT, 'append-only table {table} refuses {verb.upper()}'); END"
        )


def uninstall() -> None:
    """Remove all triggers. For tests that flush the database, and for ``purge``, in a transaction."""
    with connection.cursor() as cursor:
        existing = set(connection.introspection.table_names(cursor))
        for table in set(tables()) & existing:
            for verb in (*_VERBS, "truncate"):
                suffix = f' ON "{table}"' if connection.vendor == "postgresql" else ""
                cursor.execute(f'DROP TRIGGER IF EXISTS "{_trigger(table, verb)}"{suffix}')


@contextmanager
def suspended() -> Iterator[None]:
    """Triggers are away inside and back after, whatever happens; for tests."""
    uninstall()
    try:
        yield
    finally:
        install()


def missing() -> list[str]:
    """Append-only tables whose triggers are not all there."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT tgname FROM pg_trigger WHERE tgname LIKE 'append_only_%%' AND tgenabled <> 'D'")
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        # PostgreSQL cuts identifiers at 63 bytes.
        present = {row[0] for row in cursor.fetchall()}
        existing = set(connection.introspection.table_names(cursor))
    return [t for t in tables() if t in existing and any(_trigger(t, v)[:63] not in present for v in _VERBS)]
