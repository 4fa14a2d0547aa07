"""The site refuses to start with settings that would be unsafe or mistyped, and never tells its secrets (A10, A12)."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import socket
import stat
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from config.environment import database_settings, secret_key, site_origins

ROOT = Path(__file__).resolve().parents[1]
STRONG = "a9X-bKq7Wz" * 6


def run_manage(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``manage.py`` in an environment of its own."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", *(arguments or ("check",))],
        cwd=ROOT,
        env={**inherited, "CONCORD_VAR": str(folder), "DATABASE_URL": f"sqlite:///{folder}/x.sqlite3", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_site_starts_without_settings_and_generated_key_is_private(tmp_path: Path) -> None:
    assert run_manage(tmp_path).returncode == 0
    key = tmp_path / "secret_key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_text()) >= 50


def test_first_starts_at_once_agree_on_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow disk between creation and writing of the file, so that each start sees the others half-way."""
    monkeypatch.delenv("SECRET_KEY", raising=False)

    def random_text(count: int) -> str:
        time.sleep(0.2)
        return base64.urlsafe_b64encode(os.urandom(count)).decode()

    monkeypatch.setattr(secrets, "token_urlsafe", random_text)
    ready = threading.Barrier(5)

    def start(number: int) -> str:
        ready.wait()
        time.sleep(number * 0.06)
        return secret_key(tmp_path, generate=True)

    with ThreadPoolExecutor(5) as starts:
        keys = set(starts.map(start, range(5)))
    assert keys == {(tmp_path / "secret_key").read_text()}
    assert [file.name for file in tmp_path.iterdir()] == ["secret_key"]


@pytest.mark.parametrize("content", ["", "short"])
def test_key_file_that_was_cut_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.delenv("SECRET_KEY", raising=False)
    (tmp_path / "secret_key").write_text(content)
    with pytest.raises(ImproperlyConfigured, match="secret_key contains no key"):
        secret_key(tmp_path, generate=True)
    assert (tmp_path / "secret_key").read_text() == content


PRINT_SETTINGS = (
    "from django.conf import settings as s; "
    "print(s.DEBUG, s.ALLOWED_HOSTS, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.WHITENOISE_USE_FINDERS)"
)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "False ['localhost', '127.0.0.1', '[::1]'] False False True"),
        ({"DEBUG": "1"}, "True ['localhost', '127.0.0.1', '[::1]'] False False True"),
        ({"ALLOWED_HOSTS": "concord.example", "SECRET_KEY": STRONG}, "False ['concord.example'] True True False"),
    ],
)
def test_site_without_host_names_is_local_and_shows_no_code(
    tmp_path: Path, environment: dict[str, str], expected: str
) -> None:
    completed = run_manage(tmp_path, "shell", "--no-imports", "-c", PRINT_SETTINGS, **environment)
    assert completed.stdout.strip() == expected, completed.stderr
    assert (tmp_path / "secret_key").exists() == ("SECRET_KEY" not in environment)


@pytest.mark.slow
def test_first_day_site_answers_on_this_machine_with_its_own_error_pages(tmp_path: Path) -> None:
    assert run_manage(tmp_path, "migrate").returncode == 0
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {"CONCORD_VAR": str(tmp_path), "DATABASE_URL": f"sqlite:///{tmp_path}/x.sqlite3"}
    command = [sys.executable, "manage.py", "serve", "--no-worker", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=inherited | environment, stdout=subprocess.DEVNULL) as server:
        try:
            site = f"http://127.0.0.1:{port}"
            for _ in range(300):
                with contextlib.suppress(requests.ConnectionError):
                    login_page = requests.get(f"{site}/login/", timeout=30)
                    break
                time.sleep(0.2)
            assert login_page.status_code == 200
            assert "secure" not in login_page.headers["Set-Cookie"].lower()
            assert requests.get(f"{site}/static/concord.css", timeout=30).status_code == 200
            for language, title in (("en", "Not found"), ("ko", "찾을 수 없음")):
                page = requests.get(f"{site}/nope/", headers={"Accept-Language": language}, timeout=30)
                assert page.status_code == 404
                assert title in page.text
                assert "urlpatterns" not in page.text
            stranger = requests.get(f"{site}/login/", headers={"Host": "concord.example"}, timeout=30)
            assert stranger.status_code == 400
        finally:
            server.terminate()


