"""Answers are hostile input: Markdown with raw HTML and images off, then a sanitiser as the second layer."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache, partial
from itertools import pairwise

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from evaluation.messages.marking import LOOKS, Link, Mark, put_marks

_TAGS = frozenset(
    {"p", "br", "hr", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li", "h3", "a"}
    | {"table", "thead", "tbody", "tr", "th", "td"}
)
_SENTENCE = re.compile(r"(?:[A-Za-z]{2,}\W+){3}")  # some English words after each other; not a name or a number
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")


def render(text: str, marks: Sequence[Mark] = (), links: Sequence[Link] = ()) -> SafeString:
    """Safe HTML of an answer or guideline: no scripts, images, styles, relative links or schemes but http(s). A table
    that is too wide scrolls by itself. English paragraphs of a Korean text are named, to be read aloud as English.
    ``marks`` and ``links`` to places of the page are put on what is read, and change nothing else."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:  # all on one level below those of the page, so that an answer cannot upset its outline
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "h3"
    if language_of(text) == "ko":
        _name_english(tokens)
    put_marks(tokens, text, marks, links)
    html = parser.renderer.render(tokens, parser.options, {})
    clean = nh3.clean(
        html,
        tags=set(_TAGS | {"mark", "sup"}),
        attributes={"a": {"href"}, "p": {"lang"}, "h3": {"lang"}},
        tag_attribute_values={"mark": {"class": set(LOOKS)}, "sup": {"class": {"k"}}},
        attribute_filter=partial(_leads_on, {link.href for link in links}),
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )
    clean = clean.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")
    return mark_safe(clean)  # noqa: S308  -- nh3 has just reduced it to the tags above


def language_of(text: str) -> str:
    """``ko`` where a text holds Hangul, else ``en``: for the ``lang`` of its block."""
    return "ko" if _HANGUL.search(text) else "en"


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")


def _leads_on(places: Collection[str], tag: str, attribute: str, value: str) -> str | None:
    """Only whole http(s) addresses and places that were linked: ``//host`` and ``/path`` would point at other hosts or
    into this site."""
    if attribute != "href" or value in places:
        return value
    return value if value.lower().startswith(("http://", "https://")) else None


def _name_english(tokens: Sequence[Token]) -> None:
    for opening, inside in pairwise(tokens):
        names = opening.type in {"paragraph_open", "heading_open"} and _SENTENCE.search(inside.content)
        if names and language_of(inside.content) == "en":
            opening.attrSet("lang", "en")
