"""The errors of the house: small classes that say what went wrong and what the caller may do about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input, precise enough to be fixed without guessing.

    ``code`` selects the translated sentence (``evaluation/wording/messages.py``), ``params`` fill it. ``line`` counts
    from 1 and is the line of a text file or the row of a table, the header being row 1; ``None`` where the
    format has neither.
    """

    code: str
    file: str = ""
    line: int | None = None
    field: str = ""
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class ConcordError(Exception):
    """Base of every error that a person can do something about."""


class InvalidFile(ConcordError):
    """A file was refused as a whole; ``problems`` lists every reason found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{len(self.problems)} problem(s): " + ", ".join(p.code for p in self.problems[:5]))


class Refused(ConcordError):
    """An action is not possible in the present state; ``evaluation/wording/messages.py`` explains ``code``."""

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
