"""Metrics of citations: how the best reference is written (source 003), whether the cited articles are in the passages
(ours), and which passages the answer draws on (source 004, phase 1).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.registry import Bilingual, ReviewForm, RuleSettings, rule_metric
from evaluation.core.rulebook import CitationRules
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import UNIT
from evaluation.metrics.citations import Citation, articles_of, citations, mentions_regulations, regulation_names
from evaluation.metrics.normalise import content_tokens, fold, folded


@rule_metric(
    name="citation_format",
    scale=UNIT,
    title=Bilingual("Citation format", "인용 형식"),
    formula=Bilingual(
        "the best reference: 1.0 regulation name and article side by side, 0.8 both apart, 0.5 one of them, "
        "0.3 a vague mention, 0 none; forms and levels are settings of the profile",
        "가장 좋은 인용: 규정명과 조문이 나란히 1.0, 떨어져 있으면 0.8, 하나만 0.5, 모호한 언급 0.3, 없으면 0; "
        "형식과 점수는 프로필 설정",
    ),
    source="003",
)
def citation_format(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """One of the profile's five levels, for every answer; the references are findings."""
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
    """What a passage says about where it comes from, without spaces, and the articles it holds."""

    names: str
    articles: frozenset[str]


@rule_metric(
    name="citation_validity",
    scale=UNIT,
    title=Bilingual("Citation validity", "인용 유효성"),
    formula=Bilingual(
        "cited articles that occur in the retrieved passages / cited articles",
        "검색된 출처에 있는 인용 조문 수 / 인용 조문 수",
    ),
    source="beyond",
    inputs=("contexts",),
)
def citation_validity(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1 over the distinct citations; not applicable where the system does not retrieve or the
    answer cites no article (``no_citations``). An article counts in a passage that holds or is it, and whose text or
    fields hold the regulation's name where the answer gives one."""
    if answer.contexts is None:
        return Result.not_applicable("does_not_retrieve")
    view = fold(answer.text)
    distinct: dict[tuple[str, str], Citation] = {}
    for citation in citations(view.text, settings.citation):
        distinct.setdefault((_squeezed(citation.name), citation.article), citation)
    if not distinct:
        return Result.not_applicable("no_citations")
    sources = [_source(context, settings.citation) for context in answer.contexts]
    findings = []
    for (name, article), citation in distinct.items():
        place = _first(sources, name, article)
        start, end = view.span(citation.start, citation.end)
        verdict = "unsupported" if place is None else "supported"
        findings.append(Finding("citation", answer.text[start:end], verdict, place, start, end))
    valid = sum(finding.verdict == "supported" for finding in findings)
    return Result.scored(
        valid / len(findings), detail={"cited": len(findings), "valid": valid}, findings=tuple(findings)
    )


def _first(sources: Sequence[_Source], name: str, article: str) -> int | None:
    return next((i for i, s in enumerate(sources) if article in s.articles and name in s.names), None)


def _source(context: ContextSpec, rules: CitationRules) -> _Source:
    fields = [_text(context.metadata.get(field)) for field in _NAME_FIELDS]
    articles = articles_of(folded(f"{_text(context.metadata.get('article'))} . {context.text}"), rules)
    return _Source(
        _squeezed("\n".join([folded(context.text), folded(context.source), *map(folded, fields)])),
        frozenset(article.name for article in articles),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _squeezed(text: str) -> str:
    return text.replace(" ", "")


_WORDS, _CHARACTERS = 5, 20
_BRACKETED = re.compile(r"\[([^\]\n]{1,200})\]|\(((?:출처|source)[^)\n]{1,200})\)")
_NUMBERS = re.compile(r"[\d\s,]+")


@rule_metric(
    name="citation_coverage",
    scale=UNIT,
    title=Bilingual("Citation coverage", "출처 활용률"),
    formula=Bilingual(
        "retrieved passages the answer draws on / retrieved passages",
        "답변이 활용한 검색 청크 수 / 검색 청크 수",
    ),
    source="004",
    inputs=("contexts",),
    review_form=ReviewForm.CONTEXTS,
)
def citation_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1, 0 where nothing was retrieved; not applicable where the system does not retrieve.
    Each passage is a finding, ``cited`` or ``uncited``, with how it is drawn on."""
    contexts = answer.contexts
    if contexts is None:
        return Result.not_applicable("does_not_retrieve")
    if not contexts:
        return Result.scored(0.0)
    text, words = folded(answer.text), content_tokens(answer.text)
    ways = [_drawn_on(text, words, context, position) for position, context in enumerate(contexts)]
    names = [context.chunk_id or str(position + 1) for position, context in enumerate(contexts)]
    return Result.scored(
        sum(map(bool, ways)) / len(ways),
        detail={
            "cited": [name for name, way in zip(names, ways, strict=True) if way],
            "uncited": [name for name, way in zip(names, ways, strict=True) if not way],
        },
        findings=tuple(
            Finding("context", name, "cited" if way else "uncited", position, reason=way)
            for position, (name, way) in enumerate(zip(names, ways, strict=True))
        ),
    )


def _drawn_on(text: str, words: Sequence[str], context: ContextSpec, position: int) -> str:
    """How the answer draws on a passage: ``reference``, ``words``, ``characters``, or an empty text."""
    if _refers(text, context, position):
        return "reference"
    given = content_tokens(context.text)
    length = min(_WORDS, len(given))
    if length and _runs(given, length) & _runs(words, length):
        return "words"
    if _runs(folded(context.text), _CHARACTERS) & _runs(text, _CHARACTERS):
        return "characters"
    return ""


def _refers(text: str, context: ContextSpec, position: int) -> bool:
    """Whether a bracket names the passage by its id, source or number (from 1)."""
    names = [name for name in (folded(context.chunk_id), folded(context.source)) if name]
    for match in _BRACKETED.finditer(text):
        inside = match[1] or match[2]
        if _NUMBERS.fullmatch(inside):
            if str(position + 1) in re.findall(r"\d+", inside) or inside.strip() in names:
                return True
        elif any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", inside) for name in names):
            return True
    return False


def _runs(items: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(items[i : i + length]) for i in range(len(items) - length + 1)}
