"""Visible and spoken text of a page: its texts and the attributes shown or read aloud."""

from __future__ import annotations

from html.parser import HTMLParser

SPOKEN = {"aria-label", "title", "alt", "placeholder", "data-saving", "data-saved", "data-unsaved", "data-missing"}
NOT_PROSE = {"script", "style", "code", "pre", "kbd"}  # commands, ids and keys
VOID = {"input", "br", "hr", "meta", "link", "img", "wbr", "source", "col", "area", "base", "embed", "track"}


class VisibleTextParser(HTMLParser):
    """Collects each text and each spoken attribute separately. Elements with their own ``lang`` are data and left
    out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [value for name, value in attrs if name in SPOKEN and value]
        if tag not in VOID:
            foreign = tag != "html" and dict(attrs).get("lang") not in {None, "ko"}
            self._open.append((tag, tag in NOT_PROSE or foreign))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not any(is_hidden for _tag, is_hidden in self._open):
            self.texts.append(data)


def visible_texts(page: str) -> list[str]:
    """The texts of a page, their spaces as a browser shows them, without empty ones."""
    parser = VisibleTextParser()
    parser.feed(page)
    return [text for text_part in parser.texts if (text := " ".join(text_part.split()))]
