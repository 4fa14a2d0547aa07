"""The files, commands, figures and field names of docs/files.md work as printed."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluation.formats import answer_rows, question_rows
from tests.factories import make_project

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.S)


@pytest.mark.django_db(transaction=True)
def test_files_and_commands_work_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    make_project()
    blocks = dict(reversed(BLOCKS))  # the first of each kind
    monkeypatch.chdir(tmp_path)
    Path("questions.yaml").write_text(blocks["yaml"], encoding="utf-8")
    Path("answers.jsonl").write_text(blocks["json"], encoding="utf-8")
    printed, stderr = io.StringIO(), io.StringIO()
    for line in commands("import_(?:questions|answers)") + commands("evaluate --questions"):
        with pytest.raises(SystemExit, match="100") if "--fail-under" in line else nullcontext():
            call_command(*line, stdout=printed, stderr=stderr)
    assert blocks[""].strip() in printed.getvalue()
    assert stderr.getvalue().count("Kept as metadata") == 0
    assert Path("report.html").stat().st_size > 10_000
    assert "<testsuites>" in Path("gate.xml").read_text(encoding="utf-8")


def commands(start: str) -> list[list[str]]:
    """The page's commands that begin so, as arguments."""
    matches = re.findall(rf"manage\.py ({start}.*)", PAGE)
    assert matches
    return [shlex.split(line) for line in matches]


def test_every_field_alias_is_listed() -> None:
    names = {*question_rows.ID, *question_rows.QUESTION_TEXT, *question_rows.REFERENCE, *question_rows.BUILT_IN_CHECKS}
    names |= {*answer_rows.QUESTION_ID, *answer_rows.ANSWER, *answer_rows.CONTEXTS, *answer_rows.RETRIEVED_IDS}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
