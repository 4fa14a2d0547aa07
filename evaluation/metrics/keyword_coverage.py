"""Coverage of expected keywords (graphrag evaluation), required points (regulation) and nuggets (phases) in the answer,
with findings."""

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
# Reason code: the negation was found without an analyzer, so the hit counts.
NEGATION_NOT_CONFIRMED = "negation_not_confirmed"


@dataclass(frozen=True, slots=True)
class KeywordMatches:
    """Occurrence of each keyword, with the detail and the findings of a result."""

    occurring: tuple[bool, ...]
    detail: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def share(self) -> float:
        """Keywords that occur / keywords."""
        return sum(self.occurring) / len(self.occurring)

    def to_result(self, value: float) -> Result:
        return Result.scored(value, detail=self.detail, findings=self.findings)


@lru_cache(maxsize=65_536)
def nonblank_keywords(keywords: Keywords, matching: str) -> Keywords:
    """Keywords without blank wordings, and without keywords that have no other wording.

    :raises UnknownName: for a matching other than ``tiers`` and ``substring``."""
    if matching not in MATCHINGS:
        raise UnknownName("matching", matching, MATCHINGS)
    cleaned = (tuple(wording for wording in keyword if folded(wording)) for keyword in keywords)
    return tuple(keyword for keyword in cleaned if keyword)


@lru_cache(maxsize=1)
def find_keywords(keywords: Keywords, text: str, matching: str) -> KeywordMatches:
    """Search all keywords in a text. The last result is cached for the next metric of the same answer."""
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
    return KeywordMatches(occurring, detail, tuple(map(keyword_finding, keywords, hits)))


def occurs(hit: KeywordHit | None) -> bool:
    return hit is not None and hit.counts


def keyword_finding(keyword: tuple[str, ...], hit: KeywordHit | None) -> Finding:
    """Finding of one keyword; the verdict is the tier, ``negated`` or ``missing``."""
    if hit is None:
        return Finding("keyword", keyword[0], MISSING)
    if not hit.counts:
        return Finding("keyword", hit.keyword, NEGATED, start=hit.start, end=hit.end, reason=hit.tier)
    reason = NEGATION_NOT_CONFIRMED if hit.negated else "" if hit.wording_tier == hit.tier else hit.wording_tier
    return Finding("keyword", hit.keyword, hit.tier, start=hit.start, end=hit.end, reason=reason)


def _match_keywords(keywords: Keywords, answer: AnswerSpec, settings: RuleSettings) -> KeywordMatches | None:
    """Matches of the keywords in the answer; ``None`` if all are blank."""
    wordings = nonblank_keywords(keywords, settings.matching)
    return find_keywords(wordings, answer.text, settings.matching) if wordings else None


@rule_metric(
    name="keyword_coverage",
    version=2,
    title=Bilingual("Keyword coverage", "키워드 커버리지"),
    formula=Bilingual(
        "expected keywords that occur in the answer / expected keywords",
        "답변에 나온 기대 키워드 수 / 기대 키워드 수",
    ),
    source="graphrag",
    inputs=("keywords",),
)
def keyword_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Share of expected keywords, 0 to 1; not applicable (``no_keywords``) without expected keywords."""
    matches = _match_keywords(question.keywords, answer, settings)
    return matches.to_result(matches.share) if matches else Result.not_applicable("no_keywords")


@rule_metric(
    name="keyword_hit",
    version=2,
    scale=YES_NO,
    title=Bilingual("Keyword hit", "키워드 적중"),
    formula=Bilingual(
        "1 if at least one expected keyword occurs in the answer, else 0",
        "기대 키워드가 답변에 하나 이상 나오면 1, 아니면 0",
    ),
    source="graphrag",
    inputs=("keywords",),
    review_form=ReviewForm.YES_NO,
)
def keyword_hit(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0; not applicable (``no_keywords``) without expected keywords."""
    matches = _match_keywords(question.keywords, answer, settings)
    return (
        matches.to_result(1.0 if any(matches.occurring) else 0.0) if matches else Result.not_applicable("no_keywords")
    )


@rule_metric(
    name="required_info_coverage",
    version=2,
    title=Bilingual("Required information", "필수 정보 포함률"),
    formula=Bilingual(
        "required points that occur in the answer / required points",
        "답변에 나온 필수 항목 수 / 필수 항목 수",
    ),
    source="regulation",
    inputs=("required_info",),
)
def required_info_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Share of required points, 0 to 1, matched as keywords; not applicable (``no_required_info``) without points."""
    matches = _match_keywords(tuple((point,) for point in dict.fromkeys(question.required_info)), answer, settings)
    return matches.to_result(matches.share) if matches else Result.not_applicable("no_required_info")


@rule_metric(
    name="nugget_coverage",
    version=2,
    title=Bilingual("Nugget coverage", "핵심 사실 포함률"),
    formula=Bilingual(
        "nuggets with at least one wording in the answer / nuggets",
        "표현 중 하나라도 답변에 나온 핵심 사실 수 / 핵심 사실 수",
    ),
    source="phases",
    inputs=("nuggets",),
    review_form=ReviewForm.NUGGETS,
)
def nugget_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Share of nuggets, 0 to 1; the detail counts the vital ones, the findings list missing ones. Not applicable
    (``no_nuggets``) if neither question nor profile has nuggets."""
    nuggets = [nugget for nugget in question.nuggets or settings.nuggets if any(map(folded, _wordings(nugget)))]
    if not nuggets:
        return Result.not_applicable("no_nuggets")
    wordings = nonblank_keywords(tuple(map(_wordings, nuggets)), settings.matching)
    matches = find_keywords(wordings, answer.text, settings.matching)
    vital = [occurs for nugget, occurs in zip(nuggets, matches.occurring, strict=True) if nugget.vital]
    counts = {"vital": len(vital), "vital_found": sum(vital), "nuggets": "question" if question.nuggets else "profile"}
    return Result.scored(
        matches.share,
        detail=matches.detail | counts,
        findings=tuple(replace(finding, kind="nugget") for finding in matches.findings),
    )


def _wordings(nugget: Nugget) -> tuple[str, ...]:
    return (nugget.name, *nugget.alternatives)
