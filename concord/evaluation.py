"""Evaluation of a Python function: ask it questions, have Concord score the answers, and read the result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from rich.progress import track

from concord.client import Client, ConcordError

Question: TypeAlias = Mapping[str, Any]
# The text of an answer, or a mapping with ``answer`` and, for example, ``contexts``.
Answer: TypeAlias = "str | Mapping[str, Any]"
# The exit code of a command whose gate did not pass.
GATE_NOT_PASSED = 100


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scored answers of a function, one per question. ``report`` is Concord's JSON report of the run."""

    questions: Sequence[Question]
    answers: Sequence[Mapping[str, Any]]
    report: Mapping[str, Any]

    @property
    def score(self) -> float | None:
        """Overall score from 0 to 1: corrected by experts if they rated, else the judge's; ``None`` without one."""
        overall = self.report["overall"]
        return next((overall[kind]["value"] for kind in ("corrected", "judge_only") if "value" in overall[kind]), None)

    @property
    def verdict(self) -> str:
        """What the result means, in sentences."""
        return "\n".join(self.report["verdict"][part] for part in ("judge", "score", "next"))

    def rows(self) -> list[dict[str, Any]]:
        """A row per question, in order: question, answer or error, expected answer, score from 0 to 1, a column per
        metric, and the judge's reasons. A value is ``None`` where a metric failed or does not apply."""
        details = self.report["evaluation"]["details"]
        by_id = {detail["id"]: detail for detail in details}
        by_text = {detail["question"]: detail for detail in details}
        return [
            _result_row(question, answer, by_id.get(question.get("id")) or by_text[question["question"]])
            for question, answer in zip(self.questions, self.answers, strict=True)
        ]

    def frame(self) -> Any:
        """The rows as a DataFrame of pandas, else of polars.

        :raises ImportError: if neither is installed."""
        for name in ("pandas", "polars"):
            with suppress(ImportError):
                return import_module(name).DataFrame(self.rows())
        raise ImportError("install pandas or polars")

    def __str__(self) -> str:
        return self.verdict


def _result_row(question: Question, answer: Mapping[str, Any], detail: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": detail["id"],
        "question": detail["question"],
        "answer": detail["response"],
        "error": answer.get("error", ""),
        "expected": question.get("reference") or question.get("expected_answer"),
        "score": detail["score"],
        **{name: metric["value"] for name, metric in detail["metrics"].items() if name != "answer_overall"},
        "reasons": detail["source"].get("reasoning", {}),
    }


def evaluate(
    function: Callable[[str], Answer],
    questions: Iterable[Question] | str | os.PathLike[str],
    *,
    name: str = "notebook",
    system: str = "",
    client: Client | None = None,
    folder: str | os.PathLike[str] = "var",
    **options: Any,
) -> Evaluation:
    """Ask ``function`` each question, and score its answers.

    ``questions`` are rows with ``question`` and, for example, ``id``, ``reference`` and ``expected_keywords``, or the
    path of a JSON Lines file of such rows. ``function`` gets the text of a question. If it raises, its answer has
    failed, and the other questions continue. Without ``client`` the scores are computed here, in a database in
    ``folder``, by rules and the offline baseline. ``system`` defaults to the function's name. ``options`` are those of
    the command ``evaluate`` (with ``client`` those of REST), such as ``profile`` and ``judge``.

    :raises ConcordError: with the reason, for refused questions, answers or options."""
    rows = read_rows(questions)
    system = system or getattr(function, "__name__", "function")
    answers = [_ask(function, row) for row in track(rows, description="Asking")]
    if client is None:
        return Evaluation(rows, answers, _score_here(rows, answers, name, system, Path(folder), options))
    run = client.start_run(client.import_answers(client.import_questions(name, rows), system, answers), **options)
    run = client.wait(run)
    if run.status in ("paused", "cancelled"):
        raise ConcordError(f"run {run.id} is {run.status}: {run.error_message}")
    return Evaluation(rows, answers, client.report(run))


def read_rows(questions: Iterable[Question] | str | os.PathLike[str]) -> list[Question]:
    if isinstance(questions, (str, os.PathLike)):
        questions = _read_file(Path(questions))
    rows = list(questions)
    for number, row in enumerate(rows, start=1):
        if not row.get("question"):
            raise ConcordError(f"question {number} has no text in the field 'question'")
    return rows


def _read_file(path: Path) -> Iterator[Question]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConcordError(f"{path}, line {number}: no JSON. Write one question per line.") from error
        if not isinstance(row, dict):
            raise ConcordError(f"{path}, line {number}: no JSON object. Write one question per line.")
        yield row


def _ask(function: Callable[[str], Answer], row: Question) -> dict[str, Any]:
    """A row of an answer file. The key is the question's id, or its text."""
    key = {"question_id": row["id"]} if "id" in row else {"question": row["question"]}
    try:
        answer = function(row["question"])
    # The function is the system under test: any failure of it is a result.
    except Exception as error:  # noqa: BLE001
        return key | {"error": f"{type(error).__name__}: {error}"}
    return key | (dict(answer) if isinstance(answer, Mapping) else {"answer": answer})


def _score_here(
    questions: Sequence[Question],
    answers: Sequence[Mapping[str, Any]],
    name: str,
    system: str,
    folder: Path,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Score with the commands, in processes of their own: notebooks have an event loop, which Django refuses."""
    with tempfile.TemporaryDirectory() as scratch:
        question_file, answer_file = Path(scratch, "questions.jsonl"), Path(scratch, "answers.jsonl")
        report_file = Path(scratch, "report.json")
        for path, rows in ((question_file, questions), (answer_file, answers)):
            path.write_text("".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        _command(folder, "migrate", "--verbosity", "0")
        _command(folder, "import_questions", str(question_file), "--name", name)
        _command(folder, "import_answers", str(answer_file), "--questions", name, "--system", system)
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items() if value is not True]
        flags += [f"--{key.replace('_', '-')}" for key, value in options.items() if value is True]
        scored = ("evaluate", "--questions", name, "--system", system, "--no-ask", "--output", str(report_file), *flags)
        _command(folder, *scored)
        return dict(json.loads(report_file.read_text(encoding="utf-8")))


def _command(folder: Path, *arguments: str) -> None:
    """Run a command of Concord on the database in ``folder``."""
    completed = subprocess.run(  # noqa: S603 -- our own command
        [sys.executable, "-c", "from evaluation.installed import main; main()", *arguments],
        env={**os.environ, "CONCORD_VAR": str(folder.absolute())},
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode not in (0, GATE_NOT_PASSED):
        raise ConcordError(completed.stderr.strip() or completed.stdout.strip())
