"""The wheel, built and installed outside the checkout: it owns the client and the two apps alone, its command loads and
serves the demo, and its state lies in the working directory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.faults.site import free_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the installed wheel, without its dependencies."""
    wheel_folder, target = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("installed")
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", wheel_folder, ROOT], check=True)
    (wheel,) = wheel_folder.glob("concord_eval-*.whl")
    subprocess.run([*PIP, "install", "--no-deps", "--target", target, wheel], check=True)
    return target


@pytest.fixture
def environment(installed: Path) -> dict[str, str]:
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("CONCORD_", "DJANGO_", "DATABASE"))
    }
    return variables | {"PYTHONPATH": str(installed)}


def test_wheel_installs_only_the_client_and_the_two_apps(installed: Path) -> None:
    owned = {path.name for path in installed.iterdir() if path.name != "bin" and path.suffix != ".dist-info"}
    assert owned == {"concord", "evaluation", "review"}
    assert {path.name for path in (installed / "evaluation").iterdir()} >= {"installed", "py.typed"}
    assert (installed / "review/py.typed").exists()


def test_wheel_contains_settings_and_server_entry_point(environment: dict[str, str], tmp_path: Path) -> None:
    code = (
        "from evaluation.installed.wsgi import application; from django.conf import settings; print(settings.VAR_DIR)"
    )
    settings_environment = environment | {"DJANGO_SETTINGS_MODULE": "evaluation.installed.settings"}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=settings_environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert (completed.stdout.strip(), completed.returncode) == (str(tmp_path / "var"), 0), completed.stderr


def test_installed_command_loads_and_serves_demo(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    concord = [sys.executable, str(installed / "bin/concord")]
    completed = subprocess.run([*concord, "demo"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    assert (tmp_path / "var/concord.sqlite3").exists()
    report = subprocess.run([*concord, "results", "4"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "demo-graph" in report.stdout, report.stderr
    port = free_port()
    site = subprocess.Popen([*concord, "serve", "--port", str(port)], env=environment, cwd=tmp_path)
    try:
        assert "Concord" in _wait_for_page(f"http://127.0.0.1:{port}/login/")
        health = subprocess.run(
            [*concord, "healthcheck"], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert health.returncode == 0, health.stdout
    finally:
        site.terminate()
        assert site.wait(timeout=30) == 0
    assert not any((installed / "evaluation").rglob("*.sqlite3"))


def _wait_for_page(address: str, seconds: float = 60) -> str:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as page:
                return str(page.read().decode())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
