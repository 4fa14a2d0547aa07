"""Bulk inserts and SQL below the ORM, for the few places with thousands of rows.

Building model objects and SQL for each row takes 0.5 to 2 ms, more than the database needs to store or find it
(docs/performance.md). All database checks still apply."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from django.db import connection, models, transaction
from django.db.models.expressions import Col

Convert = Callable[[Any], Any]
_encode_json = json.JSONEncoder(allow_nan=False).encode


def insert_values(
    model: type[models.Model], fields: Sequence[str], rows: Sequence[Sequence[Any]], *, ignore_conflicts: bool = False
) -> None:
    """Insert rows with one statement; values are in the order of ``fields``, foreign keys are ids named by their
    column.

    Unnamed columns get the database default: name every column without one. ``ignore_conflicts`` skips rows that
    violate a unique constraint.

    :raises IntegrityError: as any insert."""
    if not rows:
        return
    columns, converters = _columns_and_converters(model, tuple(fields), connection.vendor)
    names = ", ".join(connection.ops.quote_name(name) for name in columns)
    table = connection.ops.quote_name(model._meta.db_table)
    # Before the transaction, so that other writers do not wait for it.
    converted_rows = [_convert_row(row, converters) for row in rows]
    with transaction.atomic(), _cursor() as cursor:
        # COPY cannot ignore conflicts.
        if connection.vendor == "postgresql" and not ignore_conflicts:
            # Django passes the driver's copy through, so its errors must be translated to Django's.
            with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in converted_rows:
                    copy.write_row(row)
        # PostgreSQL prepares the statement once with separate values, which halves the time.
        else:
            placeholders = ", ".join(["%s"] * len(columns))
            conflict_clause = " ON CONFLICT DO NOTHING" if ignore_conflicts else ""
            statement = f"INSERT INTO {table} ({names}) VALUES ({placeholders}){conflict_clause}"  # noqa: S608 -- quoted
            cursor.executemany(statement, converted_rows)


def _convert_row(row: Sequence[Any], converters: Sequence[tuple[int, Convert]]) -> list[Any]:
    values = list(row)
    for index, convert in converters:
        if values[index] is not None:
            values[index] = convert(values[index])
    return values


@lru_cache(maxsize=64)
def _columns_and_converters(
    model: type[models.Model], fields: tuple[str, ...], vendor: str
) -> tuple[tuple[str, ...], tuple[tuple[int, Convert], ...]]:
    """Columns, and converters to the driver's types by column index where needed."""
    columns, converters = [], []
    for index, name in enumerate(fields):
        field = model._meta.get_field(name)
        if not isinstance(field, models.Field) or field.column is None:
            raise TypeError(f"{model.__name__}.{name} is not a column")
        columns.append(field.column)
        if convert := _converter(field, vendor):
            converters.append((index, convert))
    return tuple(columns), tuple(converters)


def _converter(field: models.Field[Any, Any], vendor: str) -> Convert | None:
    if isinstance(field, models.JSONField):
        return _encode_json
    if vendor == "postgresql" or not isinstance(field, models.DateTimeField | models.DecimalField | models.UUIDField):
        return None
    # The rows of a batch share their timestamp, which is formatted once.
    return lru_cache(maxsize=16)(lambda value: field.get_db_prep_save(value, connection))


ReadSpec: TypeAlias = "type[models.Model] | Columns | models.Field[Any, Any] | str"
NOW = {"sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", "postgresql": "STATEMENT_TIMESTAMP()"}
# Without waiting for the disk: a crash of PostgreSQL may lose the last 0.6 s of such transactions (three times
# wal_writer_delay), but none that a later durable commit follows. SQLite as configured here never waits.
ASYNC_COMMIT = {"sqlite": "NULL", "postgresql": "SET_CONFIG('synchronous_commit', 'off', TRUE)"}


class Columns:
    """Selected columns of a model; the primary key is always included."""

    def __init__(self, model: type[models.Model], *names: str) -> None:
        self.model, self.names = model, names

    def fields(self) -> list[models.Field[Any, Any]]:
        return [field for field in self.model._meta.concrete_fields if field.primary_key or field.name in self.names]


