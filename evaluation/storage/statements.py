"""Rows in and out by SQL below the ORM, for the few places where they come by the thousand.

Building model objects and SQL text anew for each costs half a millisecond to two, more than either database needs to
store or find the row (docs/performance.md). What the database checks it checks all the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from django.db import connection, models, transaction
from django.db.models.expressions import Col

Convert = Callable[[Any], Any]
_written = json.JSONEncoder(allow_nan=False).encode


def insert_values(
    model: type[models.Model], fields: Sequence[str], rows: Sequence[Sequence[Any]], *, ignore_conflicts: bool = False
) -> None:
    """Insert rows by one statement, the values in the order of the fields; foreign keys are given as ids under their
    column's name.

    Columns that are not named get the database's default: name every column that has none. With ``ignore_conflicts``
    rows that a unique constraint has already are left out.

    :raises IntegrityError: as any insert.
    """
    if not rows:
        return
    columns, converts = _plan(model, tuple(fields), connection.vendor)
    names = ", ".join(connection.ops.quote_name(name) for name in columns)
    table = connection.ops.quote_name(model._meta.db_table)
    ready = (_converted(row, converts) for row in rows)
    with transaction.atomic(), _cursor() as cursor:
        if connection.vendor == "postgresql" and not ignore_conflicts:  # COPY knows no conflicts
            # Django passes the driver's copy through as it is; its errors have to become Django's.
            with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in ready:
                    copy.write_row(row)
        else:  # on PostgreSQL prepared once, and with its values apart: half the time
            slots = ", ".join(["%s"] * len(columns))
            also = " ON CONFLICT DO NOTHING" if ignore_conflicts else ""
            statement = f"INSERT INTO {table} ({names}) VALUES ({slots}){also}"  # noqa: S608 -- quoted
            cursor.executemany(statement, list(ready))


def _converted(row: Sequence[Any], converts: Sequence[tuple[int, Convert]]) -> list[Any]:
    """The row as the driver takes it."""
    values = list(row)
    for place, convert in converts:
        if values[place] is not None:
            values[place] = convert(values[place])
    return values


@lru_cache(maxsize=64)
def _plan(
    model: type[models.Model], fields: tuple[str, ...], vendor: str
) -> tuple[tuple[str, ...], tuple[tuple[int, Convert], ...]]:
    """The columns, and by the place of a column what makes its values what the driver takes, where they are not."""
    columns, converts = [], []
    for place, name in enumerate(fields):
        field = model._meta.get_field(name)
        if not isinstance(field, models.Field) or field.column is None:
            raise TypeError(f"{model.__name__}.{name} is no column")
        columns.append(field.column)
        if convert := _convert(field, vendor):
            converts.append((place, convert))
    return tuple(columns), tuple(converts)


def _convert(field: models.Field[Any, Any], vendor: str) -> Convert | None:
    if isinstance(field, models.JSONField):
        return _written
    if vendor == "postgresql" or not isinstance(field, models.DateTimeField | models.DecimalField | models.UUIDField):
        return None
    # The rows of a batch share their date, which needs to be written once.
    return lru_cache(maxsize=16)(lambda value: field.get_db_prep_save(value, connection))


Read: TypeAlias = "type[models.Model] | Some | models.Field[Any, Any] | str"
NOW = {"sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", "postgresql": "STATEMENT_TIMESTAMP()"}
# A crash of a PostgreSQL server may take back the last 0.6 s of such transactions (three times wal_writer_delay), but
# none that others rely on: whatever is committed later takes it along. SQLite as it is set up here never waits.
UNHURRIED = {"sqlite": "NULL", "postgresql": "SET_CONFIG('synchronous_commit', 'off', TRUE)"}


class Some:
    """A model of which only some columns are read, the primary key always."""

    def __init__(self, model: type[models.Model], *names: str) -> None:
        self.model, self.names = model, names

    def fields(self) -> list[models.Field[Any, Any]]:
        """The fields of these columns."""
        return [one for one in self.model._meta.concrete_fields if one.primary_key or one.name in self.names]


class Statement:
    """SQL that is put together once, with its values as ``%(name)s``; a list stands after ``IN``, where an empty one
    matches nothing. A PostgreSQL server keeps it prepared for each connection (but see ``CONCORD_POOLER``).

    What both databases do not say alike has a name: ``{NOW}`` is the database's time, ``{UNHURRIED}`` a column that
    lets the transaction end without waiting for the disk, and ``locks`` names the table whose rows stay locked until
    the transaction ends, as all of SQLite does anyway.

    ``read`` says what the first columns of a row are: a model (or :class:`Some` of it) by the alias of its table, whose
    columns ``{alias}`` names, or a field, by any name; a text stands for itself where the statement names it. Further
    columns come as the database gives them.
    """

    def __init__(self, text: str, /, *, locks: str = "", **read: Read) -> None:
        self.text, self.locks, self.read = text, locks, read
        self._prepared: dict[str, _Prepared] = {}

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """What it finds: models (``None`` where an outer join found none), fields, and the other columns."""
        prepared = self._prepare()
        with _cursor() as cursor:
            cursor.execute(*_with_values(prepared.text, values))
            return [prepared.row(list(row)) for row in cursor.fetchall()]

    def first(self, **values: Any) -> tuple[Any, ...] | None:
        """The first row; ``None`` without one."""
        return next(iter(self.rows(**values)), None)

    def run(self, **values: Any) -> int:
        """Change rows; how many."""
        with _cursor() as cursor:
            cursor.execute(*_with_values(self._prepare().text, values))
            return int(cursor.rowcount)

    def _prepare(self) -> _Prepared:
        """The statement for the database that is connected, made once."""
        if (prepared := self._prepared.get(connection.vendor)) is None:
            said = {"NOW": NOW[connection.vendor], "UNHURRIED": UNHURRIED[connection.vendor]}
            parts: list[_Part] = []
            for alias, kind in self.read.items():
                if isinstance(kind, str):
                    said[alias] = kind
                    continue
                part = _part(alias, kind)
                parts.append(part)
                if part.model:
                    said[alias] = ", ".join(f'{alias}."{field.column}"' for field in part.fields)
            text = self.text.format(**said)
            if self.locks and connection.vendor == "postgresql":
                text += f" FOR NO KEY UPDATE OF {self.locks}"
            prepared = self._prepared[connection.vendor] = _Prepared(text, parts)
        return prepared


def insert(rows: Sequence[models.Model]) -> None:
    """Store new rows of one model, at least one, by one statement, and tell them their key ``id``."""
    model = type(rows[0])
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for row in rows for field in fields]
    with _cursor() as cursor:
        cursor.execute(_insertion(model, len(rows)), values)
        for row, (key,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk, row._state.adding, row._state.db = key, False, connection.alias


@lru_cache(maxsize=64)
def _insertion(model: type[models.Model], count: int) -> str:
    columns = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    names, slots = ", ".join(f'"{name}"' for name in columns), ", ".join(["%s"] * len(columns))
    rows = ", ".join([f"({slots})"] * count)
    return f"INSERT INTO {model._meta.db_table} ({names}) VALUES {rows} RETURNING id"  # noqa: S608 -- names of ours


class _Part(NamedTuple):
    """A model or a single field among the columns of a row."""

    alias: str
    model: type[models.Model] | None
    fields: Sequence[models.Field[Any, Any]]


def _part(alias: str, kind: type[models.Model] | Some | models.Field[Any, Any]) -> _Part:
    if isinstance(kind, Some):
        return _Part(alias, kind.model, kind.fields())
    if isinstance(kind, models.Field):
        return _Part(alias, None, [kind])
    return _Part(alias, kind, list(kind._meta.concrete_fields))


class _Prepared:
    """The text for one database, and how its rows are read."""

    def __init__(self, text: str, parts: Sequence[_Part]) -> None:
        self.text = text
        self.models: list[tuple[type[models.Model] | None, list[str], int, int, int]] = []
        self.converts: list[tuple[int, Sequence[Callable[..., Any]], Col]] = []
        self.width = 0
        for part in parts:
            key = next((place for place, field in enumerate(part.fields) if field.primary_key), 0)
            end = self.width + len(part.fields)
            names = [str(field.attname) for field in part.fields if part.model]
            self.models.append((part.model, names, self.width, end, self.width + key))
            for place, field in enumerate(part.fields, start=self.width):
                column = Col(part.alias, field)
                found = [*connection.ops.get_db_converters(column), *column.get_db_converters(connection)]
                if found:
                    self.converts.append((place, found, column))
            self.width = end

    def row(self, row: list[Any]) -> tuple[Any, ...]:
        """A row as models, fields and what else was asked for."""
        for place, several, column in self.converts:
            for convert in several:
                row[place] = convert(row[place], column, connection)
        found: list[Any] = []
        for model, names, start, end, key in self.models:
            if model is None or row[key] is None:
                found.append(row[start] if model is None else None)
            else:
                found.append(model.from_db(connection.alias, names, row[start:end]))
        return (*found, *row[self.width :])


def _cursor() -> Any:
    """A cursor; on PostgreSQL one whose values go beside the statement, as Django's own do not, for only such a
    statement can be kept prepared."""
    if connection.vendor != "postgresql":
        return connection.cursor()
    from psycopg import Cursor  # takes as long to import as a small command takes

    connection.ensure_connection()
    database: Any = connection  # as a cursor of its own would be made, but for its class
    return database._prepare_cursor(Cursor(database.connection))


def _with_values(text: str, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement and what is bound to it: each element of a list by itself, times as the database writes them."""
    bound: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, list | tuple):
            several = {f"{name}_{place}": one for place, one in enumerate(value)}
            slots = ", ".join(f"%({one})s" for one in several) or "NULL"
            text = text.replace(f"%({name})s", f"({slots})")
            bound |= several
        else:
            bound[name] = connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
    return text, bound
