"""References to regulations (제15조, 제15조의2, 제3조 제2항, or forms of the profile), names of regulations, and the
citation metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from evaluation.core.metric_specs import Bilingual, RuleSettings, rule_metric
from evaluation.core.profile_settings import NUMBER, CitationRules
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec, Result
from evaluation.metrics.normalise import (
    covered_places,
    fold,
    folded,
    hangul_run,
    is_boundary,
    is_hangul,
    is_particle_chain,
    without_particle,
)

# The kind of a reference to an article; other kinds are parts of one.
ARTICLE = "조"

# A 제 that ends a word ("경제 15조 원") begins no reference, nor does a kind that continues as another noun
# ("제2조건"). 조의2 is an article of its own, but 제15조의 2가지 요건, even without the space, means conditions of
# article 15.
_ARTICLE = re.compile(
    r"(?:(?<![가-힣])제\s?|제)(?P<number>\d+)\s?"
    r"(?P<kind>조(?!건|각|직|합|사|원)|항(?!목|공)|호(?!실|선|기|점)|장(?!소|기|점|애|학)|절(?!차|반)|편(?!의))"
    r"(?:의(?P<branch>\d+)(?!\d|\s?(?:가지|개|명|건|년|월|일|회)))?"
)


class Reference(NamedTuple):
    """Reference to an article, paragraph or other numbered part, or to a regulation by name (empty ``kind``), with its
    span in the folded text. ``name`` is the normalized spelling, such as 제15조의2."""

    name: str
    start: int
    end: int
    kind: str = ""


def article_references(text: str) -> tuple[Reference, ...]:
    """References of a folded text, in order."""
    if "제" not in text:
        return ()
    references: list[Reference] = []
    for match in _ARTICLE.finditer(text):
        branch = f"의{int(match['branch'])}" if match["branch"] else ""
        name = f"제{int(match['number'])}{match['kind']}{branch}"
        references.append(Reference(name, *match.span(), match["kind"]))
    return tuple(references)


def references_in_forms(text: str, forms: Sequence[str]) -> tuple[Reference, ...]:
    """References of a folded text in forms such as ``Section {n}``, all of the kind article. The longest of overlapping
    forms (제{n}조, 제{n}조의{n}) wins. ``name`` is the reference without spaces."""
    candidates = [
        Reference(match[0].replace(" ", ""), *match.span(), ARTICLE)
        for form in forms
        for match in _pattern(form).finditer(text)
        if _is_whole_reference(text, *match.span())
    ]
    references: list[Reference] = []
    for reference in sorted(candidates, key=lambda r: (r.start, -r.end)):
        if not references or reference.start >= references[-1].end:
            references.append(reference)
    return tuple(references)


@lru_cache(maxsize=256)
def _pattern(form: str) -> re.Pattern[str]:
    """Form as a pattern: numbers such as 15, 4.2 or 15a, and optional spaces."""
    pieces = (re.escape(piece).replace("\\ ", r"\s?") for piece in folded(form).split(NUMBER))
    return re.compile(r"(?:\d{1,6}(?:\.\d{1,6}){0,3}(?:[a-z](?![a-z]))?)".join(pieces))


def _is_whole_reference(text: str, start: int, end: int) -> bool:
    """Return whether the reference is not part of a longer word or number. Particles may follow it."""
    if not is_boundary(text, start) or (text[end - 1].isdigit() and text[end : end + 1].isdigit()):
        return False
    run = hangul_run(text, end)
    if run and is_hangul(text[end - 1]):
        return is_particle_chain(text[end - 1], run)
    return is_boundary(text, end)


# Names without a prefix.
_OWN_NAMES = ("학칙", "정관", "헌법", "민법", "상법", "형법")
_KINDS = ("시행세칙", "시행규칙", "시행령", "규정", "규칙", "지침", "내규", "세칙", "조례", "요령", "법률", "법")
_KIND = re.compile("|".join((*_OWN_NAMES, *_KINDS)))
_VAGUE_LIST = (
    "관련 해당 이 그 저 본 위 동 각 각종 모든 내부 학교 대학 우리 별도 다른 현행 상기 아래 소정의 제반 일반 어떤 같은"
)
_VAGUE = frozenset(_VAGUE_LIST.split())
_NO_NAME_BEFORE = re.compile(r"(?:는|한|된|던|할|될|른|면|고|며|서|라|에|의)$")
# A longer word before a kind of regulation is no name.
MAX_NAME_LENGTH = 100
_BEFORE = re.compile(r"([가-힣a-z0-9·]+)\s$")
# Longest text between a name and its article.
_MAX_CONNECTOR = 20
_OF_CONNECTOR = re.compile(r",?\s(?:of|in|under) (?:the |our |its )?[\"']?")
_VAGUE_MENTIONS = ("규정", "규칙", "지침", "법령", "법규", "조항", "관련법")
_CONNECTED = re.compile(r"[\s\"'()\[\]<>《》〈〉]{0,3}(?:의\s)?[\s\"'(]{0,2}")
DEFAULT_RULES = CitationRules()


@dataclass(frozen=True, slots=True)
class Citation:
    """Article with the adjacent name of its regulation, if any; span in the folded text."""

    name: str
    article: str
    start: int
    end: int


def regulation_names(text: str, rules: CitationRules = DEFAULT_RULES) -> tuple[Reference, ...]:
    """Names of regulations: 학칙, 등록금 규정, 학생포상에 관한 규정; neither a bare 규정 nor 관련 규정. Names of the
    rules are included."""
    built_in = _built_in_names(text)
    places = covered_places((name.start, name.end) for name in built_in)
    configured = [
        name for name in _configured_names(text, rules.names) if places.isdisjoint(range(name.start, name.end))
    ]
    return tuple(sorted([*built_in, *configured], key=lambda name: name.start))


def _configured_names(text: str, names: tuple[str, ...]) -> Iterator[Reference]:
    for name in map(folded, names):
        for match in re.finditer(re.escape(name), text):
            run = hangul_run(text, match.end())
            ends_word = is_boundary(text, match.end()) if not run else is_particle_chain(name[-1], run)
            if ends_word and is_boundary(text, match.start()):
                yield Reference(match[0], *match.span())


def _built_in_names(text: str) -> list[Reference]:
    names: list[Reference] = []
    for match in _KIND.finditer(text):
        run = hangul_run(text, match.end())
        if run and not is_particle_chain(text[match.end() - 1], run) and not _article_follows(text, match.end()):
            continue
        start = _name_start(text, match)
        if start is not None:
            names.append(Reference(text[start : match.end()], start, match.end()))
    return names


def mentions_regulations(text: str, rules: CitationRules = DEFAULT_RULES) -> bool:
    """Return whether the text mentions regulations at all, such as 관련 규정 or a bare 규정."""
    words = [word for word in map(folded, rules.vague or _VAGUE_MENTIONS) if word in text]
    return any(is_boundary(text, m.start()) for word in words for m in re.finditer(re.escape(word), text))


def articles_of(text: str, rules: CitationRules = DEFAULT_RULES) -> tuple[Reference, ...]:
    """Articles that a folded text cites, in the rules' forms or the Korean ones. Paragraphs and items belong to their
    article."""
    if rules.articles:
        return references_in_forms(text, rules.articles)
    return tuple(article for article in article_references(text) if article.kind == ARTICLE)


def citations(text: str, rules: CitationRules = DEFAULT_RULES) -> tuple[Citation, ...]:
    """Articles of a folded text, with the regulation's name if it stands before them, or after "of" ("Section 4.2 of
    the Privacy Policy")."""
    by_start: dict[int, Reference] = {}
    by_end: dict[int, Reference] = {}
    for name in regulation_names(text, rules):
        by_start.setdefault(name.start, name)
        by_end[name.end] = name
    return tuple(_with_regulation(text, article, by_start, by_end) for article in articles_of(text, rules))


