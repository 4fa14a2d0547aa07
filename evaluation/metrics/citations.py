"""References of an answer to regulations: the regulation's name, the article, and how they stand to each other."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluation.metrics.articles import ArticleReference, article_references
from evaluation.metrics.boundaries import hangul_run, is_boundary
from evaluation.metrics.particles import is_particle_chain, without_particle

_OWN_NAMES = ("학칙", "정관", "헌법", "민법", "상법", "형법")  # names without anything in front
_KINDS = ("시행세칙", "시행규칙", "시행령", "규정", "규칙", "지침", "내규", "세칙", "조례", "요령", "법률", "법")
_KIND = re.compile("|".join((*_OWN_NAMES, *_KINDS)))
_VAGUE_LIST = (
    "관련 해당 이 그 저 본 위 동 각 각종 모든 내부 학교 대학 우리 별도 다른 현행 상기 아래 소정의 제반 일반 어떤 같은"
)
_VAGUE = frozenset(_VAGUE_LIST.split())
_NO_NAME_BEFORE = re.compile(r"(?:는|한|된|던|할|될|른|면|고|며|서|라|에|의)$")
_BEFORE = re.compile(r"([가-힣a-z0-9·]+)\s$")
_CONNECTED = re.compile(r"[\s\"'()\[\]<>《》〈〉]{0,3}(?:의\s)?[\s\"'(]{0,2}")


@dataclass(frozen=True, slots=True)
class RegulationName:
    """The name of a regulation as it stands in a folded text."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Citation:
    """An article with the name of its regulation where that stands right before it; places in the folded text."""

    name: str
    article: str
    start: int
    end: int


def regulation_names(text: str) -> tuple[RegulationName, ...]:
    """Names of regulations: 학칙, 등록금 규정, 학생포상에 관한 규정; not a bare 규정 and not 관련 규정."""
    found: list[RegulationName] = []
    for match in _KIND.finditer(text):
        run = hangul_run(text, match.end())
        if run and not is_particle_chain(text[match.end() - 1], run) and not _article_follows(text, match.end()):
            continue
        start = _name_start(text, match)
        if start is not None:
            found.append(RegulationName(text[start : match.end()], start, match.end()))
    return tuple(found)


def mentions_regulations(text: str) -> bool:
    """Whether rules are mentioned in any way, such as 관련 규정 or a bare 규정."""
    return any(is_boundary(text, m.start()) for m in re.finditer(r"규정|규칙|지침|법령|법규|조항|관련법", text))


def citations(text: str) -> tuple[Citation, ...]:
    """The articles a folded text refers to (제15조의2), each with its regulation's name where one stands before it.
    Paragraphs and items belong to their article and are no citations of their own."""
    names = regulation_names(text)
    return tuple(_named(text, article, names) for article in article_references(text) if article.kind == "조")


def _named(text: str, article: ArticleReference, names: tuple[RegulationName, ...]) -> Citation:
    for name in reversed(names):
        if name.end <= article.start and _CONNECTED.fullmatch(text, name.end, article.start):
            return Citation(name.name, article.name, name.start, article.end)
    return Citation("", article.name, article.start, article.end)


def _article_follows(text: str, place: int) -> bool:
    return any(article.start == place for article in article_references(text))


def _name_start(text: str, match: re.Match[str]) -> int | None:
    """Where the name begins that ends in this kind of regulation, or ``None`` where nothing names it."""
    start = match.start()
    while not is_boundary(text, start):
        start -= 1
    prefix = text[start : match.start()]
    if match[0] == "법" and not (prefix and _CONNECTED.match(text, match.end()) and _cites(text, match.end())):
        return None  # 방법, 문법: a law is recognised only before its article
    if match[0] in _OWN_NAMES and not prefix:
        return start
    if prefix:
        return None if prefix in _VAGUE else start
    before = _BEFORE.search(text, 0, start)
    if before is None or before[1] in _VAGUE or without_particle(before[1]) != before[1]:
        return None
    if before[1] == "관한":
        longer = _BEFORE.search(text, 0, before.start())
        return longer.start() if longer else None
    return None if _NO_NAME_BEFORE.search(before[1]) else before.start()


def _cites(text: str, place: int) -> bool:
    connected = _CONNECTED.match(text, place)
    return connected is not None and _article_follows(text, connected.end())
