"""Every problem of a file, so that a person can mend all of them before trying again; and what a file may cost before
it is refused: caps that hold before anything is walked or built.

``evaluation/wording/problems.py`` holds the sentence of each code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from evaluation.core.errors import InvalidFile, Problem

MAX_BYTES = 20 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """``bytes``: size of the file. ``depth``: nested lists and mappings. ``nodes``: values in the file, keys not
    counted. ``field_length``: characters of one text. ``rows`` and ``columns``: of a table. ``inflated``: bytes of a
    workbook once unpacked, ``members`` the files in it."""

    bytes: int = MAX_BYTES
    depth: int = 32
    nodes: int = 2_000_000
    field_length: int = 1_000_000
    rows: int = 500_000
    columns: int = 100
    inflated: int = 10 * MAX_BYTES
    members: int = 1_000


MOST_PROBLEMS = 10_000  # of one file, after which the reading stops: nobody reads more
SHORT_TEXT = 200  # characters of ids, categories and other names: what fits an indexed column on every database


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
        self.found.append(Problem(code, self.file, line, field, params))
        if len(self.found) == MOST_PROBLEMS:
            self.found.append(Problem("too_many_problems", self.file, None, "", {"limit": MOST_PROBLEMS}))
            raise InvalidFile(self._in_order())

    def remark(self, code: str, line: int | None = None, field: str = "", **params: Any) -> None:
        """Note something that the preview should say."""
        self.remarks.append(Problem(code, self.file, line, field, params))

    def stop(self, code: str, line: int | None = None, field: str = "", **params: Any) -> NoReturn:
        """Note something after which the file cannot be read further.

        :raises InvalidFile: always, with everything found so far.
        """
        self.found.append(Problem(code, self.file, line, field, params))
        raise InvalidFile(self._in_order())

    def refuse_if_any(self) -> None:
        """:raises InvalidFile: with every problem, in the order of the lines, if there is one."""
        if self.found:
            raise InvalidFile(self._in_order())

    def _in_order(self) -> list[Problem]:
        return sorted(self.found, key=lambda problem: problem.line or 0)
