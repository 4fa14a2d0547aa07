"""Error classes for problems that a user can fix."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One problem of an input, precise enough to fix.

    ``code`` selects the translated message (``evaluation/messages/explanations.py``), filled with ``params``. ``line``
    counts from 1: a text line or a table row (header: row 1); ``None`` if the format has neither. ``more_lines``: other
    lines with this problem in this column, possibly with other values."""

    code: str
    file: str = ""
    line: int | None = None
    field: str = ""
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    more_lines: Sequence[int] = ()


# Parameters that differ between rows.
_VALUE_PARAMETERS = {"value", "length", "cell"}


def merge_by_column(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Merge problems of a column that differ only in line and value into the first one."""
    columns: dict[tuple[object, ...], list[Problem]] = {}
    for index, problem in enumerate(problems):
        params = sorted((key, str(value)) for key, value in problem.params.items() if key not in _VALUE_PARAMETERS)
        column = re.sub(r"\[\d+\]", "[]", problem.field)
        # A problem without a line, such as one of the whole file, is never merged.
        separate_key = index if problem.line is None else None
        columns.setdefault((problem.code, problem.file, column, *params, separate_key), []).append(problem)
    return tuple(map(_merge, columns.values()))


def _merge(problems: Sequence[Problem]) -> Problem:
    first = problems[0]
    lines = {line for problem in problems for line in (problem.line, *problem.more_lines) if line is not None}
    return dataclasses.replace(first, more_lines=tuple(sorted(lines - {first.line})))


class ConcordError(Exception):
    """Base class of errors that a user can fix."""


class InvalidFile(ConcordError):
    """A file was refused as a whole; ``problems`` lists every reason, merged by column."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = merge_by_column(problems)
        super().__init__(f"{len(self.problems)} problem(s): " + ", ".join(p.code for p in self.problems[:5]))


class DomainError(ConcordError):
    """An action is not possible in the current state; ``evaluation/messages/explanations.py`` explains ``code``."""

    def __init__(self, code: str, **params: object) -> None:
        self.code = code
        self.params = params
        super().__init__(code if not params else f"{code} {params}")


class NotReady(DomainError):
    """The result is being computed; retry after ``seconds``."""

    def __init__(self, code: str, seconds: int, **params: object) -> None:
        self.seconds = seconds
        super().__init__(code, **params)


class RateLimited(NotReady):
    """The action was repeated too often; retry after ``seconds``."""


class UnknownName(ConcordError):
    """Unknown name; the message lists similar and known names."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        self.suggestions = tuple(get_close_matches(name, self.known, n=3))
        hint = f"; did you mean {', '.join(self.suggestions)}?" if self.suggestions else ""
        super().__init__(f"unknown {kind} {name!r}{hint} (known: {', '.join(self.known) or 'none'})")
