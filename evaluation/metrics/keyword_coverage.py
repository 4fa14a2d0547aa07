"""Metrics of expected keywords (source 000, 2.1 A and B), required points (003) and nuggets (004, phase 2): which, and
what share of them, occur in the answer, with findings that a person can check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import Bilingual, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, Finding, Nugget, QuestionSpec, Result
from evaluation.core.scales import YES_NO, ReviewForm
from evaluation.metrics.matching import MATCHINGS, KeywordHit, find_keyword
from evaluation.metrics.normalise import folded

Keywords = tuple[tuple[str, ...], ...]
MISSING, NEGATED = "missing", "negated"
NEGATION_NOT_CONFIRMED = "negation_not_confirmed"  # a reason code: seen without an analyser, so the hit counts


@dataclass(frozen=True, slots=True)
class KeywordsInAnswer:
    """For each keyword whether it occurs and counts, with the detail and the findings of a result."""

    occurring: tuple[bool, ...]
    detail: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def share(self) -> float:
        """Keywords that occur / keywords."""
        return sum(self.occurring) / len(self.occurring)

    def scored(self, value: float) -> Result:
        """A result with these findings."""
        return Result.scored(value, detail=self.detail, findings=self.findings)


@lru_cache(maxsize=65_536)
def without_blank(keywords: Keywords, matching: str) -> Keywords:
    """The keywords without wordings that are only white space, and without keywords that have no other.

    :raises UnknownName: for a matching other than ``tiers`` and ``substring``.
    """
    if matching not in MATCHINGS:
        raise UnknownName("matching", matching, MATCHINGS)
    written = (tuple(wording for wording in keyword if folded(wording)) for keyword in keywords)
    return tuple(keyword for keyword in written if keyword)


@lru_cache(maxsize=1)
def find_keywords(keywords: Keywords, text: str, matching: str) -> KeywordsInAnswer:
    """Search all keywords in a text; the last result is cached for the next metric of the same answer."""
    hits = [find_keyword(keyword, text, matching) for keyword in keywords]
    occurring = tuple(map(occurs, hits))
    detail: dict[str, Any] = {
        "expected": len(hits),
        "found": sum(occurring),
        "negated": sum(hit is not None and hit.negated for hit in hits),
        "matching": matching,
    }
    if analysis := next((hit.analysis for hit in hits if hit is not None and hit.analysis), None):
        detail["analysis"] = analysis
    return KeywordsInAnswer(occurring, detail, tuple(map(keyword_finding, keywords, hits)))


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


def _found(keywords: Keywords, answer: AnswerSpec, settings: RuleSettings) -> KeywordsInAnswer | None:
    """What the keywords find in the answer; ``None`` where none says anything."""
    written = without_blank(keywords, settings.matching)
    return find_keywords(written, answer.text, settings.matching) if written else None


@rule_metric(
    name="keyword_coverage",
    version=2,
    title=Bilingual("Keyword coverage", "키워드 커버리지"),
    formula=Bilingual(
        "expected keywords that occur in the answer / expected keywords",
        "답변에 나온 기대 키워드 수 / 기대 키워드 수",
    ),
    source="000",
    inputs=("keywords",),
)
def keyword_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1; not applicable (``no_keywords``) to a question without expected keywords."""
    found = _found(question.keywords, answer, settings)
    return found.scored(found.share) if found else Result.not_applicable("no_keywords")


@rule_metric(
    name="keyword_hit",
    version=2,
    scale=YES_NO,
    title=Bilingual("Keyword hit", "키워드 적중"),
    formula=Bilingual(
        "1 if at least one expected keyword occurs in the answer, else 0",
        "기대 키워드가 답변에 하나 이상 나오면 1, 아니면 0",
    ),
    source="000",
    inputs=("keywords",),
    review_form=ReviewForm.YES_NO,
)
def keyword_hit(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0; not applicable (``no_keywords``) to a question without expected keywords."""
    found = _found(question.keywords, answer, settings)
    return found.scored(1.0 if any(found.occurring) else 0.0) if found else Result.not_applicable("no_keywords")


@rule_metric(
    name="required_info_coverage",
    version=2,
    title=Bilingual("Required information", "필수 정보 포함률"),
    formula=Bilingual(
        "required points that occur in the answer / required points",
        "답변에 나온 필수 항목 수 / 필수 항목 수",
    ),
    source="003",
    inputs=("required_info",),
)
def required_info_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1, points matched as keywords are; not applicable (``no_required_info``) without points."""
    found = _found(tuple((point,) for point in dict.fromkeys(question.required_info)), answer, settings)
    return found.scored(found.share) if found else Result.not_applicable("no_required_info")


@rule_metric(
    name="nugget_coverage",
    version=2,
    title=Bilingual("Nugget coverage", "핵심 사실 포함률"),
    formula=Bilingual(
        "nuggets of which any wording occurs in the answer / nuggets",
        "표현 중 하나라도 답변에 나온 핵심 사실 수 / 핵심 사실 수",
    ),
    source="004",
    inputs=("nuggets",),
    review_form=ReviewForm.NUGGETS,
)
def nugget_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1 over all nuggets, the share of the vital ones beside it; not applicable (``no_nuggets``)
    where neither the question nor the profile has any. The missing ones are findings."""
    nuggets = [nugget for nugget in question.nuggets or settings.nuggets if any(map(folded, _wordings(nugget)))]
    if not nuggets:
        return Result.not_applicable("no_nuggets")
    written = without_blank(tuple(map(_wordings, nuggets)), settings.matching)
    found = find_keywords(written, answer.text, settings.matching)
    vital = [occurs for nugget, occurs in zip(nuggets, found.occurring, strict=True) if nugget.vital]
    counts = {"vital": len(vital), "vital_found": sum(vital), "nuggets": "question" if question.nuggets else "profile"}
    return Result.scored(
        found.share,
        detail=found.detail | counts,
        findings=tuple(replace(finding, kind="nugget") for finding in found.findings),
    )


def _wordings(nugget: Nugget) -> tuple[str, ...]:
    return (nugget.name, *nugget.alternatives)
