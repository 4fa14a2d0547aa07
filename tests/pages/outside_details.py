"""Words and figures that a page shows before anything is unfolded, for the reading budgets."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple

from tests.pages.visible_text import VOID

UNSEEN = {"script", "style", "noscript", "template", "head"}
FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")


class VisibleCounts(NamedTuple):
    """Numbers of words (runs of letters or digits between spaces) and of figures among them."""

    words: int
    figures: int


class _VisibleTextParser(HTMLParser):
    """Collects the texts of ``main`` outside closed details, and their summaries."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._stack: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        attributes = dict(attrs)
        parent, parent_hidden = self._stack[-1] if self._stack else ("", False)
        folded = parent == "details" and tag == "summary"
        invisible = tag in UNSEEN or "hidden" in attributes or "visually-hidden" in (attributes.get("class") or "")
        outer = any(hides for _tag, hides in self._stack[:-1]) if folded else parent_hidden
        is_closed = tag == "details" and "open" not in attributes
        self._stack.append((tag, outer or invisible or is_closed))

    def handle_endtag(self, tag: str) -> None:
        while self._stack and self._stack.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any(tag == "main" for tag, _hides in self._stack) and not self._stack[-1][1]:
            self.texts.append(data)


def count_visible(page: str) -> VisibleCounts:
    """Count the words and figures of a page's ``main`` outside closed details."""
    parser = _VisibleTextParser()
    parser.feed(page)
    words = [word for text in parser.texts for word in text.split() if re.search(r"\w", word)]
    return VisibleCounts(len(words), sum(len(FIGURE.findall(word)) for word in words))