def _with_regulation(
    text: str, article: Reference, by_start: Mapping[int, Reference], by_end: Mapping[int, Reference]
) -> Citation:
    for end in range(article.start, article.start - _MAX_CONNECTOR, -1):
        if (name := by_end.get(end)) and _CONNECTED.fullmatch(text, end, article.start):
            return Citation(name.name, article.name, name.start, article.end)
    for start in range(article.end, article.end + _MAX_CONNECTOR):
        if (name := by_start.get(start)) and _OF_CONNECTOR.fullmatch(text, article.end, start):
            return Citation(name.name, article.name, article.start, name.end)
    return Citation("", article.name, article.start, article.end)


def _article_follows(text: str, position: int) -> bool:
    return _ARTICLE.match(text, position) is not None


def _name_start(text: str, match: re.Match[str]) -> int | None:
    """Start of the name that ends in this kind of regulation; ``None`` if there is no name."""
    start = match.start()
    while not is_boundary(text, start):
        start -= 1
        if match.start() - start > MAX_NAME_LENGTH:
            return None
    prefix = text[start : match.start()]
    if match[0] == "법" and not (
        prefix and _CONNECTED.match(text, match.end()) and _article_connected(text, match.end())
    ):
        # 방법, 문법: a law is recognized only before its article.
        return None
    if match[0] in _OWN_NAMES and not prefix:
        return start
    if prefix:
        return None if prefix in _VAGUE else start
    preceding = _BEFORE.search(text, max(0, start - MAX_NAME_LENGTH), start)
    if preceding is None or preceding[1] in _VAGUE or without_particle(preceding[1]) != preceding[1]:
        return None
    if preceding[1] == "관한":
        earlier = _BEFORE.search(text, max(0, preceding.start() - MAX_NAME_LENGTH), preceding.start())
        return earlier.start() if earlier else None
    return None if _NO_NAME_BEFORE.search(preceding[1]) else preceding.start()


