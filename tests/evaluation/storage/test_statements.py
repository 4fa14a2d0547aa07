"""Statements in SQL give what the ORM gives: models, dates, JSON, and the database's time, on both databases."""

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


def test_a_row_is_the_model_the_orm_reads_and_what_else_was_asked_for() -> None:
    run = make_scored_run()
    ((found, more),) = RUNS.rows(runs=[run.pk])
    same = Run.objects.get(pk=run.pk)
    columns = [field.attname for field in Run._meta.concrete_fields]
    assert [getattr(found, name) for name in columns] == [getattr(same, name) for name in columns]
    assert (found._state.adding, more) == (False, run.seed + 1)


def test_a_list_of_values_matches_each_of_them_and_an_empty_one_nothing() -> None:
    first, second = make_scored_run(), make_scored_run()
    assert [run.pk for run, _ in RUNS.rows(runs=[first.pk, second.pk])] == [first.pk, second.pk]
    assert RUNS.rows(runs=[]) == []
    assert RUNS.first(runs=[]) is None


def test_a_part_of_a_model_reads_the_rest_when_it_is_asked_for() -> None:
    run = make_scored_run()
    some = Statement(
        "SELECT {j} FROM evaluation_judgeversion j WHERE j.id = %(judge)s", j=Columns(JudgeVersion, "name", "version")
    )
    judge = run.judges.get().judge_version
    ((found,),) = some.rows(judge=judge.pk)
    with CaptureQueriesContext(connection) as asked:
        assert str(found) == str(judge)
    assert not asked
    assert found.params == judge.params


def test_an_outer_join_without_a_row_is_none() -> None:
    run = make_scored_run()
    joined = Statement(
        "SELECT {r}, {b} FROM evaluation_run r LEFT JOIN evaluation_run b ON b.id = r.baseline_id WHERE r.id = %(run)s",
        r=Run,
        b=Run,
    )
    assert joined.rows(run=run.pk) == [(run, None)]


def test_times_go_in_and_come_out_as_the_databases_own() -> None:
    run = make_scored_run()
    moment = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
    Statement("UPDATE evaluation_run SET started_at = %(at)s WHERE id = %(run)s").run(run=run.pk, at=moment)
    found = Statement("SELECT r.started_at, {NOW} FROM evaluation_run r", at=DateTimeField(), now=DateTimeField())
    ((started, now),) = found.rows()
    assert started == Run.objects.get(pk=run.pk).started_at == moment
    assert abs(now - timezone.now()) < timedelta(minutes=1)


def test_a_change_tells_how_many_rows_it_changed() -> None:
    run = make_scored_run()
    rename = Statement("UPDATE evaluation_run SET name = %(name)s WHERE id = %(run)s")
    assert (rename.run(run=run.pk, name="a"), rename.run(run=0, name="b")) == (1, 0)


def test_rows_stay_locked_where_the_database_can() -> None:
    run = make_scored_run()
    locked = Statement("SELECT {r} FROM evaluation_run r WHERE r.id = %(run)s", locks="r", r=Run)
    with transaction.atomic(), CaptureQueriesContext(connection) as asked:
        assert locked.rows(run=run.pk) == [(run,)]
    assert ("FOR NO KEY UPDATE OF r" in asked[0]["sql"]) == (connection.vendor == "postgresql")


def reached(user: User) -> list[int]:
    """The projects the person may rate in, by SQL."""
    found = Statement(
        "SELECT q.id FROM evaluation_project q WHERE {REACHED}", REACHED=project_access_sql(Action.RATE, "q.id")
    )
    return sorted(pk for (pk,) in found.rows(**project_access_params(user)))


@pytest.mark.parametrize(
    "kind", ["member", "stranger", "superuser", "gone", "gone superuser", "by token", "token apart"]
)
def test_the_projects_a_person_reaches_are_those_of_the_orm(kind: str) -> None:
    home, other = make_project(), Project.objects.create(name="other")
    user = make_user(Role.REVIEWER, home) if kind not in {"stranger"} else User.objects.create_user("stranger")
    user.is_superuser = "superuser" in kind
    user.is_active = "gone" not in kind
    user.token_project_id = {"by token": home.pk, "token apart": other.pk}.get(kind)
    expected = sorted(projects_with(user, Action.RATE).values_list("pk", flat=True))
    assert reached(user) == expected
    assert bool(expected) == (kind in {"member", "superuser", "by token"})


def test_the_scores_that_count_are_those_of_the_orm() -> None:
    run = make_scored_run(values=[3, 4])
    judged = run.judges.get()
    one = Score.objects.filter(run=run).order_by("pk")[0]
    kept = {field.attname: getattr(one, field.attname) for field in Score._meta.concrete_fields if field.name != "id"}
    Score.objects.create(**{**kept, "round": 1})  # supersedes the first
    Score.objects.create(**{**kept, "origin": "rule", "judge_version_id": None, "rubric_version_id": None})
    Score.objects.create(
        **{**kept, "origin": "file", "judge_version_id": None, "rubric_version_id": None, "author": "imported"}
    )
    other = JudgeVersion.objects.exclude(pk=judged.judge_version_id).first() or JudgeVersion.objects.create(
        project=run.project, name="other", version=1
    )
    Score.objects.create(**{**kept, "origin": "another judge", "judge_version_id": other.pk})
    by_sql = Statement("SELECT s.id FROM evaluation_score s WHERE s.run_id = %(run)s AND {COUNTING}", COUNTING=COUNTING)
    expected = set(counting_scores(run).values_list("pk", flat=True))
    assert {pk for (pk,) in by_sql.rows(run=run.pk)} == expected
    assert one.pk not in expected
    assert len(expected) == Score.objects.filter(run=run).count() - 3
