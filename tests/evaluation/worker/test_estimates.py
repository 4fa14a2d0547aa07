"""PostgreSQL is made to look again where a run has many scores; nothing else is asked for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluation.judges.shipped import baseline_judge, profile_row
from evaluation.models import Run, Score
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker import database
from evaluation.worker.lifecycle import start
from tests.factories import make_answer_set

pytestmark = pytest.mark.django_db
ON_POSTGRESQL = connection.vendor == "postgresql"


def looks(monkeypatch: Any, many: int) -> list[str]:
    """The statements by which tables are looked at while a run with a few scores comes to its end."""
    monkeypatch.setattr(database, "MIN_SCORES", many)
    answers = make_answer_set()
    run = prepare_run(answers, profile_row(answers.project, "graphrag"), judge=baseline_judge(answers.project, "en"))
    start(run)
    with CaptureQueriesContext(connection) as asked:
        drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETED
    return [one["sql"] for one in asked.captured_queries if one["sql"].startswith("ANALYZE")]


def test_the_tables_of_a_run_with_many_scores_are_looked_at_once(monkeypatch: Any) -> None:
    found = looks(monkeypatch, many=3)
    assert len(found) == ON_POSTGRESQL
    assert all(model._meta.db_table in found[0] for model in database.ANALYZED_MODELS if found)


@pytest.mark.skipif(not ON_POSTGRESQL, reason="SQLite keeps no estimates that a run could outdate")
def test_scores_of_an_open_transaction_are_counted(monkeypatch: Any) -> None:
    looks(monkeypatch, many=3)
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = %s", [Score._meta.db_table])
        assert cursor.fetchone() == (Score.objects.count(),)


def test_a_run_with_few_costs_no_look(monkeypatch: Any) -> None:
    assert looks(monkeypatch, many=1_000) == []
