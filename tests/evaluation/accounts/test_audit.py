"""Tampering with events, sealed rows or triggers is detected."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.core.roles import Role
from evaluation.models import AuditEvent, Score
from evaluation.storage import append_only
from review.models import Rating
from tests.factories import make_project, make_scored_run, make_user
from tests.review.builders import answer_rows, imported_rating, metric

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
POSTGRES = connection.vendor == "postgresql"


def flaw_codes(head: str = "") -> list[str]:
    return [flaw.code for flaw in audit.flaws(head)]


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def rated_run() -> Any:
    """A run with scores and a rating, all sealed."""
    run = make_scored_run()
    imported_rating(answer_rows(run)[0], metric("correctness"), "anna", 3)
    assert audit.seal_rows() > Score.objects.count() + Rating.objects.count()
    assert (flaw_codes(), audit.unsealed_rows()) == ([], 0)
    return run


def test_changed_score_is_reported_with_its_table_and_row_range(rated_run: Any) -> None:
    with append_only.suspended():
        Score.objects.filter(pk=Score.objects.first().pk).update(reason="better")
    last = Score.objects.order_by("pk").last().pk
    assert list(audit.flaws()) == [audit.Flaw("rows_differ", f"evaluation_score 1-{last}")] or POSTGRES
    assert flaw_codes() == ["rows_differ"]


@pytest.mark.parametrize("change", [{"value": 2}, {"blind": False}, {"probability": 0.5}])
def test_changed_rating_is_reported(rated_run: Any, change: dict[str, Any]) -> None:
    with append_only.suspended():
        Rating.objects.update(**change)
    assert flaw_codes() == ["rows_differ"]


def test_changed_comment_is_reported(rated_run: Any) -> None:
    with append_only.suspended():
        Rating.objects.update(comment="another")
    assert flaw_codes() == ["texts_differ"]


def test_deleted_rating_is_reported_until_it_is_restored(rated_run: Any) -> None:
    rating = Rating.objects.get()
    with append_only.suspended():
        Rating.objects.all().delete()
    assert flaw_codes() == ["rows_differ"]
    rating.save(force_insert=True)
    assert flaw_codes() == []


def test_truncated_chain_is_detected_by_a_later_head(rated_run: Any) -> None:
    head = audit.chain_head()
    audit.record(None, "test.more", make_project())
    assert flaw_codes(head) == []
    later_head = audit.chain_head()
    with append_only.suspended():
        AuditEvent.objects.order_by("-id").first().delete()
    assert flaw_codes() == []
    assert flaw_codes(later_head) == ["head_missing"]
    assert flaw_codes(head) == []


def test_rows_are_sealed_once_in_events_of_limited_size(rated_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert audit.seal_rows() == 0
    monkeypatch.setattr(audit, "ROWS_PER_SEAL", 4)
    make_scored_run()
    seals = AuditEvent.objects.filter(verb=audit.SEALED, object_type="evaluation.score")
    scores_before, seals_before = Score.objects.count() - 12, seals.count()
    audit.seal_rows(max_events=1)
    assert seals.count() == seals_before + 1
    audit.seal_rows()
    assert (seals.count(), audit.unsealed_rows()) == (seals_before + 3, 0)
    assert sum(seal.detail["rows"] for seal in seals) == scores_before + 12
    assert flaw_codes() == []


def test_background_sealing_skips_recent_rows() -> None:
    """Rows older than one hour are sealed once one of them is two hours old."""
    run = make_scored_run()
    with append_only.suspended():
        Score.objects.update(created_at=timezone.now() - timedelta(hours=1.5))
    unsealed = audit.unsealed_rows()
    audit.seal_old_rows()
    assert audit.unsealed_rows() == unsealed
    with append_only.suspended():
        Score.objects.update(created_at=timezone.now() - timedelta(hours=2.5))
    imported_rating(answer_rows(run)[0], metric("correctness"), "anna", 3)
    audit.seal_old_rows()
    assert audit.unsealed_rows() == unsealed + 1 - Score.objects.count()
    tables, _ = audit.coverage()
    assert {table.table: table.unsealed for table in tables}["review_rating"] == 1
    assert flaw_codes() == []


TABLE = "review_rating"
NAME = f"append_only_update_{TABLE}"
DROPPED = f"DROP TRIGGER {NAME}" + (f" ON {TABLE}" if POSTGRES else "")
if POSTGRES:
    NO_OP = (
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        f"CREATE OR REPLACE TRIGGER {NAME} BEFORE UPDATE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION nothing()",
    )
    TAMPERINGS = {
        "trigger_changed": [
            NO_OP,
            (f"ALTER TABLE {TABLE} DISABLE TRIGGER {NAME}",),
            (f"ALTER TABLE {TABLE} ENABLE REPLICA TRIGGER {NAME}",),
        ],
        "trigger_missing": [(DROPPED,)],
        "trigger_unknown": [
            (
                "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
                f"CREATE TRIGGER mine BEFORE INSERT ON {TABLE} FOR EACH ROW EXECUTE FUNCTION nothing()",
            )
        ],
    }
else:
    TAMPERINGS = {
        "trigger_changed": [(DROPPED, f"CREATE TRIGGER {NAME} BEFORE UPDATE ON {TABLE} BEGIN SELECT 1; END")],
        "trigger_missing": [(DROPPED,)],
        "trigger_unknown": [(f"CREATE TRIGGER mine BEFORE INSERT ON {TABLE} BEGIN SELECT 1; END",)],
    }


@pytest.mark.parametrize(
    ("code", "statements"), [(code, statements) for code, variants in TAMPERINGS.items() for statements in variants]
)
def test_tampered_trigger_is_reported(code: str, statements: tuple[str, ...]) -> None:
    assert flaw_codes() == []
    execute(*statements)
    (flaw,) = audit.flaws()
    assert (flaw.code, flaw.subject.endswith(f" on {TABLE}")) == (code, True)
    execute("SELECT 1")  # the check itself changed nothing
    assert flaw_codes() == [code]


@pytest.mark.skipif(not POSTGRES, reason="functions of triggers are PostgreSQL's")
def test_replaced_trigger_function_is_reported_for_every_trigger() -> None:
    execute(
        "CREATE OR REPLACE FUNCTION concord_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$"
    )
    assert set(flaw_codes()) == {"trigger_changed"}
    assert len(flaw_codes()) == 3 * len(append_only.append_only_tables())


@pytest.mark.skipif(not POSTGRES, reason="SQLite knows no roles")
def test_role_without_ownership_reports_triggers_as_unchecked() -> None:
    execute(
        "CREATE ROLE concord_app_of_test",
        "GRANT USAGE ON SCHEMA public TO concord_app_of_test",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO concord_app_of_test",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO concord_app_of_test",
        "SET LOCAL ROLE concord_app_of_test",
    )
    run = make_scored_run()
    imported_rating(answer_rows(run)[0], metric("correctness"), "anna", 3)
    assert audit.seal_rows() > 0
    assert flaw_codes() == ["triggers_unchecked"]
    execute("RESET ROLE")
    assert flaw_codes() == []


def test_background_sealing_takes_rows_up_to_the_first_recent_one() -> None:
    make_scored_run()
    old, recent = timezone.now() - timedelta(hours=3), timezone.now()
    keys = list(Score.objects.order_by("pk").values_list("pk", flat=True))
    with append_only.suspended():
        Score.objects.update(created_at=old)
        Score.objects.filter(pk=keys[3]).update(created_at=recent)
    audit.seal_old_rows()
    seal = AuditEvent.objects.get(verb=audit.SEALED, object_type="evaluation.score")
    assert (seal.object_id, seal.detail["rows"]) == (str(keys[2]), 3)


def test_every_append_only_table_is_sealed_but_the_log_and_calls() -> None:
    tables, uncovered = audit.coverage()
    sealed = {table.table for table in tables}
    assert set(append_only.append_only_tables()) - sealed == {
        "evaluation_auditevent",
        *(table for table in uncovered if table.endswith(("attempt", "call"))),
    }
    assert {"evaluation_attempt", "evaluation_job", "review_draft"} <= set(uncovered)
    assert not sealed & set(uncovered)


def run_command(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("verify_audit", *arguments, stdout=out)
    except SystemExit as exit_error:
        return int(str(exit_error)), out.getvalue()
    return 0, out.getvalue()


def test_command_reports_flaws_and_head_and_seals_on_request() -> None:
    make_scored_run()
    code, text = run_command("--seal")
    assert (code, "no problems found" in text, "0 not sealed yet" in text) == (0, True, True)
    assert "covered: evaluation_score: 12 rows sealed, 0 not yet" in text
    assert "covered: evaluation_run (project, answer_set, profile_version, config" in text
    assert "not covered: " in text
    head = audit.chain_head()
    assert f"head: {head}" in text
    with append_only.suspended():
        Score.objects.update(reason="better")
    code, text = run_command("--head", head)
    assert (code, "evaluation_score" in text) == (1, True)
    code, text = run_command("--format", "json")
    report = json.loads(text)
    assert (code, report["head"], [flaw["code"] for flaw in report["flaws"]]) == (1, head, ["rows_differ"])
    assert report["covered"]["evaluation_score"] == {
        "table": "evaluation_score", "sealed": 12, "unsealed": 0, "fields": [],
    }  # fmt: skip
    assert "evaluation_job" in report["not_covered"]
    with pytest.raises(CommandError, match="is not a head"):
        call_command("verify_audit", "--head", "12")


def test_page_reports_flaws_to_administrators_only(client: Client) -> None:
    make_scored_run()
    audit.seal_rows()
    administrator = make_user(is_superuser=True, is_staff=True)
    client.force_login(administrator)
    assert b"Verify the audit log" in client.get(reverse("admin:evaluation_auditevent_changelist")).content
    page = client.post(reverse("admin:audit-verify")).content.decode()
    assert "No changes found" in page
    assert audit.chain_head() in page
    with append_only.suspended():
        Score.objects.update(reason="<b>better</b>")
    assert "evaluation_score" in client.post(reverse("admin:audit-verify")).content.decode()
    assert client.get(reverse("admin:audit-verify")).headers["Location"] == "/admin/evaluation/auditevent/"
    client.force_login(make_user(Role.LEAD, make_project(), is_staff=True))
    assert client.post(reverse("admin:audit-verify")).status_code in {302, 403}


def test_health_check_includes_the_audit_on_request(settings: Any, tmp_path: Any) -> None:
    settings.VAR_DIR = tmp_path
    make_scored_run()
    audit.seal_rows()
    with append_only.suspended():
        Score.objects.update(reason="better")
    for options, is_reported in (([], False), (["--audit"], True)):
        out = io.StringIO()
        with pytest.raises(SystemExit):  # no cluster is there either
            call_command("healthcheck", *options, stdout=out)
        assert ("evaluation_score" in out.getvalue()) is is_reported
