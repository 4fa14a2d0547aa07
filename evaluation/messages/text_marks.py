"""Marks and links in the visible text of rendered Markdown.

The Markdown is parsed first; then each piece of text is located in the source. A marked answer thus renders like an
unmarked one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from django.utils.html import escape
from markdown_it.token import Token

# Allowed CSS classes of a mark.
MARK_CLASSES = frozenset({"claim neutral", "claim held", "claim open", "taken"})
_LINE_END = re.compile(r"\r\n?|\n")
_RUN = re.compile(r"\w+|\s+|[^\w\s]")
_LINK_END = re.compile(r"\]\((?:[^()\n\\]|\\.|\([^()\n]*\))*\)|\]\[[^\]\n]*\]")
# Characters of markup, such as an entity or indentation, between two runs of one piece of text.
_MAX_GAP = 40


class Mark(NamedTuple):
    """Range in the source (character offsets, end exclusive), one of :data:`MARK_CLASSES`, and an optional note after
    it."""

    start: int
    end: int
    css_class: str
    note: str


class Link(NamedTuple):
    """Range in the source (character offsets, end exclusive) that links to a place on the page."""

    start: int
    end: int
    href: str


class Leaf(NamedTuple):
    """A token with text, the source offset of each character, and whether it is inside a link."""

    token: Token
    offsets: list[int | None]
    is_link: bool


def apply_marks(tokens: Sequence[Token], text: str, marks: Sequence[Mark], links: Sequence[Link] = ()) -> None:
    """Apply marks and links to the tokens of the text.

    Of overlapping marks the first sets the class and each keeps its note. A mark without visible text has no note. Code
    and existing links receive no link."""
    valid_marks = [mark for mark in marks if 0 <= mark.start < mark.end <= len(text)]
    if not valid_marks and not links:
        return
    leaves = list(_leaves(tokens, text))
    hrefs = {offset: link.href for link in links for offset in range(link.start, link.end)}
    marks_by_offset: dict[int, Mark] = {}
    for mark in sorted(valid_marks, key=lambda mark: (mark.start, -mark.end)):
        for offset in range(mark.start, mark.end):
            marks_by_offset.setdefault(offset, mark)
    visible_offsets = [offset for leaf in leaves for offset in leaf.offsets if offset is not None]
    notes: defaultdict[int, list[str]] = defaultdict(list)
    for mark in valid_marks:
        last = bisect_left(visible_offsets, mark.end) - 1
        if mark.note and last >= 0 and visible_offsets[last] >= mark.start:
            notes[visible_offsets[last]].append(mark.note)
    for token, offsets, is_link in leaves:
        html = _render_leaf(
            token.content, offsets, marks_by_offset, notes, {} if is_link or token.type != "text" else hrefs
        )
        block = token.type in {"fence", "code_block"}
        if token.type != "text":
            html = f"<pre><code>{html}</code></pre>\n" if block else f"<code>{html}</code>"
        token.type, token.content = "html_block" if block else "html_inline", html


def _leaves(tokens: Sequence[Token], text: str) -> Iterator[Leaf]:
    """Yield the tokens with text in order, each located after the previous one and inside its block."""
    starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    position, end, is_link = 0, len(text), False
    for token in tokens:
        if token.map:
            first, last = (min(line, len(starts) - 1) for line in token.map)
            position, end = max(position, starts[first]), starts[last]
            # The info string of a fence is not part of its text.
            if token.type == "fence":
                position = max(position, starts[min(first + 1, len(starts) - 1)])
        for leaf in token.children or [token]:
            is_link = leaf.type == "link_open" or (is_link and leaf.type != "link_close")
            if leaf.type in {"text", "code_inline", "fence", "code_block"}:
                offsets = _find_offsets(leaf.content, text, position, end)
                position = max([position, *(offset + 1 for offset in offsets if offset is not None)])
                yield Leaf(leaf, offsets, is_link)
            elif leaf.type == "link_close" and (closing := _LINK_END.match(text, position, end)):
                position = closing.end()


def _find_offsets(content: str, text: str, position: int, end: int) -> list[int | None]:
    """Source offset of each character, ``None`` if it is not in the source.

    The whole text is searched first, then run by run, since escapes, entities or indentation may interrupt it."""
    match_start = text.find(content, position, end)
    if match_start >= 0:
        return list(range(match_start, match_start + len(content)))
    offsets: list[int | None] = []
    for run in _RUN.findall(content):
        start = text.find(run, position, min(end, position + _MAX_GAP + len(run)) if offsets else end)
        offsets += [None] * len(run) if start < 0 else range(start, start + len(run))
        position = position if start < 0 else start + len(run)
    return offsets


def _render_leaf(
    content: str,
    offsets: list[int | None],
    marks_by_offset: Mapping[int, Mark],
    notes: Mapping[int, list[str]],
    hrefs: Mapping[int, str],
) -> str:
    """Render the text in pieces with one mark and one link each, and each note after the last character of its mark."""
    html, piece, mark, href = "", "", None, None
    for char, offset in zip(content, offsets, strict=True):
        next_mark, next_href = (mark, href) if offset is None else (marks_by_offset.get(offset), hrefs.get(offset))
        # A character without an offset belongs to the previous piece.
        if next_mark is not mark or next_href != href:
            html, piece, mark, href = html + _render_piece(piece, mark, href), "", next_mark, next_href
        piece += char
        if offset is not None and offset in notes:
            html, piece = html + _render_piece(piece, mark, href), ""
            html += "".join(f'<sup class="k">{escape(note)}</sup>' for note in notes[offset])
    return html + _render_piece(piece, mark, href)


def _render_piece(text: str, mark: Mark | None, href: str | None) -> str:
    html = f'<mark class="{mark.css_class}">{escape(text)}</mark>' if mark and text else escape(text)
    return f'<a href="{escape(href)}">{html}</a>' if href and text else html
