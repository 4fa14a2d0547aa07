"""Collects every problem of one file, so that a person can mend all of them before trying again."""

from __future__ import annotations

from typing import Any, NoReturn

from evaluation.core.errors import InvalidFile, Problem
from evaluation.files.codes import PARAMETERS
from evaluation.files.limits import MOST_PROBLEMS


class Problems:
    """The problems (they refuse the file) and remarks (they do not) found so far in one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []
        self.remarks: list[Problem] = []

    def add(self, code: str, line: int | None = None, field: str = "", **params: Any) -> None:
        """Note something that refuses the file.

        :raises InvalidFile: when there are more problems than anybody reads.
        """
        self.found.append(self._problem(code, line, field, params))
        if len(self.found) == MOST_PROBLEMS:
            self.found.append(Problem("too_many_problems", self.file, None, "", {"limit": MOST_PROBLEMS}))
            raise InvalidFile(self._in_order())

    def remark(self, code: str, line: int | None = None, field: str = "", **params: Any) -> None:
        """Note something that the preview should say."""
        self.remarks.append(self._problem(code, line, field, params))

    def stop(self, code: str, line: int | None = None, field: str = "", **params: Any) -> NoReturn:
        """Note something after which the file cannot be read further.

        :raises InvalidFile: always, with everything found so far.
        """
        self.found.append(self._problem(code, line, field, params))
        raise InvalidFile(self._in_order())

    def refuse_if_any(self) -> None:
        """:raises InvalidFile: with every problem, in the order of the lines, if there is one."""
        if self.found:
            raise InvalidFile(self._in_order())

    def _problem(self, code: str, line: int | None, field: str, params: dict[str, Any]) -> Problem:
        if set(PARAMETERS[code]) != set(params):
            raise ValueError(f"problem {code!r} takes {PARAMETERS[code]}, not {sorted(params)}")
        return Problem(code, self.file, line, field, params)

    def _in_order(self) -> list[Problem]:
        return sorted(self.found, key=lambda problem: problem.line or 0)