@pytest.mark.slow
def test_new_site_imports_questions_and_its_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    environment = {"DATABASE_URL": f"sqlite:///{folder}/x.sqlite3"}
    assert run_manage(folder, "migrate", **environment).returncode == 0
    questions = tmp_path / "questions.json"
    questions.write_text('[{"question": "Why?", "expected_answer": "So."}]')
    imported = run_manage(folder, "import_questions", str(questions), "--name", "first", **environment)
    assert imported.returncode == 0, imported.stderr
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    (folder / "x.sqlite3").chmod(0o644)
    checked = run_manage(folder, "check", "--database", "default", **environment)
    assert "concord.W001" in checked.stderr
    assert "x.sqlite3" in checked.stderr
    assert "can read" in run_manage(folder, "healthcheck", **environment).stdout


@pytest.mark.slow
def test_second_connection_keeps_file_locks_of_the_first(tmp_path: Path) -> None:
    """Else another process, ending, takes itself for the last and deletes the log from under this one."""
    assert run_manage(tmp_path, "migrate").returncode == 0
    two_connections = """
import os, subprocess, sys, threading
from django.db import connection
connection.ensure_connection()
connection.cursor().execute("SELECT count(*) FROM evaluation_project").fetchall()
second = threading.Thread(target=lambda: connection.ensure_connection())
second.start(); second.join()
name = connection.settings_dict["NAME"]
other = "import sqlite3, sys; o = sqlite3.connect(sys.argv[1]); o.execute('PRAGMA user_version = 7'); o.close()"
subprocess.run([sys.executable, "-c", other, name], check=True)
print("log kept" if os.path.exists(name + "-wal") else "log lost")
"""
    assert run_manage(tmp_path, "shell", "-c", two_connections).stdout.split("\n")[-2] == "log kept"


@pytest.mark.slow
def test_documented_deployment_passes_the_check(tmp_path: Path) -> None:
    site = {"DEBUG": "0", "SECRET_KEY": STRONG, "ALLOWED_HOSTS": "concord.example"}
    tls = {"CONCORD_TLS_REDIRECT": "1", "CONCORD_HSTS_SECONDS": "31536000"}
    completed = run_manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **site, **tls)
    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize("weak", ["", "short", "x" * 60, "django-insecure-" + STRONG])
def test_production_refuses_missing_or_weak_key(tmp_path: Path, weak: str) -> None:
    completed = run_manage(tmp_path, DEBUG="0", SECRET_KEY=weak, ALLOWED_HOSTS="concord.example")
    assert completed.returncode != 0
    assert "SECRET_KEY" in completed.stderr
    assert not (tmp_path / "secret_key").exists()


@pytest.mark.slow
def test_production_starts_with_strong_key(tmp_path: Path) -> None:
    completed = run_manage(tmp_path, DEBUG="0", SECRET_KEY=STRONG, ALLOWED_HOSTS="concord.example")
    assert completed.returncode == 0, completed.stderr


def test_mistyped_setting_is_named_in_error(tmp_path: Path) -> None:
    completed = run_manage(tmp_path, CONCORD_LEASE_SECOND="9")
    assert completed.returncode != 0
    assert "CONCORD_LEASE_SECOND" in completed.stderr


def test_setting_of_wrong_type_is_named_in_error(tmp_path: Path) -> None:
    completed = run_manage(tmp_path, CONCORD_WORKERS="many")
    assert completed.returncode != 0
    assert "CONCORD_WORKERS" in completed.stderr


@pytest.mark.slow
def test_judged_run_leaks_no_key(tmp_path: Path) -> None:
    """A judge whose server cannot be reached, with a key in the environment: the key is nowhere to be read."""
    secret = "sk-never-to-be-seen-0123456789"
    code = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
