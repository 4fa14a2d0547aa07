"""The errors of the house: small classes that say what went wrong and what the caller may do about it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input, precise enough to be fixed without guessing.

    ``code`` selects the translated sentence (``evaluation/messages/sentences.py``), ``params`` fill it. ``line`` counts
    from 1 and is the line of a text file or the row of a table, the header being row 1; ``None`` where the
    format has neither. ``more_lines`` are the other lines with the same problem in the same column, whose values may
    differ.
    """

    code: str
    file: str = ""
    line: int | None = None
    field: str = ""
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    more_lines: Sequence[int] = ()


_OF_ONE_VALUE = {"value", "length", "cell"}  # parameters that differ from row to row


def one_per_column(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems with those of one column that say the same of several lines joined into the first of them."""
    columns: dict[tuple[object, ...], list[Problem]] = {}
    for place, problem in enumerate(problems):
        same = sorted((key, str(value)) for key, value in problem.params.items() if key not in _OF_ONE_VALUE)
        column = re.sub(r"\[\d+\]", "[]", problem.field)
        # A problem without a line, such as one of the whole file, stays alone.
        alone = place if problem.line is None else None
        columns.setdefault((problem.code, problem.file, column, *same, alone), []).append(problem)
    return tuple(map(_joined, columns.values()))


def _joined(problems: Sequence[Problem]) -> Problem:
    first = problems[0]
    lines = {line for problem in problems for line in (problem.line, *problem.more_lines) if line is not None}
    return dataclasses.replace(first, more_lines=tuple(sorted(lines - {first.line})))


class ConcordError(Exception):
    """Base of every error that a person can do something about."""


class InvalidFile(ConcordError):
    """A file was refused as a whole; ``problems`` lists every reason found, of a column each once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = one_per_column(problems)
        super().__init__(f"{len(self.problems)} problem(s): " + ", ".join(p.code for p in self.problems[:5]))


class Refused(ConcordError):
    """An action is not possible in the present state; ``evaluation/messages/sentences.py`` explains ``code``."""

    def __init__(self, code: str, **params: object) -> None:
        self.code = code
        self.params = params
        super().__init__(code if not params else f"{code} {params}")


class Later(Refused):
    """What can be had in about so many ``seconds``: a worker is at it."""

    def __init__(self, code: str, seconds: int, **params: object) -> None:
        self.seconds = seconds
        super().__init__(code, **params)


class TooOften(Later):
    """An action that somebody has taken too often; possible again in so many ``seconds``."""


class UnknownName(ConcordError):
    """A name that nothing answers to; the near matches and the known names are part of the message."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        self.near = tuple(get_close_matches(name, self.known, n=3))
        hint = f"; did you mean {', '.join(self.near)}?" if self.near else ""
        super().__init__(f"unknown {kind} {name!r}{hint} (known: {', '.join(self.known) or 'none'})")
