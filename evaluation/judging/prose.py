"""What of a text in Markdown makes claims: all but fenced code, headings, and the heads and rules of tables; and its
sentences as the offline baseline takes them."""

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
_MARK_BEFORE_STOP = re.compile(rf"[ \t]*(?:{_MARK}[ \t]*)+(?=[.,!?。](?!\d))")
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


def sentences(text: str) -> tuple[str, ...]:
    """The text's sentences without source marks such as ``[Source: ...]``, and without a gap where one stood."""
    return tuple(sentence for sentence, _ in quoted_sentences(text))


def quoted_sentences(text: str) -> tuple[tuple[str, str], ...]:
    """Each of :func:`sentences` with the words of the text that it was made of, so that its place can be found."""
    bare = _SOURCE_MARK.sub(lambda mark: " " * len(mark[0]), text)  # as long as the text: places are those of both
    stops = list(_SENTENCE_END.finditer(bare))
    found = []
    for start, end in zip([0, *(s.end() for s in stops)], [*(s.start() for s in stops), len(bare)], strict=True):
        if sentence := bare[start:end].strip():
            at = bare.index(sentence, start)
            quote = text[at : at + len(sentence)]
            told = _SOURCE_MARK.sub(" ", _MARK_BEFORE_STOP.sub("", quote))
            found.append((" ".join(told.split()), quote))
    return tuple(found)
