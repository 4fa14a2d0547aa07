"""Health over HTTP and by command, and messages to users and REST clients while the database is unusable."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, OperationalError, ProgrammingError
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from evaluation.accounts.login import SessionStore
from evaluation.models import DatabaseProbe, Endpoint, Heartbeat, HostSettings, ProcessRestart
from evaluation.tasks import beat
from evaluation.worker import database, health
from evaluation.worker.database import AWAY, DAMAGED, FULL, LOCKED, READ_ONLY, REPLACED, probe_write, unavailable_reason
from evaluation.worker.health import Severity, find_issues
from tests.factories import make_user

pytestmark = pytest.mark.both_databases


@pytest.fixture(autouse=True)
def forget_last_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the cached readiness result of this process."""
    monkeypatch.setattr(health, "_last_examination", (float("-inf"), health._last_examination[1]))


def failing(name: str = "SQLITE_CANTOPEN") -> OperationalError:
    """An error of the database as Django passes it on."""
    cause = sqlite3.OperationalError("secret: /srv/somewhere")
    cause.sqlite_errorname = name
    error = OperationalError(*cause.args)
    error.__cause__ = cause
    return error


def fail(*_: Any, **__: Any) -> Any:
    raise failing()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SQLITE_READONLY_DBMOVED", REPLACED), ("SQLITE_READONLY_DIRECTORY", READ_ONLY), ("SQLITE_FULL", FULL),
        ("SQLITE_BUSY_SNAPSHOT", LOCKED), ("SQLITE_LOCKED_SHAREDCACHE", LOCKED), ("SQLITE_IOERR_WRITE", DAMAGED),
        ("SQLITE_CORRUPT", DAMAGED), ("SQLITE_NOTADB", DAMAGED), ("SQLITE_CANTOPEN", AWAY), ("SQLITE_ERROR", ""),
    ],
)  # fmt: skip
def test_sqlite_errors_are_classified_by_name(name: str, code: str) -> None:
    assert unavailable_reason(failing(name)) == code


@pytest.mark.parametrize(
    ("kind", "state", "code"),
    [
        (OperationalError, None, AWAY), (OperationalError, "57P01", AWAY), (OperationalError, "08006", AWAY),
        (OperationalError, "53300", AWAY), (OperationalError, "55P03", LOCKED), (OperationalError, "57014", LOCKED),
        (OperationalError, "53100", FULL), (OperationalError, "25006", READ_ONLY), (ProgrammingError, "42P01", ""),
        (ProgrammingError, None, ""),
    ],
)  # fmt: skip
def test_postgresql_errors_are_classified_by_state(kind: type[DatabaseError], state: str | None, code: str) -> None:
    error = kind("x")
    error.__cause__ = type("Cause", (Exception,), {"sqlstate": state})()
    assert unavailable_reason(error) == code


