"""References to articles of a regulation: 제15조, 제15조의2, 제3조 제2항."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
