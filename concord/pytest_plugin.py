"""pytest plugin: ``@pytest.mark.concord`` turns a function that answers questions into tests.

    @pytest.mark.concord(questions="questions.jsonl", fail_under=0.8)
    def test_handbook(question):
        return my_rag(question)

Each question becomes a test, which fails if the answer's score is below ``fail_under``. With ``gate=True`` there is one
test, which passes only if the whole 95% interval of the overall score is at least ``fail_under``. All questions are
asked once, and scored offline by rules and the baseline judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from concord.evaluation import Evaluation, evaluate, read_rows


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers", "concord(questions, fail_under, gate=False, **options): score the answers to a file of questions"
    )


def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> list[pytest.Item] | None:
    """Make tests of a function with the marker."""
    marker = next((mark for mark in getattr(obj, "pytestmark", []) if mark.name == "concord"), None)
    return None if marker is None else list(_tests(collector, name, obj, **marker.kwargs))


def _tests(
    collector: Any,
    name: str,
    function: Callable[[str], Any],
    *,
    questions: Iterable[Any] | str,
    fail_under: float,
    gate: bool = False,
    **options: Any,
) -> Iterator[pytest.Item]:
    rows = read_rows(collector.path.parent / questions if isinstance(questions, str) else questions)
    folder = collector.config.rootpath / ".pytest_cache" / "concord"
    scored = _Scored(function, rows, name, folder, {"fail_under": fail_under, **options} if gate else options)
    if gate:
        yield GateTest.from_parent(collector, name=name, scored=scored)
        return
    for number, row in enumerate(rows):
        label = str(row.get("id", number + 1))
        yield QuestionTest.from_parent(
            collector, name=f"{name}[{label}]", scored=scored, number=number, fail_under=fail_under
        )


class _Scored:
    """Answers of a function to all questions, scored when the first test needs them."""

    def __init__(
        self, function: Callable[[str], Any], rows: list[Any], name: str, folder: Path, options: dict[str, Any]
    ) -> None:
        self._function, self._rows, self._name, self._folder, self._options = function, rows, name, folder, options

    @cached_property
    def evaluation(self) -> Evaluation:
        return evaluate(self._function, self._rows, name=self._name, folder=self._folder, **self._options)


class NotGoodEnough(Exception):
    """An answer or the overall score is too low."""


class _Test(pytest.Item):
    def __init__(self, *, scored: _Scored, **options: Any) -> None:
        super().__init__(**options)
        self._scored = scored

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any) -> Any:
        """The message alone for a low score, else the traceback."""
        return str(excinfo.value) if excinfo.errisinstance(NotGoodEnough) else super().repr_failure(excinfo, *args)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class QuestionTest(_Test):
    """The answer to one question."""

    def __init__(self, *, number: int, fail_under: float, **options: Any) -> None:
        super().__init__(**options)
        self._number, self._fail_under = number, fail_under

    def runtest(self) -> None:
        row = self._scored.evaluation.rows()[self._number]
        score = row["score"]
        if score is not None and score >= self._fail_under:
            return
        lines = [f"{label}: {row[label]}" for label in ("question", "answer", "error", "expected") if row[label]]
        lines.append(f"score: {'none' if score is None else f'{score:.2f}'}, at least {self._fail_under:g} expected")
        lines += [f"  {metric}: {reason}" for metric, reason in row["reasons"].items()]
        raise NotGoodEnough("\n".join(lines))


class GateTest(_Test):
    """The overall score of all answers."""

    def runtest(self) -> None:
        evaluation = self._scored.evaluation
        gate = evaluation.report["gate"]
        if gate["exit_code"]:
            checks = map(_check_line, gate["checks"])
            outcome = "\n".join([f"gate: {gate['verdict']}", *checks])
            raise NotGoodEnough("\n".join(filter(None, [outcome, gate.get("incomplete"), evaluation.verdict])))


def _check_line(check: Mapping[str, Any]) -> str:
    interval = "" if check["low"] is None else f" (95% interval {check['low']:.2f} to {check['high']:.2f})"
    value = "none" if check["value"] is None else f"{check['value']:.2f}{interval}"
    return f"{check['rule']} {check['limit']:g}: {check['verdict']} at {value}"
