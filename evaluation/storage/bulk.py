"""Many new rows of one table in one statement, below the ORM: for the one place where rows are made by the thousand.

Building model objects and SQL text for each row costs more than storing it (docs/performance.md); these rows are given
as plain values instead. What the database checks (constraints, triggers, foreign keys) it checks all the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from django.db import connection, models, transaction

Convert = Callable[[Any], Any]


def insert(model: type[models.Model], fields: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows, the values in the order of the fields; foreign keys are given as ids under their column's name.

    Columns that are not named get the database's default: name every column that has none.

    :raises IntegrityError: as any insert.
    """
    if not rows:
        return
    columns, converts = _plan(model, tuple(fields), connection.vendor)
    names = ", ".join(connection.ops.quote_name(name) for name in columns)
    table = connection.ops.quote_name(model._meta.db_table)
    ready = (tuple(c(v) if c and v is not None else v for c, v in zip(converts, row, strict=True)) for row in rows)
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Django passes the driver's copy through as it is; its errors have to become Django's.
            with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in ready:
                    copy.write_row(row)
        else:
            slots = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({slots})", list(ready))  # noqa: S608 -- quoted


@lru_cache(maxsize=64)
def _plan(
    model: type[models.Model], fields: tuple[str, ...], vendor: str
) -> tuple[tuple[str, ...], tuple[Convert | None, ...]]:
    """The columns, and for each what makes a value what the driver takes, where that is not the value itself."""
    columns, converts = [], []
    for name in fields:
        field = model._meta.get_field(name)
        if not isinstance(field, models.Field) or field.column is None:
            raise TypeError(f"{model.__name__}.{name} is no column")
        columns.append(field.column)
        converts.append(_convert(field, vendor))
    return tuple(columns), tuple(converts)


def _convert(field: models.Field[Any, Any], vendor: str) -> Convert | None:
    if isinstance(field, models.JSONField):
        return lambda value: json.dumps(value, allow_nan=False)
    if vendor == "postgresql" or not isinstance(field, models.DateTimeField | models.DecimalField | models.UUIDField):
        return None
    # The rows of a batch share their date, which needs to be written once.
    return lru_cache(maxsize=16)(lambda value: field.get_db_prep_save(value, connection))
