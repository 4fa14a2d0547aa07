"""The wheel, built and installed elsewhere with none of the checkout beside it: it owns the two apps alone, its command
loads the demo and serves it, and its state lies in the folder one works in."""

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
    """The folder the wheel was installed in, without what it depends on."""
    built, place = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("installed")
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", built, ROOT], check=True)
    (wheel,) = built.glob("concord_eval-*.whl")
    subprocess.run([*PIP, "install", "--no-deps", "--target", place, wheel], check=True)
    return place


@pytest.fixture
def environment(installed: Path) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("CONCORD_", "DJANGO_", "DATABASE"))
    }
    return kept | {"PYTHONPATH": str(installed)}


def test_it_owns_no_other_name_than_the_two_apps(installed: Path) -> None:
    owned = {path.name for path in installed.iterdir() if path.name != "bin" and path.suffix != ".dist-info"}
    assert owned == {"evaluation", "review"}
    assert {path.name for path in (installed / "evaluation").iterdir()} >= {"installed", "py.typed"}
    assert (installed / "review/py.typed").exists()


def test_settings_and_entrance_have_names_of_a_package_of_it(environment: dict[str, str], tmp_path: Path) -> None:
    code = (
        "from evaluation.installed.wsgi import application; from django.conf import settings; print(settings.VAR_DIR)"
    )
    named = environment | {"DJANGO_SETTINGS_MODULE": "evaluation.installed.settings"}
    done = subprocess.run([sys.executable, "-c", code], env=named, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == (str(tmp_path / "var"), 0), done.stderr


def test_its_command_loads_the_demo_and_serves_it(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    concord = [sys.executable, str(installed / "bin/concord")]
    done = subprocess.run([*concord, "demo"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "var/concord.sqlite3").exists()
    told = subprocess.run([*concord, "results", "4"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "demo-graph" in told.stdout, told.stderr
    port = free_port()
    site = subprocess.Popen([*concord, "serve", "--port", str(port)], env=environment, cwd=tmp_path)
    try:
        assert "Concord" in _answered(f"http://127.0.0.1:{port}/login/")
        health = subprocess.run(
            [*concord, "healthcheck"], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert health.returncode == 0, health.stdout
    finally:
        site.terminate()
        assert site.wait(timeout=30) == 0
    assert not any((installed / "evaluation").rglob("*.sqlite3"))


def _answered(address: str, seconds: float = 60) -> str:
    until = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as page:
                return str(page.read().decode())
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.3)