def test_liveness_check_needs_no_login_and_no_database(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT, settings.ALLOWED_HOSTS = True, ["concord.example"]
    client.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    response = client.get("/healthz", headers={"host": "10.0.0.7"})  # no mark for the database: a query would raise
    assert (response.status_code, response.json()) == (200, {"alive": True})
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.django_db
def test_readiness_writes_at_most_once_in_ten_seconds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def check_readiness() -> Any:
        monkeypatch.setattr(health, "_last_examination", (float("-inf"), []))  # as another process
        assert client.get("/readyz").status_code == 200
        return DatabaseProbe.objects.get().written_at

    assert client.get("/readyz").json() == {"ready": True, "problems": ["no_cluster"]}
    first_write = DatabaseProbe.objects.get().written_at
    assert check_readiness() == first_write
    for offset in (timedelta(seconds=-11), timedelta(hours=1)):  # long ago, and from before the clock was set back
        DatabaseProbe.objects.update(written_at=(probe_time := timezone.now() + offset))
        assert check_readiness() != probe_time
    looked = []
    monkeypatch.setattr(health, "find_issues", lambda **_: looked.append(1) or [])
    assert client.get("/readyz").status_code == 200  # this process looked just now
    assert looked == []


@pytest.mark.django_db
def test_failed_save_is_followed_by_a_probe_at_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/readyz").status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr("django.contrib.auth.forms.AuthenticationForm.is_valid", fail)
        assert client.post("/login/", {"username": "kim", "password": "x"}).status_code == 503
    monkeypatch.setattr(health, "probe_write", lambda interval: fail() if not interval else None)
    assert client.get("/readyz").status_code == 503
    assert client.get("/readyz").status_code == 503


@pytest.mark.django_db
def test_readiness_failure_shows_only_codes(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "probe_write", fail)
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (503, {"ready": False, "problems": ["database_away"]})
    monkeypatch.setattr(health, "probe_write", probe_write)
    assert client.get("/readyz").status_code == 503  # as it was seen, for ten seconds


@pytest.mark.django_db
def test_missing_migration_is_reported_and_stops_other_checks() -> None:
    MigrationRecorder.Migration.objects.filter(app="evaluation").order_by("name").last().delete()
    assert [(issue.code, issue.severity) for issue in find_issues()] == [("not_migrated", Severity.DOWN)]


@pytest.mark.django_db
def test_healthcheck_command_reports_all_issues_and_fails_for_serious_ones(settings: Any, tmp_path: Path) -> None:
    settings.CONCORD_BACKUP_HOURS, settings.VAR_DIR = 24, tmp_path
    now = timezone.now()
    Endpoint.objects.create(name="local", base_url="http://x", cooldown_until=now + timedelta(minutes=5))
    ProcessRestart.objects.create(host="one", part="cluster", reason="ended with code -9", count=3, last_at=now)
    printed = io.StringIO()
    with pytest.raises(SystemExit, match="1"):
        call_command("healthcheck", stdout=printed)
    for text in ("no backup in the last 24 hours", "no worker heartbeat in", "note: endpoint local is not called until",
                 "3 times so far: ended with code -9"):  # fmt: skip
        assert text in printed.getvalue()
    settings.CONCORD_BACKUP_HOURS = 0
    Heartbeat.objects.create(host="one", seen_at=now)
    call_command("healthcheck", stdout=printed)  # notes make nothing unhealthy
    assert printed.getvalue().endswith("healthy\n")


@pytest.mark.django_db
def test_healthcheck_command_prints_no_traceback_on_database_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MigrationExecutor", fail)
    printed = io.StringIO()
    with pytest.raises(SystemExit, match="1"):
        call_command("healthcheck", stdout=printed)
    assert printed.getvalue().startswith("the database cannot be read or written (database_away): secret")


@pytest.mark.django_db
def test_write_probe_leaves_one_row_of_more_than_a_save() -> None:
    for _ in range(3):
        probe_write()
    assert len(DatabaseProbe.objects.get().content) == database.PROBE_BYTES


@pytest.mark.django_db
@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize(
    "broken",
    [
        lambda patch: patch.setattr(SessionStore, "load", fail),  # before the view
        lambda patch: patch.setattr("django.contrib.auth.forms.AuthenticationForm.is_valid", fail),  # in it
        lambda patch: patch.setattr(SessionStore, "save", fail),  # and after it
    ],
)
def test_absent_database_gives_503_at_every_step(
    broken: Callable[[pytest.MonkeyPatch], None], debug: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DEBUG = debug
    client = Client(raise_request_exception=False, headers={"accept-language": "ko"})
    user = make_user()
    user.set_password("a good password")
    user.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    broken(monkeypatch)
    response = client.post("/login/", {"username": user.username, "password": "a good password"})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "10")
    assert "데이터베이스" in response.content.decode()
    assert "secret" not in response.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("debug", [True, False])
def test_rest_clients_get_an_error_code(debug: bool, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DEBUG = debug
    client = Client(raise_request_exception=False)
    client.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    monkeypatch.setattr(SessionStore, "load", fail)
    response = client.get("/api/v1/runs/")
    assert (response.status_code, response.json()["code"]) == (503, "database_away")


def test_only_requests_have_timeouts_on_postgresql(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CONCORD_STATEMENT_SECONDS = 7

    class Connection:
        vendor = "postgresql"
        settings_dict: dict[str, Any] = {"OPTIONS": {"options": "-c jit=off", "prepare_threshold": 3}}

    monkeypatch.setattr(database, "connection", Connection)
    database.set_statement_timeouts()
    database.set_statement_timeouts()
    assert Connection.settings_dict["OPTIONS"]["options"] == "-c jit=off -c lock_timeout=10s -c statement_timeout=7s"
    Connection.settings_dict = {"OPTIONS": {"options": "-c jit=off"}}  # a pooler, which keeps nothing
    database.set_statement_timeouts()
    assert Connection.settings_dict == {"OPTIONS": {"options": "-c jit=off"}}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/question-sets/", "/evaluation/runs/1"])
@pytest.mark.parametrize("failure_point", ["the session", "the view"])
def test_rest_client_gets_problem_for_unavailable_database(
    path: str, failure_point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(make_user())
    if failure_point == "the session":
        monkeypatch.setattr("django.contrib.auth.middleware.get_user", fail)
    else:
        monkeypatch.setattr("evaluation.rest.endpoints.StrictAPIView.initial", fail)
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert answer.json()["code"] == "database_away"
    assert answer.json().items() >= {"type": "about:blank", "title": "Service Unavailable", "status": 503}.items()
    assert answer["Retry-After"] == "10"


@pytest.mark.django_db
def test_hosts_with_other_settings_are_reported(settings: Any) -> None:
    settings.CONCORD_HOST = "one"
    beat()
    settings.CONCORD_HOST = "two"
    beat()
    assert "hosts_differ" not in {issue.code for issue in find_issues()}
    settings.SECRET_KEY, settings.CONCORD_HOST = "another", "web"
    differing = [issue.text for issue in find_issues() if issue.code == "hosts_differ"]
    assert differing == ["SECRET_KEY differs between hosts (one, two / web); use one value and restart them"]
    settings.CONCORD_JUDGE_ORIGINS = ["https://other.example"]
    assert sum(issue.code == "hosts_differ" for issue in find_issues()) == 2
    # Hosts that have gone do not count.
    HostSettings.objects.exclude(host="web").update(seen_at=timezone.now() - timedelta(minutes=11))
    assert "hosts_differ" not in {issue.code for issue in find_issues()}
