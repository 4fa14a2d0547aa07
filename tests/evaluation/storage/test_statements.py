"""SQL statements return the same models, dates, JSON and database time as the ORM, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.db.models import DateTimeField
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluation.accounts.access import project_access_params, project_access_sql, projects_with
from evaluation.core.roles import Action, Role
from evaluation.models import JudgeVersion, Project, Run, Score, User
from evaluation.scoring.scores import COUNTING, counting_scores
from evaluation.storage.statements import Columns, Statement
from tests.factories import make_project, make_scored_run, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
RUNS = Statement("SELECT {r}, r.seed + 1 FROM evaluation_run r WHERE r.id IN %(runs)s ORDER BY r.id", r=Run)


def test_row_has_the_model_and_extra_columns() -> None:
    run = make_scored_run()
    ((sql_run, next_seed),) = RUNS.rows(runs=[run.pk])
    orm_run = Run.objects.get(pk=run.pk)
    columns = [field.attname for field in Run._meta.concrete_fields]
    assert [getattr(sql_run, name) for name in columns] == [getattr(orm_run, name) for name in columns]
    assert (sql_run._state.adding, next_seed) == (False, run.seed + 1)


def test_list_parameter_matches_its_values_and_may_be_empty() -> None:
    first_run, second_run = make_scored_run(), make_scored_run()
    assert [run.pk for run, _ in RUNS.rows(runs=[first_run.pk, second_run.pk])] == [first_run.pk, second_run.pk]
    assert RUNS.rows(runs=[]) == []
    assert RUNS.first(runs=[]) is None


def test_deferred_columns_are_read_on_access() -> None:
    run = make_scored_run()
    statement = Statement(
        "SELECT {j} FROM evaluation_judgeversion j WHERE j.id = %(judge)s", j=Columns(JudgeVersion, "name", "version")
    )
    judge = run.judges.get().judge_version
    ((partial_judge,),) = statement.rows(judge=judge.pk)
    with CaptureQueriesContext(connection) as queries:
        assert str(partial_judge) == str(judge)
    assert not queries
    assert partial_judge.params == judge.params


def test_an_outer_join_without_a_row_is_none() -> None:
    run = make_scored_run()
    statement = Statement(
        "SELECT {r}, {b} FROM evaluation_run r LEFT JOIN evaluation_run b ON b.id = r.baseline_id WHERE r.id = %(run)s",
        r=Run,
        b=Run,
    )
    assert statement.rows(run=run.pk) == [(run, None)]


def test_times_are_converted_as_by_the_orm() -> None:
    run = make_scored_run()
    moment = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
    Statement("UPDATE evaluation_run SET started_at = %(at)s WHERE id = %(run)s").run(run=run.pk, at=moment)
    statement = Statement("SELECT r.started_at, {NOW} FROM evaluation_run r", at=DateTimeField(), now=DateTimeField())
    ((started, now),) = statement.rows()
    assert started == Run.objects.get(pk=run.pk).started_at == moment
    assert abs(now - timezone.now()) < timedelta(minutes=1)


def test_update_returns_the_number_of_rows() -> None:
    run = make_scored_run()
    rename = Statement("UPDATE evaluation_run SET name = %(name)s WHERE id = %(run)s")
    assert (rename.run(run=run.pk, name="a"), rename.run(run=0, name="b")) == (1, 0)


def test_rows_are_locked_on_postgresql() -> None:
    run = make_scored_run()
    statement = Statement("SELECT {r} FROM evaluation_run r WHERE r.id = %(run)s", locks="r", r=Run)
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        assert statement.rows(run=run.pk) == [(run,)]
    assert ("FOR NO KEY UPDATE OF r" in queries[0]["sql"]) == (connection.vendor == "postgresql")


def accessible_project_ids(user: User) -> list[int]:
    """Ids of the projects in which the user may rate, by SQL."""
    statement = Statement(
        "SELECT q.id FROM evaluation_project q WHERE {REACHED}", REACHED=project_access_sql(Action.RATE, "q.id")
    )
    return sorted(pk for (pk,) in statement.rows(**project_access_params(user)))


@pytest.mark.parametrize(
    "kind", ["member", "stranger", "superuser", "gone", "gone superuser", "by token", "token apart"]
)
def test_accessible_projects_equal_those_of_the_orm(kind: str) -> None:
    home, other_project = make_project(), Project.objects.create(name="other")
    user = make_user(Role.REVIEWER, home) if kind not in {"stranger"} else User.objects.create_user("stranger")
    user.is_superuser = "superuser" in kind
    user.is_active = "gone" not in kind
    user.token_project_id = {"by token": home.pk, "token apart": other_project.pk}.get(kind)
    expected = sorted(projects_with(user, Action.RATE).values_list("pk", flat=True))
    assert accessible_project_ids(user) == expected
    assert bool(expected) == (kind in {"member", "superuser", "by token"})


def test_counting_scores_equal_those_of_the_orm() -> None:
    run = make_scored_run(values=[3, 4])
    run_judge = run.judges.get()
    first_score = Score.objects.filter(run=run).order_by("pk")[0]
    fields = {
        field.attname: getattr(first_score, field.attname)
        for field in Score._meta.concrete_fields
        if field.name != "id"
    }
    Score.objects.create(**{**fields, "round": 1})  # supersedes the first
    Score.objects.create(**{**fields, "origin": "rule", "judge_version_id": None, "rubric_version_id": None})
    Score.objects.create(
        **{**fields, "origin": "file", "judge_version_id": None, "rubric_version_id": None, "author": "imported"}
    )
    other_judge = JudgeVersion.objects.exclude(pk=run_judge.judge_version_id).first() or JudgeVersion.objects.create(
        project=run.project, name="other", version=1
    )
    Score.objects.create(**{**fields, "origin": "another judge", "judge_version_id": other_judge.pk})
    by_sql = Statement("SELECT s.id FROM evaluation_score s WHERE s.run_id = %(run)s AND {COUNTING}", COUNTING=COUNTING)
    expected = set(counting_scores(run).values_list("pk", flat=True))
    assert {pk for (pk,) in by_sql.rows(run=run.pk)} == expected
    assert first_score.pk not in expected
    assert len(expected) == Score.objects.filter(run=run).count() - 3
