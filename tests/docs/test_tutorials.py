"""The tutorials: their commands work as printed with the installed package, and the pages have their labels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polib
import pytest

from evaluation.core.roles import Role
from tests.docs.figures import KOREAN
from tests.evaluation.rest.clients import token_for
from tests.factories import make_project, make_user
from tests.test_wheel import environment, installed

__all__ = ["environment", "installed"]

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
LANGUAGES = {"en": 0, "ko": 1}
# Emphasised words that are no labels: names of the demo, and an outcome that commands print.
NAMES = {"demo-en · demo-vector", "demo-ko · demo-vector", "calibration-en", "calibration-ko", "main", "undecided"}


def half(page: Path, language: str) -> str:
    return page.read_text(encoding="utf-8").split(KOREAN)[LANGUAGES[language]]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_labels_are_those_of_the_pages(page: Path, language: str) -> None:
    catalogue = polib.pofile(str(ROOT / "locale/ko/LC_MESSAGES/django.po"))
    texts = {entry.msgid if language == "en" else entry.msgstr for entry in catalogue}
    labels = {" ".join(label.split()) for label in re.findall(r"(?<!\*)\*([^*`]+)\*(?!\*)", half(page, language))}
    assert labels - NAMES - texts == set()


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_commands_of_the_first_evaluation_work_as_printed(
    installed: Path, environment: dict[str, str], tmp_path: Path, language: str
) -> None:
    page = half(ROOT / "docs/tutorials/first-evaluation.md", language)
    blocks = re.findall(r"```(sh|text)\n(.*?)```", page, re.DOTALL)
    # The package is installed already, and the last block asks for a password and serves.
    *scripts, last = [text for kind, text in blocks if kind == "sh"]
    assert "concord serve" in last
    concord = f"{sys.executable} {installed / 'bin/concord'}"
    script = re.sub(r"^python3 -m venv.*\n^\.venv/bin/pip.*\n", "", "".join(scripts), flags=re.MULTILINE)
    completed = subprocess.run(
        ["bash", "-c", script.replace(".venv/bin/concord", concord)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    printed_lines = [line for kind, text in blocks if kind == "text" for line in text.splitlines()]
    assert set(printed_lines) - set(completed.stdout.splitlines()) == set(), completed.stdout + completed.stderr
    assert completed.returncode == 100
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("language", LANGUAGES)
def test_commands_of_the_gate_work_as_printed(live_server: Any, settings: Any, tmp_path: Path, language: str) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = make_project()
    token = token_for(make_user(Role.EVALUATOR, project), project)
    page = half(ROOT / "docs/tutorials/ci-gate.md", language)
    environment_block, *blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert environment_block.startswith("export CONCORD_URL=")
    variables = {**os.environ, "CONCORD_URL": live_server.url, "CONCORD_TOKEN": token, "PYTHONPATH": str(ROOT)}
    codes = [
        subprocess.run(
            ["bash", "-c", block.replace("python -m", f"{sys.executable} -m")], env=variables, cwd=tmp_path
        ).returncode
        for block in blocks
    ]
    assert codes == [0, 100]
    assert "shorter-prompt" in (tmp_path / "summary.md").read_text(encoding="utf-8")
