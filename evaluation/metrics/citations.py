"""References to regulations: articles (제15조, 제15조의2, 제3조 제2항, or in the forms that a profile gives), names of
regulations, and how they stand to each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from evaluation.core.rulebook import NUMBER, CitationRules
from evaluation.metrics.korean import is_particle_chain, without_particle
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


_OWN_NAMES = ("학칙", "정관", "헌법", "민법", "상법", "형법")  # names without anything in front
_KINDS = ("시행세칙", "시행규칙", "시행령", "규정", "규칙", "지침", "내규", "세칙", "조례", "요령", "법률", "법")
_KIND = re.compile("|".join((*_OWN_NAMES, *_KINDS)))
_VAGUE_LIST = (
    "관련 해당 이 그 저 본 위 동 각 각종 모든 내부 학교 대학 우리 별도 다른 현행 상기 아래 소정의 제반 일반 어떤 같은"
)
_VAGUE = frozenset(_VAGUE_LIST.split())
_NO_NAME_BEFORE = re.compile(r"(?:는|한|된|던|할|될|른|면|고|며|서|라|에|의)$")
_BEFORE = re.compile(r"([가-힣a-z0-9·]+)\s$")
_OF = re.compile(r",?\s(?:of|in|under) (?:the |our |its )?[\"']?")
_VAGUE_MENTIONS = ("규정", "규칙", "지침", "법령", "법규", "조항", "관련법")
_CONNECTED = re.compile(r"[\s\"'()\[\]<>《》〈〉]{0,3}(?:의\s)?[\s\"'(]{0,2}")
BUILT_IN = CitationRules()


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


def regulation_names(text: str, rules: CitationRules = BUILT_IN) -> tuple[RegulationName, ...]:
    """Names of regulations: 학칙, 등록금 규정, 학생포상에 관한 규정; not a bare 규정 and not 관련 규정. The rules' own
    names count as well."""
    built_in = _built_in_names(text)
    named = [n for n in _names_of(text, rules.names) if not any(n.start < b.end and b.start < n.end for b in built_in)]
    return tuple(sorted([*built_in, *named], key=lambda name: name.start))


def _names_of(text: str, names: tuple[str, ...]) -> Iterator[RegulationName]:
    for name in map(folded, names):
        for match in re.finditer(re.escape(name), text):
            run = hangul_run(text, match.end())
            ends = is_boundary(text, match.end()) if not run else is_particle_chain(name[-1], run)
            if ends and is_boundary(text, match.start()):
                yield RegulationName(match[0], *match.span())


def _built_in_names(text: str) -> list[RegulationName]:
    found: list[RegulationName] = []
    for match in _KIND.finditer(text):
        run = hangul_run(text, match.end())
        if run and not is_particle_chain(text[match.end() - 1], run) and not _article_follows(text, match.end()):
            continue
        start = _name_start(text, match)
        if start is not None:
            found.append(RegulationName(text[start : match.end()], start, match.end()))
    return found


def mentions_regulations(text: str, rules: CitationRules = BUILT_IN) -> bool:
    """Whether rules are mentioned in any way, such as 관련 규정 or a bare 규정."""
    words = [word for word in map(folded, rules.vague or _VAGUE_MENTIONS) if word in text]
    return any(is_boundary(text, m.start()) for word in words for m in re.finditer(re.escape(word), text))


def articles_of(text: str, rules: CitationRules = BUILT_IN) -> tuple[ArticleReference, ...]:
    """The articles a folded text refers to, in the rules' forms or the Korean ones. Paragraphs and items belong to
    their article and are none of their own."""
    if rules.articles:
        return references_in_forms(text, rules.articles)
    return tuple(article for article in article_references(text) if article.kind == ARTICLE)


def citations(text: str, rules: CitationRules = BUILT_IN) -> tuple[Citation, ...]:
    """The articles of a folded text, each with its regulation's name where one stands before it; or behind it after
    "of" ("Section 4.2 of the Privacy Policy")."""
    names = regulation_names(text, rules)
    return tuple(_named(text, article, names) for article in articles_of(text, rules))


def _named(text: str, article: ArticleReference, names: tuple[RegulationName, ...]) -> Citation:
    for name in reversed(names):
        if name.end <= article.start and _CONNECTED.fullmatch(text, name.end, article.start):
            return Citation(name.name, article.name, name.start, article.end)
    for name in names:
        if name.start >= article.end and _OF.fullmatch(text, article.end, name.start):
            return Citation(name.name, article.name, article.start, name.end)
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
