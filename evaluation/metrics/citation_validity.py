"""Citation validity: whether the articles an answer cites are in the passages it was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.registry import Bilingual, Kind, MetricSpec, RuleSettings, rule_metric
from evaluation.core.rulebook import CitationRules
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.citations import Citation, articles_of, citations
from evaluation.metrics.normalise import fold, folded

_NAME_FIELDS = ("regulation", "title")


@dataclass(frozen=True, slots=True)
class _Source:
    """What a passage says about where it comes from, without spaces, and the articles it holds."""

    names: str
    articles: frozenset[str]


@rule_metric(
    MetricSpec(
        name="citation_validity",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Citation validity", "인용 유효성"),
        formula=Bilingual(
            "cited articles that occur in the retrieved passages / cited articles",
            "검색된 출처에 있는 인용 조문 수 / 인용 조문 수",
        ),
        source="beyond",
        inputs=("contexts",),
    )
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
