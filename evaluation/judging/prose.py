"""What of a text in Markdown makes claims: all but fenced code, headings, and the heads and rules of tables."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")
_NO_PROSE = frozenset({"fence", "heading_open", "thead_open"})


def prose(text: str) -> str:
    """The text with its other lines left empty, so that no sentence runs across them."""
    lines = _LINE.findall(text)
    for token in _parser().parse(text):
        if token.map and token.type in _NO_PROSE:
            first, last = token.map
            end = last + 1 if token.type == "thead_open" else last  # the rule stands below the head
            lines[first:end] = ["\n"] * len(lines[first:end])
    return "".join(lines)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # costs 0.05 s at import

    return MarkdownIt("commonmark").enable("table")
