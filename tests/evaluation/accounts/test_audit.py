"""Changing anything behind the product's back shows: events, sealed rows, triggers."""

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


def codes(kept: str = "") -> list[str]:
    return [one.code for one in audit.flaws(kept)]


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def rated() -> Any:
    """A run with scores and a rating, all sealed."""
    run = make_scored_run()
    imported_rating(answer_rows(run)[0], metric("correctness"), "anna", 3)
    assert audit.seal_rows() == Score.objects.count() + Rating.objects.count()
    assert codes() == []
    return run


def test_a_changed_score_shows_with_its_table_and_the_numbers_around_it(rated: Any) -> None:
    with append_only.suspended():
        Score.objects.filter(pk=Score.objects.first().pk).update(reason="better")
    last = Score.objects.order_by("pk").last().pk
    assert list(audit.flaws()) == [audit.Flaw("rows_differ", f"evaluation_score 1-{last}")] or POSTGRES
    assert codes() == ["rows_differ"]


@pytest.mark.parametrize("change", [{"value": 2}, {"blind": False}, {"probability": 0.5}])
def test_a_changed_rating_shows(rated: Any, change: dict[str, Any]) -> None:
    with append_only.suspended():
        Rating.objects.update(**change)
    assert codes() == ["rows_differ"]


def test_a_comment_may_be_erased(rated: Any) -> None:
    with append_only.suspended():
        Rating.objects.update(comment="")
    assert codes() == []


def test_a_deleted_rating_shows_and_so_does_one_slipped_in_between(rated: Any) -> None:
    gone = Rating.objects.get()
    with append_only.suspended():
        Rating.objects.all().delete()
    assert codes() == ["rows_differ"]
    gone.save(force_insert=True)
    assert codes() == []


def test_a_tail_that_was_cut_off_shows_by_the_head_that_was_kept(rated: Any) -> None:
    kept = audit.chain_head()
    audit.record(None, "test.more", make_project())
    assert codes(kept) == []
    later = audit.chain_head()
    with append_only.suspended():
        AuditEvent.objects.order_by("-id").first().delete()
    assert codes() == []
    assert codes(later) == ["head_missing"]
    assert codes(kept) == []


def test_rows_are_sealed_once_however_often_and_a_thousand_to_an_event(
    rated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audit.seal_rows() == 0
    monkeypatch.setattr(audit, "ROWS_PER_SEAL", 4)
    make_scored_run()
    new = audit.unsealed_rows()
    before = AuditEvent.objects.filter(verb=audit.SEALED).count()
    assert audit.seal_rows(max_events=1) == 4
    assert audit.seal_rows() == new - 4
    assert AuditEvent.objects.filter(verb=audit.SEALED).count() == before + -(-new // 4)
    assert codes() == []


def test_the_background_leaves_young_rows_for_later() -> None:
    """Sealed are rows of an hour and more, and not before one has waited for two."""
    run = make_scored_run()
    count = Score.objects.count()
    with append_only.suspended():
        Score.objects.update(created_at=timezone.now() - timedelta(hours=1.5))
    audit.seal_old_rows()
    assert audit.unsealed_rows() == count
    with append_only.suspended():
        Score.objects.update(created_at=timezone.now() - timedelta(hours=2.5))
    imported_rating(answer_rows(run)[0], metric("correctness"), "anna", 3)
    audit.seal_old_rows()
    assert (audit.unsealed_rows(), Rating.objects.count()) == (1, 1)
    assert codes() == []


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


@pytest.mark.parametrize(("code", "statements"), [(code, one) for code, of in TAMPERINGS.items() for one in of])
def test_a_trigger_that_is_not_as_it_should_be_is_named(code: str, statements: tuple[str, ...]) -> None:
    assert codes() == []
    execute(*statements)
    (found,) = audit.flaws()
    assert (found.code, found.subject.endswith(f" on {TABLE}")) == (code, True)
    execute("SELECT 1")  # the check itself changed nothing
    assert codes() == [code]


@pytest.mark.skipif(not POSTGRES, reason="functions of triggers are PostgreSQL's")
def test_a_function_that_lets_everything_pass_is_named_at_every_trigger_that_calls_it() -> None:
    execute(
        "CREATE OR REPLACE FUNCTION concord_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$"
    )
    assert set(codes()) == {"trigger_changed"}
    assert len(codes()) == 3 * len(append_only.append_only_tables())


@pytest.mark.skipif(not POSTGRES, reason="SQLite knows no roles")
def test_a_role_that_does_not_own_the_tables_works_and_says_that_it_cannot_see_to_the_triggers() -> None:
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
    assert codes() == ["triggers_unchecked"]
    execute("RESET ROLE")
    assert codes() == []


def run_command(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("verify_audit", *arguments, stdout=out)
    except SystemExit as ended:
        return int(str(ended)), out.getvalue()
    return 0, out.getvalue()


def test_the_command_tells_flaws_and_the_head_and_seals_where_asked() -> None:
    make_scored_run()
    code, text = run_command("--seal")
    assert (code, "nothing was changed" in text, "0 not sealed yet" in text) == (0, True, True)
    kept = audit.chain_head()
    assert f"head: {kept}" in text
    with append_only.suspended():
        Score.objects.update(reason="better")
    code, text = run_command("--head", kept)
    assert (code, "evaluation_score" in text) == (1, True)
    code, text = run_command("--format", "json")
    told = json.loads(text)
    assert (code, told["head"], [one["code"] for one in told["flaws"]]) == (1, kept, ["rows_differ"])
    with pytest.raises(CommandError, match="is no head"):
        call_command("verify_audit", "--head", "12")


def test_the_page_says_the_same_to_administrators_alone(client: Client) -> None:
    make_scored_run()
    audit.seal_rows()
    administrator = make_user(is_superuser=True, is_staff=True)
    client.force_login(administrator)
    assert (
        b"Check whether anything was changed" in client.get(reverse("admin:evaluation_auditevent_changelist")).content
    )
    page = client.post(reverse("admin:audit-verify")).content.decode()
    assert "Nothing was changed" in page
    assert audit.chain_head() in page
    with append_only.suspended():
        Score.objects.update(reason="<b>better</b>")
    assert "evaluation_score" in client.post(reverse("admin:audit-verify")).content.decode()
    assert client.get(reverse("admin:audit-verify")).status_code == 405
    client.force_login(make_user(Role.LEAD, make_project(), is_staff=True))
    assert client.post(reverse("admin:audit-verify")).status_code in {302, 403}


def test_health_checks_look_at_it_where_asked(settings: Any, tmp_path: Any) -> None:
    settings.VAR_DIR = tmp_path
    make_scored_run()
    audit.seal_rows()
    with append_only.suspended():
        Score.objects.update(reason="better")
    for asked, told in (([], False), (["--audit"], True)):
        out = io.StringIO()
        with pytest.raises(SystemExit):  # no cluster is there either
            call_command("healthcheck", *asked, stdout=out)
        assert ("evaluation_score" in out.getvalue()) is told
