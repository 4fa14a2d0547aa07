"""What a page shows before anything is unfolded: its words and its figures, for the budgets of reading."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple

from tests.pages.visible_text import VOID

UNSEEN = {"script", "style", "noscript", "template", "head"}
FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")


class Shown(NamedTuple):
    """Words (runs of letters or digits between spaces) and figures (numbers) among them."""

    words: int
    figures: int


class _Open(HTMLParser):
    """Collects the texts of ``main`` that stand outside closed details; of those the summary is seen."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._stack: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        given = dict(attrs)
        parent, hidden = self._stack[-1] if self._stack else ("", False)
        folded = parent == "details" and tag == "summary"
        unseen = tag in UNSEEN or "hidden" in given or "visually-hidden" in (given.get("class") or "")
        outer = any(hides for _tag, hides in self._stack[:-1]) if folded else hidden
        closed = tag == "details" and "open" not in given
        self._stack.append((tag, outer or unseen or closed))

    def handle_endtag(self, tag: str) -> None:
        while self._stack and self._stack.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any(tag == "main" for tag, _hides in self._stack) and not self._stack[-1][1]:
            self.texts.append(data)


def shown(page: str) -> Shown:
    """The words and figures of a page's ``main`` outside closed details."""
    parser = _Open()
    parser.feed(page)
    words = [word for text in parser.texts for word in text.split() if re.search(r"\w", word)]
    return Shown(len(words), sum(len(FIGURE.findall(word)) for word in words))
