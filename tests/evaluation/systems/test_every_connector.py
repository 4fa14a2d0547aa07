"""Each kind of system as ``docs/systems.md`` prints it, made, tried and evaluated by the commands, and from the page: a
service, a chat model, source 003's program as that source writes it, a function."""

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
from tests.evaluation.systems.asking import questions
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
UNTOLD = {"stream", "program that writes a file"}  # of how many passages are wanted


@pytest.fixture
def place(asked: RagService, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the operator allows, and a program by the name ``regulation``."""
    program = tmp_path / "regulation"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m examples.rag_command "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SYSTEM_RAG_KEY", "k1")
    monkeypatch.setenv("SYSTEM_LLM_KEY", "k2")
    settings.CONCORD_SYSTEM_CALLABLES = {"toy": "examples.retrieval:answer"}
    return tmp_path


def command(*arguments: str) -> str:
    said = io.StringIO()
    call_command(*arguments, stdout=said, stderr=io.StringIO())
    return said.getvalue()


@pytest.mark.parametrize("case", first_fast(CASES, 2))
def test_it_is_made_tried_and_evaluated(case: str, asked: RagService, place: Path, settings: Any) -> None:
    connector, text, line = CASES[case]
    settings.CONCORD_SYSTEM_COMMANDS = {"regulation": shlex.split(line)}
    file = place / "system.yaml"
    file.write_text(re.sub(r"http://127.0.0.1:8010|https://llm.example", asked.origin, text))
    questioned = questions(2)
    assert command("add_system", "mine", "--connector", connector, "-f", str(file)).strip() == "mine v1"
    tried = json.loads(command("try_system", "mine", "--questions", questioned.name, "--format", "json"))
    assert tried["mapping"]["answer"], tried

    by_command = ["--questions", questioned.name, "--system", "mine", "--no-judge", "--profile", "graphrag"]
    command("evaluate", *by_command, "-k", "2", "--format", "json")
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, questioned.project))
    chosen = {"questions": questioned.pk, "system": SystemVersion.objects.get().pk, "type": "full_rag", "k": 2}
    address = reverse("evaluation-run", query=chosen)
    fields = {"profile": "graphrag", "judge": "-", "repeat": 1, "token": str(uuid4())}
    plan = client.post(address, fields | {"plan": "1"}).context["page"].form.digest
    client.post(address, fields | {"start": "1", "planned": plan})
    runs = [drain(run.pk, seconds=30) for run in Run.objects.order_by("id")]
    assert [run.state for run in runs] == [Run.State.COMPLETED] * 2
    for run in runs:
        rows = Answer.objects.filter(answer_set=run.answer_set)
        assert {row.status for row in rows} == {"ok"}, [row.reason for row in rows]
        found = {row.contexts.count() for row in rows} if connector != "chat" else {2}
        assert found == {5 if case in UNTOLD else 2}
