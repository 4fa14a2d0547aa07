"""Each kind of system in ``docs/systems.md``, added, tried and evaluated by command and by page: HTTP service, chat
model, command line and Python function."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Answer, Run, SystemVersion
from evaluation.runs.execution import drain
from examples.rag_service import RagService
from tests.evaluation.systems.asking import make_questions
from tests.examples import first_fast
from tests.factories import make_user

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "systems.md").read_text(encoding="utf-8")
SETTINGS = {
    title: re.search(r"```yaml\n(.*?)```", PAGE.split(f"\n## {title}\n")[1], re.S)[1]  # type: ignore[index]
    for title in ("HTTP service", "Command line", "Chat model", "Python function")
}
STREAM = 'address: http://127.0.0.1:8010/stream\nbody: {question: "{query}"}\nstream: true\ndelta: delta\n'
WRITES_FILE = 'regulation ask "{query}" --format json --output {output}'
WITH_OPTIONS = re.search(r'"regulation": "(regulation ask.*?)"', PAGE)[1]  # type: ignore[index]
CASES = {
    "service": ("http", SETTINGS["HTTP service"], ""),
    "stream": ("http", STREAM + 'end: "[DONE]"\nreply: {contexts: contexts}\n', ""),
    "program that prints": ("command", SETTINGS["Command line"], WITH_OPTIONS),
    "program that writes a file": ("command", SETTINGS["Command line"], WRITES_FILE),
    "chat": ("chat", SETTINGS["Chat model"], ""),
    "function": ("callable", SETTINGS["Python function"], ""),
}
WITHOUT_K = {"stream", "program that writes a file"}  # of how many passages are wanted


@pytest.fixture
def program_folder(rag_service: RagService, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the program ``regulation``, and the settings that allow each connector."""
    program = tmp_path / "regulation"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m examples.rag_command "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SYSTEM_RAG_KEY", "k1")
    monkeypatch.setenv("SYSTEM_LLM_KEY", "k2")
    settings.CONCORD_SYSTEM_CALLABLES = {"toy": "examples.retrieval:answer"}
    return tmp_path


def run_command(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output, stderr=io.StringIO())
    return output.getvalue()


@pytest.mark.parametrize("case", first_fast(CASES, 2))
def test_documented_system_can_be_added_tried_and_evaluated(
    case: str, rag_service: RagService, program_folder: Path, settings: Any
) -> None:
    connector, text, line = CASES[case]
    settings.CONCORD_SYSTEM_COMMANDS = {"regulation": shlex.split(line)}
    file = program_folder / "system.yaml"
    file.write_text(re.sub(r"http://127.0.0.1:8010|https://llm.example", rag_service.origin, text))
    question_set = make_questions(2)
    assert run_command("add_system", "mine", "--connector", connector, "-f", str(file)).strip() == "mine v1"
    preview = json.loads(run_command("try_system", "mine", "--questions", question_set.name, "--format", "json"))
    assert preview["mapping"]["answer"], preview

    options = ["--questions", question_set.name, "--system", "mine", "--no-judge", "--profile", "graphrag"]
    run_command("evaluate", *options, "-k", "2", "--format", "json")
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, question_set.project))
    run_options = {"questions": question_set.pk, "system": SystemVersion.objects.get().pk, "type": "full_rag", "k": 2}
    address = reverse("evaluation-run", query=run_options)
    fields = {"profile": "graphrag", "judge": "-", "repeat": 1, "token": str(uuid4())}
    plan = client.post(address, fields | {"plan": "1"}).context["page"].form.digest
    client.post(address, fields | {"start": "1", "planned": plan})
    runs = [drain(run.pk, seconds=30) for run in Run.objects.order_by("id")]
    assert [run.state for run in runs] == [Run.State.COMPLETED] * 2
    for run in runs:
        rows = Answer.objects.filter(answer_set=run.answer_set)
        assert {row.status for row in rows} == {"ok"}, [row.reason for row in rows]
        passage_counts = {row.contexts.count() for row in rows} if connector != "chat" else {2}
        assert passage_counts == {5 if case in WITHOUT_K else 2}
