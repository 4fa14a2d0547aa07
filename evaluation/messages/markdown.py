"""Safe HTML from untrusted answers: Markdown without raw HTML and images, then a sanitiser as the second layer."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache, partial
from itertools import pairwise

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from evaluation.messages.text_marks import MARK_CLASSES, Link, Mark, apply_marks

_TAGS = frozenset(
    {"p", "br", "hr", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li", "h3", "a"}
    | {"table", "thead", "tbody", "tr", "th", "td"}
)
# Three consecutive English words; excludes names and numbers.
_SENTENCE = re.compile(r"(?:[A-Za-z]{2,}\W+){3}")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")


def render(text: str, marks: Sequence[Mark] = (), links: Sequence[Link] = ()) -> SafeString:
    """Render an answer or guideline as safe HTML without scripts, images, styles, relative links or schemes except
    http(s).

    Wide tables scroll. English paragraphs of a Korean text get ``lang``, for screen readers. ``marks`` and ``links``
    are applied to the visible text only."""
    parser = _parser()
    tokens = parser.parse(text)
    # One heading level below those of the page, so that an answer cannot break its outline.
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "h3"
    if language_of(text) == "ko":
        _mark_english(tokens)
    apply_marks(tokens, text, marks, links)
    html = parser.renderer.render(tokens, parser.options, {})
    clean = nh3.clean(
        html,
        tags=set(_TAGS | {"mark", "sup"}),
        attributes={"a": {"href"}, "p": {"lang"}, "h3": {"lang"}},
        tag_attribute_values={"mark": {"class": set(MARK_CLASSES)}, "sup": {"class": {"k"}}},
        attribute_filter=partial(_filter_href, {link.href for link in links}),
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )
    clean = clean.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")
    return mark_safe(clean)  # noqa: S308  -- nh3 has just reduced it to the tags above


def language_of(text: str) -> str:
    """``ko`` for a text with Hangul, else ``en``: the ``lang`` of its block."""
    return "ko" if _HANGUL.search(text) else "en"


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")


def _filter_href(link_hrefs: Collection[str], tag: str, attribute: str, value: str) -> str | None:
    """Keep absolute http(s) URLs and known links; ``//host`` and ``/path`` would lead to other hosts or into this
    site."""
    if attribute != "href" or value in link_hrefs:
        return value
    return value if value.lower().startswith(("http://", "https://")) else None


def _mark_english(tokens: Sequence[Token]) -> None:
    for opening, content_token in pairwise(tokens):
        is_sentence = opening.type in {"paragraph_open", "heading_open"} and _SENTENCE.search(content_token.content)
        if is_sentence and language_of(content_token.content) == "en":
            opening.attrSet("lang", "en")
