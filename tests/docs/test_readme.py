"""The README's commands for systems under test: a service, a program, a chat model and a function, as printed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from examples.rag_service import RagService
from tests.docs.test_operations_page import ROOT, run

pytestmark = pytest.mark.slow

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
KINDS = ("http", "command", "chat", "callable")
QUESTIONS = '{"question": "How long is annual leave?"}\n{"question": "연차 휴가는 며칠인가요?"}\n'


def test_each_kind_of_system_is_made_tried_and_evaluated_as_printed(tmp_path: Path) -> None:
    block = next(one for one in re.findall(r"```sh\n(.*?)```", PAGE, re.S) if "add_system" in one)
    lines = dedent(block).replace("$PWD/.venv/bin/python", sys.executable)
    lines = lines.replace(".venv/bin/python manage.py", f"{sys.executable} {ROOT}/manage.py")
    (tmp_path / "questions.jsonl").write_text(QUESTIONS, encoding="utf-8")
    here = {"CONCORD_VAR": str(tmp_path / "var")}
    before = "migrate --verbosity 0", "import_questions questions.jsonl --name mine"
    for command in before:
        assert "(code 0)" in run(f"{sys.executable} {ROOT}/manage.py {command}", tmp_path, **here)
    with RagService() as service:
        said = run(f"set -e\n{lines.replace('http://127.0.0.1:8010', service.origin)}", tmp_path, **here)
    assert said.endswith("(code 0)"), said
    for kind in KINDS:
        told = run(f"{sys.executable} {ROOT}/manage.py results {KINDS.index(kind) + 1} --format json", tmp_path, **here)
        assert f"toy-{kind}" in told
