"""The wheel, built and installed outside the checkout: it owns the client and the two apps alone, its command loads and
serves the demo, and its state lies in the working directory."""

from __future__ import annotations

import json
import os
import shutil
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


FAULTY_METRICS = """
from evaluation.core.metric_specs import Bilingual, rule_metric
from evaluation.core.samples import Result
from evaluation.metric_packages.package import MetricPackage


def declare(name):
    return rule_metric(name=name, title=Bilingual(name, name), formula=Bilingual("one", "일"), source="")


@declare("raising")
def raising(question, answer, settings):
    if answer.text == "raise":
        raise ValueError("no value")
    return Result.scored(1.0)


@declare("hanging")
def hanging(question, answer, settings):
    while answer.text == "hang":
        pass
    return Result.scored(1.0)


PACKAGE = MetricPackage(rule_metrics=(raising, hanging))
"""
PROFILE = """
import django

django.setup()
from evaluation.judges.shipped import save_profile
from evaluation.models import Project
from evaluation.profiles.spec import ProfileSpec

content = {"name": "readers", "title": {"en": "Readers", "ko": "독자"}}
content |= {"parts": [{"metric": "short_sentences", "weight": 1.0}], "reported": ["raising", "hanging", "politeness"]}
save_profile(Project.objects.get(), ProfileSpec.model_validate(content))
"""


def test_metric_package_beside_the_wheel(
    installed: Path, environment: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The example is found by its entry point and used in a profile. Metrics of a file that raise or hang fail alone;
    the one that hangs is ended after 30 seconds."""
    package = tmp_path_factory.mktemp("package")
    source = ROOT / "examples/metric_package"
    subprocess.run([*PIP, "install", "--no-deps", "--no-build-isolation", "--target", package, source], check=True)
    (tmp_path / "faulty.py").write_text(FAULTY_METRICS)
    questions = [{"id": f"q{n}", "category": "single_hop", "question": f"Number {n}?"} for n in range(3)]
    texts = ["It opens at nine.", "raise", "hang"]
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    answers = [{"id": f"q{n}", "answer": text} for n, text in enumerate(texts)]
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    path = os.pathsep.join([str(installed), str(package)])
    variables = environment | {"PYTHONPATH": path, "CONCORD_METRICS": str(tmp_path / "faulty.py")}
    variables["DJANGO_SETTINGS_MODULE"] = "evaluation.installed.settings"

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *command], env=variables, cwd=tmp_path, capture_output=True, text=True)

    shutil.copytree(source / "tests", tmp_path / "tests")
    own_tests = run("-m", "pytest", "-q", "-p", "no:django", "-p", "no:cacheprovider", "tests")
    assert own_tests.returncode == 0, own_tests.stdout
    concord = str(installed / "bin/concord")
    for command in (
        (concord, "migrate"),
        (concord, "import_questions", "questions.json", "--name", "mine"),
        (concord, "import_answers", "answers.json", "--questions", "mine", "--system", "rag"),
        ("-c", PROFILE),
    ):
        completed = run(*command)
        assert completed.returncode == 0, completed.stderr
    evaluated = run(
        *(concord, "evaluate", "--questions", "mine", "--system", "rag", "--no-ask", "--profile", "readers"),
        *("--output", "report.json"),
    )
    assert (tmp_path / "report.json").exists(), evaluated.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    counts = {
        name: (report["coverage"][name]["scored"], report["coverage"][name]["failed"])
        for name in ("short_sentences", "raising", "hanging", "politeness")
    }
    assert counts == {"short_sentences": (3, 0), "raising": (2, 1), "hanging": (2, 1), "politeness": (0, 0)}
    assert report["overall"]["judge_only"]["value"] == 1.0
    assert report["provenance"]["packages"]["short_sentences"].startswith("reader-metrics 0.1.0 ")
    assert report["provenance"]["packages"]["hanging"].startswith("faulty.py ")
    assert "in hanging" in evaluated.stderr
    (tmp_path / "faulty.py").write_text("import missing_library")
    refused = run(concord, "results", "2")
    assert "own metrics of faulty.py: ModuleNotFoundError: No module named 'missing_library'" in refused.stderr
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
