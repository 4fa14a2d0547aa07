"""Evaluation of a function here, without a site, and the pytest plugin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from concord import ConcordError, Evaluation, evaluate

QUESTIONS = [
    {"id": "leave", "question": "How much annual leave is there?", "reference": "There are 25 days of annual leave."},
    {"id": "notice", "question": "What is the notice period?", "reference": "The notice period is three months."},
]


def answer(question: str) -> Any:
    if "notice" in question:
        raise RuntimeError("no connection")
    return {"answer": "There are 25 days.", "contexts": ["Annual leave is 25 days a year."]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return tmp_path


@pytest.mark.slow
def test_function_is_scored_here(folder: Path) -> None:
    evaluation = evaluate(answer, QUESTIONS, folder=folder / "var", profile="graphrag")
    leave, notice = evaluation.rows()
    assert (leave["correctness"], leave["expected"]) == (5.0, "There are 25 days of annual leave.")
    assert (notice["score"], notice["error"]) == (None, "RuntimeError: no connection")
    assert "No score to report" in str(evaluation)
    assert evaluation.score is None


@pytest.mark.slow
def test_refused_option_is_said(folder: Path) -> None:
    with pytest.raises(ConcordError, match="nonsense"):
        evaluate(answer, QUESTIONS, folder=folder / "var", profile="nonsense")


def test_question_without_text_is_refused() -> None:
    with pytest.raises(ConcordError, match="question 2 has no text"):
        evaluate(answer, [QUESTIONS[0], {"id": "x"}])


@pytest.mark.parametrize("line", ["question,reference", "[1]"])
def test_file_that_is_no_json_lines_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(f'{{"question": "How long?"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(ConcordError, match="line 2: no JSON"):
        evaluate(answer, file)


def test_rows_of_questions_with_one_text_are_told_apart_by_id() -> None:
    questions = [{"id": name, "question": "How long?"} for name in ("a", "b")]
    details = [
        {"id": name, "question": "How long?", "response": name, "score": 1.0, "metrics": {}, "source": {}}
        for name in ("a", "b")
    ]
    evaluation = Evaluation(questions, [{}, {}], {"evaluation": {"details": details}})
    assert [row["answer"] for row in evaluation.rows()] == ["a", "b"]


def test_score_is_the_corrected_one_where_experts_rated() -> None:
    overall: dict[str, Any] = {"judge_only": {"value": 0.8}, "corrected": {"withheld": "not_reviewed"}}
    assert Evaluation([], [], {"overall": overall}).score == 0.8
    overall["corrected"] = {"value": 0.6}
    assert Evaluation([], [], {"overall": overall}).score == 0.6


def test_rows_are_a_table_in_a_notebook() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = Evaluation([], [], {"evaluation": {"details": []}}).frame()
    assert isinstance(frame, pandas.DataFrame)


def run_pytest(folder: Path, marker: str) -> str:
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)), encoding="utf-8")
    test = f"""
        import pytest

        @pytest.mark.concord(questions="questions.jsonl", {marker})
        def test_handbook(question):
            return "There are 25 days of annual leave."
        """
    (folder / "test_rag.py").write_text(dedent(test), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:django", "-p", "no:xdist", "test_rag.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_each_question_is_a_test(folder: Path) -> None:
    output = run_pytest(folder, "fail_under=0.5")
    assert "1 failed, 1 passed" in output, output
    assert "question: What is the notice period?" in output
    assert "expected: The notice period is three months." in output
    assert "at least 0.5 expected" in output


@pytest.mark.slow
def test_gate_is_one_test(folder: Path) -> None:
    output = run_pytest(folder, "fail_under=0.9, gate=True")
    assert "1 failed" in output, output
    assert "gate: undecided" in output or "gate: fail" in output
    assert "1 passed" in run_pytest(folder, "fail_under=0, gate=True")


@pytest.mark.slow
def test_notebook_runs(folder: Path) -> None:
    notebook = json.loads((Path(__file__).parents[2] / "examples/evaluate.ipynb").read_text(encoding="utf-8"))
    program = "\n\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    completed = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert "No score to report yet" in completed.stdout, completed.stderr
    assert "leave 1.0 1.0 5.0" in completed.stdout
