"""Metrics of expected keywords (source 000, 2.1 A and B), required points (003) and nuggets (004, phase 2): which, and
what share of them, occur in the answer, with findings that a person can check.

Whether they occur is settled by the first tier wherever it can; tiers and places, which cost more than the figure they
explain, are looked up when somebody reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar, overload

from evaluation.core.errors import UnknownName
from evaluation.core.registry import YES_NO, Bilingual, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, Finding, Nugget, QuestionSpec, Result, Status
from evaluation.metrics import normalise
from evaluation.metrics.first_tier import FirstTier
from evaluation.metrics.matching import MATCHINGS, KeywordHit, Tier, find_keyword
from evaluation.metrics.normalise import folded

T = TypeVar("T")


class DeferredSequence(Sequence[T]):
    """A sequence that is made on first reading, and equal to any sequence with the same items."""

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._make = make

    @cached_property
    def _items(self) -> tuple[T, ...]:
        return self._make()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == tuple(other)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


class DeferredMapping(Mapping[str, Any]):
    """A mapping that is made on first reading."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make

    @cached_property
    def _content(self) -> Mapping[str, Any]:
        return self._make()

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        return repr(self._content)


Keywords = tuple[tuple[str, ...], ...]
MISSING, NEGATED = "missing", "negated"
NEGATION_NOT_CONFIRMED = "negation_not_confirmed"  # a reason code: seen without an analyser, so the hit counts


class KeywordSet:
    """Keywords compiled once, each with its alternative wordings, and how they are matched: ``tiers``, or the sources'
    plain ``substring``."""

    __slots__ = ("keywords", "matching", "settled")

    def __init__(self, keywords: Keywords, matching: str) -> None:
        self.keywords, self.matching = keywords, matching
        # For each keyword whether it occurs in a text and counts; ``None`` where only the full tiers can tell.
        self.settled: Callable[[str], list[bool | None]] = FirstTier(keywords).states
        if matching == Tier.SUBSTRING:
            self.settled = lambda text: [any(written in text for written in keyword) for keyword in keywords]

    def occurring(self, text: str) -> tuple[list[bool], int]:
        """For each keyword whether it occurs in the text and counts; and how many do."""
        states = self.settled(text)
        try:
            return states, sum(states)  # type: ignore[return-value,arg-type]
        except TypeError:  # a None is left; looking for it first costs more than adding up
            read = [
                occurs(find_keyword(keyword, text, self.matching)) if state is None else state
                for keyword, state in zip(self.keywords, states, strict=True)
            ]
            return read, sum(read)


class KeywordsInAnswer:
    """What a set of keywords finds in one text: figures at once, hits when they are read."""

    def __init__(self, wanted: KeywordSet, text: str) -> None:
        self.wanted, self.text = wanted, text
        self.occurring, self.found = wanted.occurring(text)
        self.detail = DeferredMapping(self._made_detail)
        self.findings = DeferredSequence(lambda: tuple(map(keyword_finding, wanted.keywords, self.hits)))

    @property
    def share(self) -> float:
        """Keywords that occur / keywords."""
        return self.found / len(self.occurring)

    @cached_property
    def hits(self) -> tuple[KeywordHit | None, ...]:
        """The best hit of each keyword, in their order."""
        return tuple(find_keyword(keyword, self.text, self.wanted.matching) for keyword in self.wanted.keywords)

    def _made_detail(self) -> dict[str, Any]:
        """How many keywords were expected, found and seen in a negated clause, by what matching and analysis."""
        used = next((hit.analysis for hit in self.hits if hit is not None and hit.analysis), None)
        detail: dict[str, Any] = {
            "expected": len(self.occurring),
            "found": self.found,
            "negated": sum(hit is not None and hit.negated for hit in self.hits),
            "matching": self.wanted.matching,
        }
        return detail | ({"analysis": used} if used else {})

    def scored(self, value: float) -> Result:
        """A result with the findings, made when they are read; all results about one answer share them."""
        return Result(Status.SCORED, value, detail=self.detail, findings=self.findings)


def keyword_set(keywords: Keywords, matching: str) -> KeywordSet:
    """The compiled set; wordings of nothing but white space are left out, and keywords without any other.

    :raises UnknownName: for a matching other than ``tiers`` and ``substring``.
    """
    return _compiled(keywords, matching, normalise.kiwi_installed)


@lru_cache(maxsize=65_536)
def _compiled(keywords: Keywords, matching: str, analyser: bool) -> KeywordSet:
    """The set with or without an analyser, which decides what the first tier can settle."""
    if matching not in MATCHINGS:
        raise UnknownName("matching", matching, MATCHINGS)
    kept = (tuple(written for written in keyword if folded(written)) for keyword in keywords)
    return KeywordSet(tuple(keyword for keyword in kept if keyword), matching)


@lru_cache(maxsize=1)
def in_answer(wanted: KeywordSet, text: str) -> KeywordsInAnswer:
    """What the keywords find in a text; the last one is kept for the next metric that asks about the same answer."""
    return KeywordsInAnswer(wanted, text)


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
    wanted = keyword_set(keywords, settings.matching)
    return in_answer(wanted, answer.text) if wanted.keywords else None


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
    return found.scored(1.0 if found.found else 0.0) if found else Result.not_applicable("no_keywords")


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
    wanted = keyword_set(tuple(map(_wordings, nuggets)), settings.matching)
    found = in_answer(wanted, answer.text)
    vital = [occurs for nugget, occurs in zip(nuggets, found.occurring, strict=True) if nugget.vital]
    counts = {"vital": len(vital), "vital_found": sum(vital), "nuggets": "question" if question.nuggets else "profile"}
    return Result.scored(
        found.share,
        detail=DeferredMapping(lambda: {**found.detail, **counts}),
        findings=DeferredSequence(lambda: tuple(replace(finding, kind="nugget") for finding in found.findings)),
    )


def _wordings(nugget: Nugget) -> tuple[str, ...]:
    return (nugget.name, *nugget.alternatives)
