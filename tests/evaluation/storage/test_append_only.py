"""Append-only tables reject every kind of change and deletion, and a missing trigger is detected."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.checks import Error
from django.db import DatabaseError, IntegrityError, connection, transaction

from evaluation.accounts import audit
from evaluation.checks import check_append_only_triggers
from evaluation.models import AuditEvent, Project
from evaluation.storage import append_only
from tests.factories import make_project, make_question_set

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def execute_sql(sql: str) -> Callable[[AuditEvent], object]:
    def run(event: AuditEvent) -> object:
        with connection.cursor() as cursor:
            return cursor.execute(sql.format(id=event.pk))

    return run


def resave(event: AuditEvent) -> None:
    event.verb = "forged"
    event.save()


@pytest.mark.parametrize(
    "change",
    [
        resave,
        lambda e: AuditEvent.objects.filter(pk=e.pk).update(verb="forged"),
        lambda e: e.delete(),
        lambda e: AuditEvent.objects.filter(pk=e.pk).delete(),
        execute_sql("UPDATE evaluation_auditevent SET verb = 'forged' WHERE id = {id}"),
        execute_sql("DELETE FROM evaluation_auditevent WHERE id = {id}"),
    ],
)
def test_row_cannot_be_changed_or_deleted(change: Callable[[AuditEvent], object]) -> None:
    event = audit.record(None, "test.made", make_project())
    with pytest.raises(DatabaseError), transaction.atomic():
        change(event)
    assert AuditEvent.objects.get(pk=event.pk).verb == "test.made"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="INSERT OR REPLACE is SQLite's")
def test_insert_or_replace_is_rejected() -> None:
    event = audit.record(None, "test.made", make_project())
    columns = "id, created_at, verb, object_type, object_id, detail, prev_hash, hash"
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT OR REPLACE INTO evaluation_auditevent ({columns}) "
            f"SELECT id, created_at, 'forged', object_type, object_id, detail, prev_hash, hash "
            "FROM evaluation_auditevent WHERE id = %s",
            [event.pk],
        )


def test_every_append_only_table_has_its_triggers() -> None:
    assert append_only.tables_without_triggers() == []
    assert {"evaluation_score", "review_rating", "review_framemember"} <= set(append_only.append_only_tables())


def test_missing_trigger_is_a_system_check_error() -> None:
    with connection.cursor() as cursor:
        on_clause = " ON evaluation_score" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER append_only_update_evaluation_score{on_clause}")
    errors = check_append_only_triggers(databases=["default"])
    assert [type(f) for f in errors] == [Error]
    assert "evaluation_score" in errors[0].msg
    append_only.install()
    assert check_append_only_triggers(databases=["default"]) == []


def test_triggers_are_restored_if_a_suspended_block_fails() -> None:
    event = audit.record(None, "test.made", make_project())

    def change_and_stop() -> None:
        with append_only.suspended():
            AuditEvent.objects.filter(pk=event.pk).update(verb="changed")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        change_and_stop()
    assert append_only.tables_without_triggers() == []


def event_flaws() -> list[tuple[str, int]]:
    return [(flaw.code, int(flaw.subject)) for flaw in audit.flaws() if flaw.code.startswith("event")]


def test_audit_chain_reports_a_changed_row() -> None:
    events = [audit.record(None, f"test.{n}", make_project()) for n in range(4)]
    assert event_flaws() == []
    with append_only.suspended():
        AuditEvent.objects.filter(pk=events[1].pk).update(verb="forged")
    assert event_flaws() == [("event_changed", events[1].pk)]


@pytest.mark.parametrize("deleted_index", [0, 1, 2])
def test_audit_chain_reports_the_row_after_a_deleted_one(deleted_index: int) -> None:
    events = [audit.record(None, f"test.{n}", make_project()) for n in range(4)]
    with append_only.suspended():
        AuditEvent.objects.filter(pk=events[deleted_index].pk).delete()
    assert event_flaws() == [("event_missing", events[deleted_index + 1].pk)]


def test_audit_chain_reports_each_row_after_a_deleted_one() -> None:
    events = [audit.record(None, f"test.{n}", make_project()) for n in range(5)]
    with append_only.suspended():
        AuditEvent.objects.filter(pk__in=[events[1].pk, events[3].pk]).delete()
    assert event_flaws() == [("event_missing", events[2].pk), ("event_missing", events[4].pk)]


def test_a_project_with_content_cannot_be_deleted() -> None:
    question_set = make_question_set()
    with pytest.raises(DatabaseError), transaction.atomic():
        Project.objects.filter(pk=question_set.project_id).delete()
