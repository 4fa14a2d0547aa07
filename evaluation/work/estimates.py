"""What PostgreSQL believes of tables that grew at once."""

from __future__ import annotations

from django.db import connection

from evaluation.models import Answer, Context, Question, Run, Score, WorkUnit

MANY = 1_000  # scores
LOOKED_AT = (Question, Answer, Context, Score, WorkUnit)


def look_again(run: Run) -> None:
    """Have PostgreSQL count anew what a run with many scores is joined from.

    Its own look comes a minute later, or not at all where a run is a small part of a table. Until then it may think
    that a run of 20,000 scores has one, and compare each of them with every other: minutes for one figure. SQLite plans
    by rules that such a run does not mislead.
    """
    if connection.vendor != "postgresql" or not _has_many(run):
        return
    names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in LOOKED_AT)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {names}")


def _has_many(run: Run) -> bool:
    return len(Score.objects.filter(run=run).order_by()[:MANY].values_list("pk", flat=True)) == MANY
