"""References to articles of a regulation: 제15조, 제15조의2, 제3조 제2항; or in the forms that a profile gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from evaluation.core.rulebook import NUMBER
from evaluation.metrics.korean import is_particle_chain
from evaluation.metrics.normalise import folded, hangul_run, is_boundary, is_hangul

ARTICLE = "조"  # the kind of reference that is an article; others are parts of one

# A 제 at the end of a word ("경제 15조 원") begins no reference, nor does a kind that goes on as another noun
# ("제2조건"). 조의2 is an article of its own, but 제15조의 2가지 요건, even without the space, are conditions of
# article 15.
_ARTICLE = re.compile(
    r"(?:(?<![가-힣])제\s?|제)(?P<number>\d+)\s?"
    r"(?P<kind>조(?!건|각|직|합|사|원)|항(?!목|공)|호(?!실|선|기|점)|장(?!소|기|점|애|학)|절(?!차|반)|편(?!의))"
    r"(?:의(?P<branch>\d+)(?!\d|\s?(?:가지|개|명|건|년|월|일|회)))?"
)


@dataclass(frozen=True, slots=True)
class ArticleReference:
    """An article, paragraph or other numbered part with its place; ``name`` is its one spelling, such as 제15조의2."""

    name: str
    kind: str
    start: int
    end: int


def article_references(text: str) -> tuple[ArticleReference, ...]:
    """All references of a folded text, in order."""
    if "제" not in text:
        return ()
    found: list[ArticleReference] = []
    for match in _ARTICLE.finditer(text):
        branch = f"의{int(match['branch'])}" if match["branch"] else ""
        name = f"제{int(match['number'])}{match['kind']}{branch}"
        found.append(ArticleReference(name, match["kind"], match.start(), match.end()))
    return tuple(found)


def references_in_forms(text: str, forms: Sequence[str]) -> tuple[ArticleReference, ...]:
    """References of a folded text in forms such as ``Section {n}``, all of the kind article; where forms overlap
    (제{n}조, 제{n}조의{n}) the longest counts. ``name`` is the reference without spaces."""
    found = [
        ArticleReference(match[0].replace(" ", ""), ARTICLE, *match.span())
        for form in forms
        for match in _pattern(form).finditer(text)
        if _stands(text, *match.span())
    ]
    kept: list[ArticleReference] = []
    for reference in sorted(found, key=lambda r: (r.start, -r.end)):
        if not kept or reference.start >= kept[-1].end:
            kept.append(reference)
    return tuple(kept)


@lru_cache(maxsize=256)
def _pattern(form: str) -> re.Pattern[str]:
    """The form as an expression: numbers such as 15, 4.2 or 15a, and spaces that may be missing."""
    pieces = (re.escape(piece).replace("\\ ", r"\s?") for piece in folded(form).split(NUMBER))
    return re.compile(r"(?:\d{1,6}(?:\.\d{1,6}){0,3}(?:[a-z](?![a-z]))?)".join(pieces))


def _stands(text: str, start: int, end: int) -> bool:
    """Whether the reference is no part of a longer word or number; Hangul behind it may be particles."""
    if not is_boundary(text, start) or (text[end - 1].isdigit() and text[end : end + 1].isdigit()):
        return False
    run = hangul_run(text, end)
    if run and is_hangul(text[end - 1]):
        return is_particle_chain(text[end - 1], run)
    return is_boundary(text, end)
