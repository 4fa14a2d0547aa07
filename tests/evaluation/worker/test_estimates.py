"""PostgreSQL analyzes its tables after a run with many scores, and only then."""

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


def analyze_statements(monkeypatch: Any, min_scores: int) -> list[str]:
    """``ANALYZE`` statements executed while a small run completes."""
    monkeypatch.setattr(database, "MIN_SCORES", min_scores)
    answers = make_answer_set()
    run = prepare_run(answers, profile_row(answers.project, "graphrag"), judge=baseline_judge(answers.project, "en"))
    start(run)
    with CaptureQueriesContext(connection) as queries:
        drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETED
    return [query["sql"] for query in queries.captured_queries if query["sql"].startswith("ANALYZE")]


def test_tables_are_analyzed_once_after_a_run_with_many_scores(monkeypatch: Any) -> None:
    statements = analyze_statements(monkeypatch, min_scores=3)
    assert len(statements) == ON_POSTGRESQL
    assert all(model._meta.db_table in statements[0] for model in database.ANALYZED_MODELS if statements)


@pytest.mark.skipif(not ON_POSTGRESQL, reason="SQLite keeps no estimates that a run could outdate")
def test_scores_of_an_open_transaction_are_counted(monkeypatch: Any) -> None:
    analyze_statements(monkeypatch, min_scores=3)
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = %s", [Score._meta.db_table])
        assert cursor.fetchone() == (Score.objects.count(),)


def test_run_with_few_scores_analyzes_no_table(monkeypatch: Any) -> None:
    assert analyze_statements(monkeypatch, min_scores=1_000) == []
