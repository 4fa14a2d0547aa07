"""The gate of a pull request (``examples/ci``) against a real server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from concord.gate import main, parse
from evaluation.core.roles import Role
from tests.evaluation.rest.clients import token_for
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)

FOLDER = Path(__file__).resolve().parents[2] / "examples/ci"
QUESTIONS = [
    {"id": f"q{n}", "question": f"How long is leave {n}?", "reference": f"Leave {n} is {n} days."} for n in range(12)
]


@pytest.fixture
def gate(settings: Any, live_server: Any, tmp_path: Path, monkeypatch: Any) -> Any:
    settings.CONCORD_DISPATCHER = "local"
    project = make_project()
    monkeypatch.setenv("CONCORD_URL", live_server.url)
    monkeypatch.setenv("CONCORD_TOKEN", token_for(make_user(Role.EVALUATOR, project), project))
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)), encoding="utf-8")

    def run(branch: str, answers: list[str], *flags: str) -> tuple[int, str]:
        rows = [{"question_id": row["id"], "answer": text} for row, text in zip(QUESTIONS, answers, strict=True)]
        (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        summary = tmp_path / f"{branch}.md"
        files = ["--questions", str(tmp_path / "questions.jsonl"), "--answers", str(tmp_path / "answers.jsonl")]
        names = ["--set", "faq", "--system", "my-rag", "--branch", branch, "--summary", str(summary)]
        code = main([*files, *names, *flags])
        return code, summary.read_text(encoding="utf-8") if summary.exists() else ""

    return run


def test_gate_compares_with_the_newest_run_of_main(gate: Any) -> None:
    good = [row["reference"] for row in QUESTIONS]
    worse = ["I don't know." if n % 2 else text for n, text in enumerate(good)]
    assert gate("main", worse)[0] == 0
    assert gate("main", good)[0] == 0
    code, summary = gate("worse", worse)
    assert code == 100
    assert "drop" in summary
    code, summary = gate("equal", good)
    assert code == 0, summary


def test_gate_without_a_baseline_checks_the_score_alone(gate: Any) -> None:
    good = [row["reference"] for row in QUESTIONS]
    assert gate("first", good)[0] == 0
    assert gate("second", good, "--fail-under", "1.1")[0] == 100


def test_refused_file_is_said_and_ends_with_1(gate: Any, capsys: Any) -> None:
    assert gate("broken", [""] * len(QUESTIONS), "--judge", "nobody")[0] == 1
    assert "nobody" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["action.yml", "gitlab.yml"])
def test_templates_call_the_script_with_options_it_has(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    call = re.search(r"concord\.gate\s+((?:\s*--[a-z-]+ \S+)+)", text)
    assert call
    parse(["0.02" if word == '"$MAX_DROP"' else word for word in call[1].split()])


@pytest.mark.parametrize("status", [0, 200, 308, 502])
def test_gate_names_what_answered_instead_of_the_site(
    status: int, gate: Any, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        if not status:
            raise httpx2.ConnectError("refused", request=request)
        return httpx2.Response(status, headers={"Location": "https://elsewhere.example/"}, text="<p>Hello</p>")

    transport = httpx2.MockTransport(handle)
    monkeypatch.setattr(httpx2.Client, "_transport_for_url", lambda _client, _url: transport)
    assert gate("branch", ["" for _ in QUESTIONS])[0] == 1
    assert ("elsewhere.example" if status else "refused") in capsys.readouterr().err
