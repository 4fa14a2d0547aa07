"""Checks of a page's markup for unsafe content, parsed as a browser does."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class UnsafeMarkupParser(HTMLParser):
    """Collects everything the content security policy would stop, and every way text could have become code."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "script" and not attributes.get("src", "").startswith(("/static/", "/admin/jsi18n/")):
            self.problems.append("inline script")
        if tag in {"style", "iframe", "object", "embed", "base", "img", "video", "audio", "form-data"}:
            self.problems.append(f"<{tag}>")
        if tag == "meta" and attributes.get("http-equiv"):
            self.problems.append("meta http-equiv")
        for name, value in attributes.items():
            if name.startswith(("on", "hx-on")) or name in {"style", "srcdoc"}:
                self.problems.append(f"{tag} {name}={value}")
            if name in {"href", "src", "action", "formaction", "xlink:href"} and not _stays_on_site(value, tag):
                self.problems.append(f"{tag} {name}={value}")
            if name == "hx-trigger" and "[" in value:
                self.problems.append(f"evaluated filter {value}")


def _stays_on_site(value: str, tag: str) -> bool:
    """Return whether an address stays on the site; links of answers may lead out over http(s)."""
    if value.startswith(("/", "#", "?")) and not value.startswith("//"):
        return True
    return value == "" or (tag == "a" and value.startswith(("http://", "https://")))


def unsafe_markup(page: str) -> list[str]:
    """Return the problems of the page; empty for a safe one."""
    parser = UnsafeMarkupParser()
    parser.feed(page)
    return parser.problems


_BLOCKS = (
    "article aside body button caption dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4"
    " head header html legend li link main meta nav ol option p script section select summary table tbody td th thead"
    " title tr ul"
)
_AROUND_BLOCKS = re.compile(rf"\s*(</?(?:{'|'.join(_BLOCKS.split())})\b[^>]*>)\s*")


def compact(page: str) -> str:
    """The markup without white space that a browser does not show: around blocks and before the end of a tag."""
    return re.sub(r"\s+", " ", re.sub(r"\s+>", ">", _AROUND_BLOCKS.sub(r"\1", page)))
