"""Two texts word by word: what both say, what was taken out, what was put in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

_WORDS = re.compile(r"\s+|[^\W_]+|[\W_]", re.UNICODE)
MOST_WORDS = 4_000  # the search for equal stretches grows with the square; longer texts are compared by the line


class Change(StrEnum):
    """What became of a stretch of text."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some text with what became of it. Same and removed stretches together are the first text, same and added ones
    the second, letter by letter."""

    change: Change
    text: str


def text_difference(before: str, after: str) -> tuple[Stretch, ...]:
    """The stretches in reading order. Words are runs of letters and digits; longer texts are compared by whole lines,
    so that a long answer does not keep a page waiting."""
    ours, theirs = _tokens(before), _tokens(after)
    if max(len(ours), len(theirs)) > MOST_WORDS:
        ours, theirs = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return tuple(_joined(_stretches(ours, theirs)))


def _tokens(text: str) -> list[str]:
    return _WORDS.findall(text)


def _stretches(before: list[str], after: list[str]) -> Iterator[Stretch]:
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Stretch(Change.SAME, "".join(before[i:j]))
            continue
        if i < j:
            yield Stretch(Change.REMOVED, "".join(before[i:j]))
        if k < m:
            yield Stretch(Change.ADDED, "".join(after[k:m]))


def _joined(stretches: Iterator[Stretch]) -> list[Stretch]:
    """A single space between two changes joins them: fewer, longer stretches are easier to read."""
    found: list[Stretch] = []
    pending = list(stretches)
    for at, one in enumerate(pending):
        between = 0 < at < len(pending) - 1 and one.change is Change.SAME and not one.text.strip()
        pieces = [Stretch(Change.REMOVED, one.text), Stretch(Change.ADDED, one.text)] if between else [one]
        for piece in pieces:
            _add(found, piece)
    return found


def _add(found: list[Stretch], piece: Stretch) -> None:
    """Append, joined with the stretch of the same kind that follows the last text which both have."""
    reach = 1 if piece.change is Change.SAME else 2
    for at in range(len(found) - 1, max(-1, len(found) - 1 - reach), -1):
        if found[at].change is piece.change:
            found[at] = Stretch(piece.change, found[at].text + piece.text)
            return
        if found[at].change is Change.SAME:
            break
    found.append(piece)
