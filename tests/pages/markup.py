"""What a page must never hold, read from its markup as a browser would."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Unsafe(HTMLParser):
    """Collects everything the content security policy would stop, and every way text could have become code."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "script" and not given.get("src", "").startswith(("/static/", "/admin/jsi18n/")):
            self.found.append("inline script")
        if tag in {"style", "iframe", "object", "embed", "base", "img", "video", "audio", "form-data"}:
            self.found.append(f"<{tag}>")
        if tag == "meta" and given.get("http-equiv"):
            self.found.append("meta http-equiv")
        for name, value in given.items():
            if name.startswith(("on", "hx-on")) or name in {"style", "srcdoc"}:
                self.found.append(f"{tag} {name}={value}")
            if name in {"href", "src", "action", "formaction", "xlink:href"} and not _stays(value, tag):
                self.found.append(f"{tag} {name}={value}")
            if name == "hx-trigger" and "[" in value:
                self.found.append(f"evaluated filter {value}")


def _stays(value: str, tag: str) -> bool:
    """Whether an address stays on the site; links of answers may lead out over http(s)."""
    if value.startswith(("/", "#", "?")) and not value.startswith("//"):
        return True
    return value == "" or (tag == "a" and value.startswith(("http://", "https://")))


def unsafe(page: str) -> list[str]:
    """What is wrong with the page; empty for a safe one."""
    parser = Unsafe()
    parser.feed(page)
    return parser.found


_BLOCKS = (
    "article aside body button caption dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4"
    " head header html legend li link main meta nav ol option p script section select summary table tbody td th thead"
    " title tr ul"
)
_AROUND_BLOCKS = re.compile(rf"\s*(</?(?:{'|'.join(_BLOCKS.split())})\b[^>]*>)\s*")


def compact(page: str) -> str:
    """The markup without white space that a browser does not show: around blocks and before the end of a tag."""
    return re.sub(r"\s+", " ", re.sub(r"\s+>", ">", _AROUND_BLOCKS.sub(r"\1", page)))
