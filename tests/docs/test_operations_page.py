"""The commands of docs/operations.md about backups and health do what the page says, one after the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from evaluation.worker.backups import Manifest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def command(start: str) -> str:
    """The page's command that holds this text, run by our interpreter."""
    line = next(line for line in re.findall(r"^    (.*)$", PAGE, re.M) if start in line)
    return line.replace(".venv/bin/python manage.py", f"{sys.executable} {ROOT}/manage.py")


def run(line: str, folder: Path, **environment: str) -> str:
    """Have a shell run it in a folder of its own; what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONCORD_", "DATABASE_"))}
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=kept | environment, capture_output=True, text=True, check=False
    )
    return f"{done.stdout}{done.stderr}(code {done.returncode})"


def test_backup_and_restore_as_printed(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    new.mkdir()
    at_old = {"CONCORD_VAR": str(old)}
    assert "code 0" in run(f"{sys.executable} {ROOT}/manage.py migrate --verbosity 0", tmp_path, **at_old)
    said = run(command("backup concord.backup"), tmp_path, **at_old)
    assert "read again: whole" in said
    with zipfile.ZipFile(tmp_path / "concord.backup") as archive:
        manifest = Manifest.model_validate_json(archive.read("manifest.json"))
    assert manifest.engine == "sqlite"
    assert manifest.sha256 in said
    line = command("restore concord.backup").replace("/srv/concord-new", str(new))
    said = run(line, tmp_path, CONCORD_VAR=str(new))
    assert "0 calls were out at that moment" in said
    assert "SECRET_KEY is another one" in said  # a place of its own made a key of its own
    assert "(code 0)" in said
    said = run(line, tmp_path, CONCORD_VAR=str(new))
    assert "an empty place only" in said
    assert "(code 1)" in said
    said = run(f"{sys.executable} {ROOT}/manage.py healthcheck", tmp_path, **at_old, CONCORD_BACKUP_HOURS="24")
    assert said == "no heartbeat of a cluster in the last 120 s\n(code 1)"  # the backup was noted


def test_the_first_day_a_site_by_a_file_and_what_is_taken_out_as_printed(tmp_path: Path) -> None:
    here = {
        "CONCORD_VAR": str(tmp_path / "var"),
        "CONCORD_JUDGE_ORIGINS": "https://llm.example.org",
        "CONCORD_SYSTEM_ORIGINS": "https://rag.example.org",
        "DJANGO_SUPERUSER_PASSWORD": "a good password",
        "TEAM_TOKEN": "concord_" + "x" * 43,
    }
    (tmp_path / "team.yaml").write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.S)[0], encoding="utf-8")

    def do(start: str, code: int = 0, more: str = "") -> str:
        line = re.sub(r"^manage\.py", f"{sys.executable} {ROOT}/manage.py", command(start))
        said = run(f"{line}{more}", tmp_path, **here)
        assert said.endswith(f"(code {code})"), f"{line}: {said}"
        return said

    do("manage.py migrate")
    do("createsuperuser", more=" --noinput --username admin --email admin@example.org")
    do("provision team.yaml --check", 1)
    assert "/password/" in run(f"{sys.executable} {ROOT}/manage.py provision team.yaml", tmp_path, **here)
    do("provision team.yaml --check")  # nothing is left to do
    said = run(f"{sys.executable} {ROOT}/manage.py verify_audit --seal", tmp_path, **here)
    head = re.search(r"\b\d+:[0-9a-f]{64}", said)
    assert head is not None
    do("purge --person kim")
    assert "0 calls" in do("CONCORD_REPLY_RETENTION_DAYS=90")
    again = command("verify_audit --head").replace("812:5f0c…", head[0])
    assert "(code 0)" in run(again, tmp_path, **here)
    assert "(code 1)" in run(again.replace(head[0], f"1:{'0' * 64}"), tmp_path, **here)
    assert "there is no run 12" in run(command("verify_report 12"), tmp_path, **here)


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_check_of_a_container_follows_readyz(status: int, code: int) -> None:
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"ready": status == 200}).encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    line = next(line for line in re.findall(r"^    (.*)$", PAGE, re.M) if "readyz" in line)
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        line = line.replace("python ", f"{sys.executable} ", 1).replace("8000", str(server.server_port))
        assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == code
        server.shutdown()
