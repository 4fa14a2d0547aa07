"""The README's commands for systems under test: a service, a program, a chat model and a function, as printed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from examples.rag_service import RagService
from tests.docs.test_operations_page import ROOT, run_shell

pytestmark = pytest.mark.slow

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
KINDS = ("http", "command", "chat", "callable")
QUESTIONS = '{"question": "How long is annual leave?"}\n{"question": "연차 휴가는 며칠인가요?"}\n'


def test_commands_for_each_kind_of_system_work_as_printed(tmp_path: Path) -> None:
    block = next(candidate for candidate in re.findall(r"```sh\n(.*?)```", PAGE, re.S) if "add_system" in candidate)
    lines = dedent(block).replace("$PWD/.venv/bin/python", sys.executable)
    lines = lines.replace(".venv/bin/python manage.py", f"{sys.executable} {ROOT}/manage.py")
    (tmp_path / "questions.jsonl").write_text(QUESTIONS, encoding="utf-8")
    environment = {"CONCORD_VAR": str(tmp_path / "var")}
    setup_commands = "migrate --verbosity 0", "import_questions questions.jsonl --name mine"
    for command in setup_commands:
        assert "(code 0)" in run_shell(f"{sys.executable} {ROOT}/manage.py {command}", tmp_path, **environment)
    with RagService() as service:
        output = run_shell(f"set -e\n{lines.replace('http://127.0.0.1:8010', service.origin)}", tmp_path, **environment)
    assert output.endswith("(code 0)"), output
    for kind in KINDS:
        report = run_shell(
            f"{sys.executable} {ROOT}/manage.py results {KINDS.index(kind) + 1} --format json", tmp_path, **environment
        )
        assert f"toy-{kind}" in report
