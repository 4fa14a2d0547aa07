"""The expected keywords of a question in an answer, as results and as findings a person can check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.metrics.korean import CLOSED_LIST
from evaluation.metrics.matching import KeywordHit, find_keyword
from evaluation.metrics.normalise import folded
from evaluation.registry import RuleSettings
from evaluation.samples import AnswerSpec, Finding, QuestionSpec

MISSING, NEGATED = "missing", "negated"
NEGATION_NOT_CONFIRMED = "negation_not_confirmed"  # a reason code: seen without an analyser, so the hit counts


def expected_keywords(question: QuestionSpec) -> tuple[tuple[str, ...], ...]:
    """The keywords that hold anything but white space, each as its alternative wordings."""
    kept = (tuple(written for written in keyword if folded(written)) for keyword in question.keywords)
    return tuple(keyword for keyword in kept if keyword)


def keyword_hits(
    keywords: Sequence[tuple[str, ...]], answer: AnswerSpec, settings: RuleSettings
) -> tuple[KeywordHit | None, ...]:
    """The best hit of each keyword, in their order."""
    return tuple(find_keyword(keyword, answer.text, settings.matching) for keyword in keywords)


def occurs(hit: KeywordHit | None) -> bool:
    """Whether the keyword counts as found."""
    return hit is not None and hit.counts


def keyword_finding(keyword: tuple[str, ...], hit: KeywordHit | None) -> Finding:
    """The finding of one keyword: the verdict is the tier, ``negated`` or ``missing``."""
    if hit is None:
        return Finding("keyword", keyword[0], MISSING)
    if not hit.counts:
        return Finding("keyword", hit.keyword, NEGATED, start=hit.start, end=hit.end, reason=hit.tier)
    reason = NEGATION_NOT_CONFIRMED if hit.negated else "" if hit.within == hit.tier else hit.within
    return Finding("keyword", hit.keyword, hit.tier, start=hit.start, end=hit.end, reason=reason)


def keyword_detail(hits: Sequence[KeywordHit | None], settings: RuleSettings) -> dict[str, Any]:
    """How many keywords were expected, found and seen in a negated clause, and by what matching and analysis."""
    used = next((hit.analysis for hit in hits if hit is not None and hit.analysis), "")
    detail: dict[str, Any] = {
        "expected": len(hits),
        "found": sum(map(occurs, hits)),
        "negated": sum(hit is not None and hit.negated for hit in hits),
        "matching": settings.matching,
    }
    return detail | ({"analysis": used or CLOSED_LIST} if used else {})
