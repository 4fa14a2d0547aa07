"""Marks on the text that Markdown leaves to be read. The Markdown is parsed first and each piece of text then finds its
place in the raw text, so that a marked answer has the tables, lists and code of an unmarked one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from django.utils.html import escape
from markdown_it.token import Token

LOOKS = frozenset({"claim neutral", "claim held", "claim open", "taken"})  # the classes a mark may have
_LINE_END = re.compile(r"\r\n?|\n")
_RUN = re.compile(r"\w+|\s+|[^\w\s]")
_LINK_END = re.compile(r"\]\((?:[^()\n\\]|\\.|\([^()\n]*\))*\)|\]\[[^\]\n]*\]")
_WIDEST_GAP = 40  # characters of markup, such as an entity or an indentation, between two runs of one piece of text


class Mark(NamedTuple):
    """A place in the raw text (character offsets, end exclusive), one of :data:`LOOKS` and the note behind its
    end, if any."""

    start: int
    end: int
    look: str
    note: str


class Link(NamedTuple):
    """A place in the raw text (character offsets, end exclusive) that leads to a place on the page."""

    start: int
    end: int
    href: str


class Leaf(NamedTuple):
    """A token with text and, for each of its characters, the place in the raw text; ``leads``: it leads somewhere."""

    token: Token
    places: list[int | None]
    leads: bool


def put_marks(tokens: Sequence[Token], text: str, marks: Sequence[Mark], links: Sequence[Link] = ()) -> None:
    """Put marks and links into the tokens of the text. Where marks overlap the first one colours, and each keeps its
    note; a mark on nothing that can be read has none. Code and what leads elsewhere take no link."""
    placed = [mark for mark in marks if 0 <= mark.start < mark.end <= len(text)]
    if not placed and not links:
        return
    leaves = list(_leaves(tokens, text))
    hrefs = {place: link.href for link in links for place in range(link.start, link.end)}
    looks: dict[int, Mark] = {}
    for mark in sorted(placed, key=lambda mark: (mark.start, -mark.end)):
        for place in range(mark.start, mark.end):
            looks.setdefault(place, mark)
    seen = [place for leaf in leaves for place in leaf.places if place is not None]
    notes: defaultdict[int, list[str]] = defaultdict(list)
    for mark in placed:
        last = bisect_left(seen, mark.end) - 1
        if mark.note and last >= 0 and seen[last] >= mark.start:
            notes[seen[last]].append(mark.note)
    for token, places, leads in leaves:
        html = _html(token.content, places, looks, notes, {} if leads or token.type != "text" else hrefs)
        block = token.type in {"fence", "code_block"}
        if token.type != "text":
            html = f"<pre><code>{html}</code></pre>\n" if block else f"<code>{html}</code>"
        token.type, token.content = "html_block" if block else "html_inline", html


def _leaves(tokens: Sequence[Token], text: str) -> Iterator[Leaf]:
    """The tokens with text in the order of the text, each looked for behind the one before and inside its block."""
    starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    at, end, leads = 0, len(text), False
    for token in tokens:
        if token.map:
            first, last = (min(line, len(starts) - 1) for line in token.map)
            at, end = max(at, starts[first]), starts[last]
            if token.type == "fence":  # what the fence says of itself is none of its text
                at = max(at, starts[min(first + 1, len(starts) - 1)])
        for leaf in token.children or [token]:
            leads = leaf.type == "link_open" or (leads and leaf.type != "link_close")
            if leaf.type in {"text", "code_inline", "fence", "code_block"}:
                places = _places(leaf.content, text, at, end)
                at = max([at, *(place + 1 for place in places if place is not None)])
                yield Leaf(leaf, places, leads)
            elif leaf.type == "link_close" and (closing := _LINK_END.match(text, at, end)):
                at = closing.end()


def _places(content: str, text: str, at: int, end: int) -> list[int | None]:
    """Where each character stands: all of them in one go, or run by run where escapes, entities or indentations
    stand between; ``None`` for what is not written like that."""
    whole = text.find(content, at, end)
    if whole >= 0:
        return list(range(whole, whole + len(content)))
    found: list[int | None] = []
    for run in _RUN.findall(content):
        start = text.find(run, at, min(end, at + _WIDEST_GAP + len(run)) if found else end)
        found += [None] * len(run) if start < 0 else range(start, start + len(run))
        at = at if start < 0 else start + len(run)
    return found


def _html(
    content: str,
    places: list[int | None],
    looks: Mapping[int, Mark],
    notes: Mapping[int, list[str]],
    hrefs: Mapping[int, str],
) -> str:
    """The text in pieces of one mark and one link each, and the notes behind the pieces that end with their last
    character."""
    html, piece, mark, href = "", "", None, None
    for letter, place in zip(content, places, strict=True):
        now, to = (mark, href) if place is None else (looks.get(place), hrefs.get(place))
        if now is not mark or to != href:  # what has no place belongs to what stands before it
            html, piece, mark, href = html + _piece(piece, mark, href), "", now, to
        piece += letter
        if place is not None and place in notes:
            html, piece = html + _piece(piece, mark, href), ""
            html += "".join(f'<sup class="k">{escape(note)}</sup>' for note in notes[place])
    return html + _piece(piece, mark, href)


def _piece(text: str, mark: Mark | None, href: str | None) -> str:
    html = f'<mark class="{mark.look}">{escape(text)}</mark>' if mark and text else escape(text)
    return f'<a href="{escape(href)}">{html}</a>' if href and text else html
