"""The commands of docs/operations.md and docs/security.md do what the pages say, one after the other."""

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
PAGE = "".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("operations", "security"))


def page_command(start: str) -> str:
    """The page's command that holds this text, run by our interpreter."""
    line = next(line for line in re.findall(r"^    (.*)$", PAGE, re.M) if start in line)
    return line.replace(".venv/bin/python manage.py", f"{sys.executable} {ROOT}/manage.py")


def run_shell(line: str, folder: Path, **environment: str) -> str:
    """Run a line in a shell, in its own folder, and return its output."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CONCORD_", "DATABASE_"))}
    completed = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=inherited | environment, capture_output=True, text=True, check=False
    )
    return f"{completed.stdout}{completed.stderr}(code {completed.returncode})"


def test_backup_and_restore_work_as_printed(tmp_path: Path) -> None:
    old_folder, new_folder = tmp_path / "old", tmp_path / "new"
    new_folder.mkdir()
    at_old = {"CONCORD_VAR": str(old_folder)}
    assert "code 0" in run_shell(f"{sys.executable} {ROOT}/manage.py migrate --verbosity 0", tmp_path, **at_old)
    output = run_shell(page_command("backup concord.backup"), tmp_path, **at_old)
    assert "read back and verified" in output
    with zipfile.ZipFile(tmp_path / "concord.backup") as archive:
        manifest = Manifest.model_validate_json(archive.read("manifest.json"))
    assert manifest.engine == "sqlite"
    assert manifest.sha256 in output
    line = page_command("restore concord.backup").replace("/srv/concord-new", str(new_folder))
    output = run_shell(line, tmp_path, CONCORD_VAR=str(new_folder))
    assert "0 calls were in flight at that time" in output
    assert re.search("SECRET_KEY has changed.*second factors", output)  # a place of its own made a key of its own
    assert "(code 0)" in output
    output = run_shell(line, tmp_path, CONCORD_VAR=str(new_folder))
    assert "an empty location" in output
    assert "(code 1)" in output
    output = run_shell(f"{sys.executable} {ROOT}/manage.py healthcheck", tmp_path, **at_old, CONCORD_BACKUP_HOURS="24")
    assert output == "no worker heartbeat in the last 120 s\n(code 1)"  # the backup was noted


def test_setup_site_file_and_export_commands_work_as_printed(tmp_path: Path) -> None:
    environment = {
        "CONCORD_VAR": str(tmp_path / "var"),
        "CONCORD_JUDGE_ORIGINS": "https://llm.example.org",
        "CONCORD_SYSTEM_ORIGINS": "https://rag.example.org",
        "DJANGO_SUPERUSER_PASSWORD": "a good password",
        "TEAM_TOKEN": "concord_" + "x" * 43,
    }
    (tmp_path / "team.yaml").write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.S)[0], encoding="utf-8")

    def run_printed(start: str, code: int = 0, suffix: str = "") -> str:
        line = re.sub(r"^manage\.py", f"{sys.executable} {ROOT}/manage.py", page_command(start))
        output = run_shell(f"{line}{suffix}", tmp_path, **environment)
        assert output.endswith(f"(code {code})"), f"{line}: {output}"
        return output

    run_printed("manage.py migrate")
    run_printed("createsuperuser", suffix=" --noinput --username admin --email admin@example.org")
    run_printed("provision team.yaml --check", 1)
    assert "/password/" in run_shell(f"{sys.executable} {ROOT}/manage.py provision team.yaml", tmp_path, **environment)
    run_printed("provision team.yaml --check")  # nothing is left to do
    output = run_shell(f"{sys.executable} {ROOT}/manage.py verify_audit --seal", tmp_path, **environment)
    head = re.search(r"\b\d+:[0-9a-f]{64}", output)
    assert head is not None
    run_printed("purge --person kim")
    assert "0 deleted" in run_printed("CONCORD_REPLY_RETENTION_DAYS=90")
    head_command = page_command("verify_audit --head").replace("812:5f0c…", head[0])
    assert "(code 0)" in run_shell(head_command, tmp_path, **environment)
    assert "(code 1)" in run_shell(head_command.replace(head[0], f"1:{'0' * 64}"), tmp_path, **environment)
    assert "Run 12 does not exist" in run_shell(page_command("verify_report 12"), tmp_path, **environment)


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_container_health_check_follows_readyz(status: int, code: int) -> None:
    class FixedStatusHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"ready": status == 200}).encode())

        def log_message(self, *_: object) -> None:
            """Suppress request logging."""

    line = next(line for line in re.findall(r"^    (.*)$", PAGE, re.M) if "readyz" in line)
    with HTTPServer(("127.0.0.1", 0), FixedStatusHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        line = line.replace("python ", f"{sys.executable} ", 1).replace("8000", str(server.server_port))
        assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == code
        server.shutdown()
