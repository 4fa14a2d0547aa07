"""Prose of Markdown text (everything but fenced code, headings, and table heads and rules), and its sentences for the
offline baseline."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|(?<=다\.)|[\n;]+")
_MARK = r"(?:\[[^\]\n]{0,200}\]|\(출처[^)\n]{0,200}\))"
_SOURCE_MARK = re.compile(_MARK)
_MARKS = re.compile(rf"(?<![ \t])[ \t]*+(?:{_MARK}[ \t]*+)++")
_STOP = re.compile(r"[.,!?。](?!\d)")
_NO_PROSE = frozenset({"fence", "heading_open", "thead_open"})


def prose(text: str) -> str:
    """Text with non-prose lines blanked, so that no sentence spans them."""
    lines = _LINE.findall(text)
    for token in _parser().parse(text):
        if token.map and token.type in _NO_PROSE:
            first, last = token.map
            # Includes the rule below the table head.
            end = last + 1 if token.type == "thead_open" else last
            lines[first:end] = ["\n"] * len(lines[first:end])
    return "".join(lines)


@cache
def _parser() -> MarkdownIt:
    # Importing takes 0.05 s.
    from markdown_it import MarkdownIt

    # Only blocks are needed.
    return MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])


def sentences(text: str) -> tuple[str, ...]:
    """Sentences without source marks such as ``[Source: ...]``."""
    return tuple(sentence for sentence, _ in quoted_sentences(text))


def quoted_sentences(text: str) -> tuple[tuple[str, str], ...]:
    """Sentences of :func:`sentences` with their original words, by which they can be located."""
    # Blanked to the same length, so offsets match the text.
    unmarked = _SOURCE_MARK.sub(lambda mark: " " * len(mark[0]), text)
    stops = list(_SENTENCE_END.finditer(unmarked))
    pairs = []
    for start, end in zip([0, *(s.end() for s in stops)], [*(s.start() for s in stops), len(unmarked)], strict=True):
        if sentence := unmarked[start:end].strip():
            position = unmarked.index(sentence, start)
            quote = text[position : position + len(sentence)]
            cleaned = _SOURCE_MARK.sub(" ", _MARKS.sub(_unless_before_stop, quote))
            pairs.append((" ".join(cleaned.split()), quote))
    return tuple(pairs)


def _unless_before_stop(marks: re.Match[str]) -> str:
    """Drop marks before a stop. A look-ahead in the pattern would read a run of marks again from each of them."""
    return "" if _STOP.match(marks.string, marks.end()) else marks[0]