def _article_connected(text: str, position: int) -> bool:
    connected = _CONNECTED.match(text, position)
    return connected is not None and _article_follows(text, connected.end())


@rule_metric(
    name="citation_format",
    title=Bilingual("Citation format", "인용 형식"),
    formula=Bilingual(
        "the best citation: 1.0 for regulation name and article side by side, 0.8 for both apart, 0.5 for one of them, "
        "0.3 for a vague mention, else 0; the profile sets patterns and values",
        "가장 좋은 인용: 규정명과 조문이 나란히 1.0, 떨어져 있으면 0.8, 하나만 0.5, 모호한 언급 0.3, 없으면 0; "
        "형식과 점수는 프로필 설정",
    ),
    source="regulation",
)
def citation_format(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """One of the profile's five levels; never undefined. The references are findings."""
    view, rules = fold(answer.text), settings.citation
    cited, names = citations(view.text, rules), regulation_names(view.text, rules)
    levels = rules.levels
    findings = [_finding(answer.text, "article", *view.span(c.start, c.end)) for c in cited]
    findings += [_finding(answer.text, "name", *view.span(n.start, n.end)) for n in names]
    if any(citation.name for citation in cited):
        level = levels.adjacent
    elif cited and names:
        level = levels.apart
    elif cited or names:
        level = levels.one
    else:
        level = levels.vague if mentions_regulations(view.text, rules) else levels.none
    return Result.scored(level, findings=tuple(findings))


def _finding(text: str, verdict: str, start: int, end: int) -> Finding:
    return Finding("citation", text[start:end], verdict, start=start, end=end)


_NAME_FIELDS = ("regulation", "title")


@dataclass(frozen=True, slots=True)
class _Source:
    """Names in a passage and its fields, without spaces, and the articles it contains."""

    names: str
    articles: frozenset[str]


@rule_metric(
    name="citation_validity",
    title=Bilingual("Citation validity", "인용 유효성"),
    formula=Bilingual(
        "cited articles that occur in the retrieved passages / cited articles",
        "검색된 출처에 있는 인용 조문 수 / 인용 조문 수",
    ),
    source="beyond",
    inputs=("contexts",),
)
def citation_validity(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Share of distinct citations found in the passages, 0 to 1. Not applicable if the system does not retrieve or the
    answer cites no article (``no_citations``).

    A citation is valid if a passage contains or is the article, and its text or fields contain the regulation's name,
    if the answer gives one."""
    if answer.contexts is None:
        return Result.not_applicable("does_not_retrieve")
    view = fold(answer.text)
    distinct: dict[tuple[str, str], Citation] = {}
    for citation in citations(view.text, settings.citation):
        distinct.setdefault((_without_spaces(citation.name), citation.article), citation)
    if not distinct:
        return Result.not_applicable("no_citations")
    sources = [_source(context, settings.citation) for context in answer.contexts]
    findings = []
    for (name, article), citation in distinct.items():
        source_index = next((i for i, s in enumerate(sources) if article in s.articles and name in s.names), None)
        start, end = view.span(citation.start, citation.end)
        verdict = "unsupported" if source_index is None else "supported"
        findings.append(Finding("citation", answer.text[start:end], verdict, source_index, start, end))
    valid = sum(finding.verdict == "supported" for finding in findings)
    return Result.scored(
        valid / len(findings), detail={"cited": len(findings), "valid": valid}, findings=tuple(findings)
    )


def _source(context: ContextSpec, rules: CitationRules) -> _Source:
    fields = [_text(context.metadata.get(field)) for field in _NAME_FIELDS]
    articles = articles_of(folded(f"{_text(context.metadata.get('article'))} . {context.text}"), rules)
    return _Source(
        _without_spaces("\n".join([folded(context.text), folded(context.source), *map(folded, fields)])),
        frozenset(article.name for article in articles),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _without_spaces(text: str) -> str:
    return text.replace(" ", "")