from tests.faults.prepare import main
from evaluation.models import Endpoint
from evaluation.runs.execution import drain
run = main(3, "http://127.0.0.1:9/v1", start_now=True)
Endpoint.objects.update(key_env="CONCORD_KEY_JUDGE")
print(repr(list(Endpoint.objects.all())), drain(run, seconds=3))
from django_q.models import OrmQ
print([q.payload for q in OrmQ.objects.all()])
"""
    completed = run_manage(
        tmp_path,
        "shell",
        "--no-imports",
        "-c",
        code,
        CONCORD_KEY_JUDGE=secret,
        CONCORD_JUDGE_ORIGINS="http://127.0.0.1:9",
        DJANGO_SETTINGS_MODULE="config.settings",
    )
    assert completed.returncode == 0, completed.stderr
    assert "Endpoint" in completed.stdout
    assert secret not in completed.stdout + completed.stderr
    assert secret.encode() not in (tmp_path / "x.sqlite3").read_bytes()


@pytest.mark.slow
def test_invalid_mail_server_is_named_in_error(tmp_path: Path) -> None:
    completed = run_manage(tmp_path, EMAIL_URL="carrier-pigeon://x")
    assert completed.returncode != 0
    assert "EMAIL_URL" in completed.stderr
    assert run_manage(tmp_path, EMAIL_URL="smtp+tls://me:secret@mail.example:587").returncode == 0


def test_unsupported_database_is_refused(tmp_path: Path) -> None:
    completed = run_manage(tmp_path, DATABASE_URL="mysql://concord@db.example/concord")
    assert completed.returncode != 0
    assert "postgres:// or sqlite://" in completed.stderr


def test_pooler_disables_connection_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://concord@db.example/concord?options=-c%20search_path%3Dours")
    options = database_settings(tmp_path)["OPTIONS"]
    assert options == {
        "options": "-c search_path=ours -c jit=off -c plan_cache_mode=force_generic_plan",
        "prepare_threshold": 3,
        "connect_timeout": 5,
    }
    monkeypatch.setenv("CONCORD_POOLER", "1")
    assert database_settings(tmp_path)["OPTIONS"] == {"options": "-c search_path=ours", "connect_timeout": 5}


def test_site_address_is_trusted_form_origin() -> None:
    assert site_origins("") == []
    assert site_origins("https://concord.example:8443/under/") == ["https://concord.example:8443"]
    for invalid_address in ("concord.example", "https://", "javascript:alert(1)"):
        with pytest.raises(ImproperlyConfigured, match="CONCORD_SITE_URL"):
            site_origins(invalid_address)


@pytest.mark.django_db
@pytest.mark.parametrize(("site", "status"), [("https://concord.example", 200), ("", 403)])
def test_login_works_behind_tls_server_with_site_address(site: str, status: int, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["concord.example"]
    settings.CSRF_TRUSTED_ORIGINS = site_origins(site)
    browser = Client(enforce_csrf_checks=True, headers={"host": "concord.example"})
    browser.get("/login/")
    form_data = {"username": "x", "password": "wrong", "csrfmiddlewaretoken": browser.cookies["csrftoken"].value}
    assert browser.post("/login/", form_data, headers={"origin": "https://concord.example"}).status_code == status


@pytest.mark.parametrize(
    ("file", "excluded_extras"),
    [("requirements.lock", {"dev"}), ("requirements-dev.lock", set())],
    ids=["installed", "checkout"],
)
def test_lock_file_holds_every_dependency_in_an_allowed_version(file: str, excluded_extras: set[str]) -> None:
    """`make lock` writes both files; run it after changing a dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [Requirement(requirement) for requirement in project["dependencies"]]
    requirements += [
        Requirement(requirement)
        for extra, extra_requirements in project["optional-dependencies"].items()
        if extra not in excluded_extras
        for requirement in extra_requirements
    ]
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    locked: dict[str, list[str]] = {}
    for line in lines:
        if "==" in line:
            name, version = line.split(" ")[0].split("==")
            locked.setdefault(canonicalize_name(name), []).append(version)
    missing_requirements = [
        str(requirement)
        for requirement in requirements
        if not any(requirement.specifier.contains(v) for v in locked.get(canonicalize_name(requirement.name), []))
    ]
    assert missing_requirements == []
    if file == "requirements.lock":
        hashed = sum("--hash=sha256:" in line for line in lines)
        assert hashed >= sum(map(len, locked.values()))


def test_commands_load_pages_and_clients_lazily(tmp_path: Path) -> None:
    code = "import django, sys; django.setup(); print([one for one in sys.modules if one.split('.')[-1] == 'admin'])"
    unwanted = "print([one for one in ('aiohttp', 'openpyxl', 'scipy', 'rich') if one in sys.modules])"
    completed = subprocess.run(
        [sys.executable, "-c", f"{code}; {unwanted}"],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings", "CONCORD_VAR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.splitlines() == ["['django.contrib.admin']", "[]"]