class Statement:
    """SQL statement, prepared once, with values as ``%(name)s``.

    A list follows ``IN``; an empty list matches nothing. PostgreSQL keeps the statement prepared per connection (but
    see ``CONCORD_POOLER``).

    Differences between the databases have names: ``{NOW}`` is the database time; ``{ASYNC_COMMIT}`` is a column that
    commits the transaction without waiting for the disk; ``locks`` is the table whose rows stay locked until the
    transaction ends (SQLite locks everything anyway).

    ``read`` describes the first columns of a row: a model (or :class:`Columns` of it) by its table alias, whose columns
    ``{alias}`` expands to, or a field under any name. A text replaces its name in the statement. Further columns are
    returned as the database gives them."""

    def __init__(self, text: str, /, *, locks: str = "", **read: ReadSpec) -> None:
        self.text, self.locks, self.read = text, locks, read
        self._prepared: dict[str, _PreparedStatement] = {}

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows: models (``None`` for an empty outer join), fields and other columns."""
        prepared = self._prepare()
        with _cursor() as cursor:
            cursor.execute(*_bind_values(prepared.text, values))
            return [prepared.convert_row(list(row)) for row in cursor.fetchall()]

    def first(self, **values: Any) -> tuple[Any, ...] | None:
        """First row, or ``None``."""
        return next(iter(self.rows(**values)), None)

    def run(self, **values: Any) -> int:
        """Execute a change and return the number of rows."""
        with _cursor() as cursor:
            cursor.execute(*_bind_values(self._prepare().text, values))
            return int(cursor.rowcount)

    def _prepare(self) -> _PreparedStatement:
        """Return the statement for the connected database, building it once."""
        if (prepared := self._prepared.get(connection.vendor)) is None:
            placeholders = {"NOW": NOW[connection.vendor], "ASYNC_COMMIT": ASYNC_COMMIT[connection.vendor]}
            parts: list[_ReadPart] = []
            for alias, kind in self.read.items():
                if isinstance(kind, str):
                    placeholders[alias] = kind
                    continue
                part = _read_part(alias, kind)
                parts.append(part)
                if part.model:
                    placeholders[alias] = ", ".join(f'{alias}."{field.column}"' for field in part.fields)
            text = self.text.format(**placeholders)
            if self.locks and connection.vendor == "postgresql":
                text += f" FOR NO KEY UPDATE OF {self.locks}"
            prepared = self._prepared[connection.vendor] = _PreparedStatement(text, parts)
        return prepared


def insert_rows(rows: Sequence[models.Model]) -> None:
    """Insert at least one new row of one model with one statement, and set their ``id``."""
    model = type(rows[0])
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for row in rows for field in fields]
    with _cursor() as cursor:
        cursor.execute(_insert_sql(model, len(rows)), values)
        for row, (key,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk, row._state.adding, row._state.db = key, False, connection.alias


@lru_cache(maxsize=64)
def _insert_sql(model: type[models.Model], count: int) -> str:
    columns = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    names, placeholders = ", ".join(f'"{name}"' for name in columns), ", ".join(["%s"] * len(columns))
    rows = ", ".join([f"({placeholders})"] * count)
    return f"INSERT INTO {model._meta.db_table} ({names}) VALUES {rows} RETURNING id"  # noqa: S608 -- names of ours


class _ReadPart(NamedTuple):
    """A model or a single field among the columns of a row."""

    alias: str
    model: type[models.Model] | None
    fields: Sequence[models.Field[Any, Any]]


def _read_part(alias: str, kind: type[models.Model] | Columns | models.Field[Any, Any]) -> _ReadPart:
    if isinstance(kind, Columns):
        return _ReadPart(alias, kind.model, kind.fields())
    if isinstance(kind, models.Field):
        return _ReadPart(alias, None, [kind])
    return _ReadPart(alias, kind, list(kind._meta.concrete_fields))


class _PreparedStatement:
    """Statement text for one database, with converters for its rows."""

    def __init__(self, text: str, parts: Sequence[_ReadPart]) -> None:
        self.text = text
        self.models: list[tuple[type[models.Model] | None, list[str], int, int, int]] = []
        self.converts: list[tuple[int, Sequence[Callable[..., Any]], Col]] = []
        self.width = 0
        for part in parts:
            key = next((index for index, field in enumerate(part.fields) if field.primary_key), 0)
            end = self.width + len(part.fields)
            names = [str(field.attname) for field in part.fields if part.model]
            self.models.append((part.model, names, self.width, end, self.width + key))
            for index, field in enumerate(part.fields, start=self.width):
                column = Col(part.alias, field)
                converters = [*connection.ops.get_db_converters(column), *column.get_db_converters(connection)]
                if converters:
                    self.converts.append((index, converters, column))
            self.width = end

    def convert_row(self, row: list[Any]) -> tuple[Any, ...]:
        """Convert a row to models, fields and other columns."""
        for index, converters, column in self.converts:
            for convert in converters:
                row[index] = convert(row[index], column, connection)
        values: list[Any] = []
        for model, names, start, end, key in self.models:
            if model is None or row[key] is None:
                values.append(row[start] if model is None else None)
            else:
                values.append(model.from_db(connection.alias, names, row[start:end]))
        return (*values, *row[self.width :])


def _cursor() -> Any:
    """Return a cursor; on PostgreSQL one with server-side parameters, since only such statements stay prepared."""
    if connection.vendor != "postgresql":
        return connection.cursor()
    # The import takes as long as a small command.
    from psycopg import Cursor

    connection.ensure_connection()
    # As Django creates a cursor, except for its class.
    database: Any = connection
    return database._prepare_cursor(Cursor(database.connection))


def _bind_values(text: str, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Expand lists to single parameters and format datetimes for the database."""
    parameters: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, list | tuple):
            element_values = {f"{name}_{index}": element for index, element in enumerate(value)}
            placeholders = ", ".join(f"%({key})s" for key in element_values) or "NULL"
            text = text.replace(f"%({name})s", f"({placeholders})")
            parameters |= element_values
        else:
            parameters[name] = connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
    return text, parameters
