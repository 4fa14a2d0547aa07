"""Metrics of phrases: admitting not to know (source 001), negative detection (source 000, 2.1 C), and next steps
(source 004, phase 4), which are never scored. Refusals are read by ``refusals.py``; the phrases of denials, checks and
profiles are predicates that start a token and may go on with any ending.

"찾을 수 없" is found in "찾을수 없습니다"; "없습니다" neither in "문제없습니다" nor behind 문제가, 틀림 and others. A
phrase may hold gaps written "…": its parts then occur in this order within one clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from evaluation.core.metric_specs import Bilingual, Direction, RuleSettings, rule_metric
from evaluation.core.profile_settings import Condition
from evaluation.core.samples import (
    NEGATIVE_CATEGORY,
    AnswerSpec,
    CheckPhrases,
    ContextSpec,
    Finding,
    QuestionSpec,
    Result,
)
from evaluation.core.scales import YES_NO, ReviewForm, Scale, ScaleKind
from evaluation.metrics.keyword_coverage import MISSING, NEGATED, NEGATION_NOT_CONFIRMED
from evaluation.metrics.matching import find_keyword
from evaluation.metrics.negation import clause_span, holds_negation, is_negated, is_spared
from evaluation.metrics.normalise import (
    CLOSED_LIST,
    analysis,
    fold,
    fold_with_lines,
    folded,
    is_boundary,
    is_hangul,
    sentence_span,
    sentences,
)
from evaluation.metrics.prepared import prepare, quantities
from evaluation.metrics.refusals import FEW_SENTENCES, find_refusal, phrases_of_refusal

_GAP = "…"


@dataclass(frozen=True, slots=True)
class PhraseHit:
    """Where a phrase occurs in the original text. ``counts`` is false for a hit in a negated clause that a
    morphological analyser confirmed, unless the phrase holds a negation itself."""

    phrase: str
    start: int
    end: int
    negated: bool
    counts: bool


@lru_cache(maxsize=2048)
def _patterns(phrase: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_spaced(part)) for part in map(folded, phrase.split(_GAP)) if part)


def _spaced(part: str) -> str:
    """The part as a pattern in which a space beside Hangul may be missing."""
    pieces = []
    for place, character in enumerate(part):
        if character == " ":
            pieces.append(r"\s?" if is_hangul(part[place - 1]) or is_hangul(part[place + 1]) else r"\s")
        else:
            pieces.append(re.escape(character))
    return "".join(pieces)


def find_phrase(phrase: str, original: str) -> PhraseHit | None:
    """The first occurrence that counts, else the first negated one, else ``None``."""
    patterns = _patterns(phrase)
    if not patterns:
        return None
    prepared = prepare(original)
    text = prepared.lined
    negated: PhraseHit | None = None
    for match in patterns[0].finditer(text):
        end = _end_of_all(text, match, patterns[1:])
        if end is None:
            continue
        start, stop = prepared.folded.span(match.start(), end)
        if holds_negation(match[0]) or len(patterns) > 1 or not is_negated(text, match.start(), end):
            return PhraseHit(phrase, start, stop, negated=False, counts=True)
        negated = negated or PhraseHit(phrase, start, stop, negated=True, counts=analysis() == CLOSED_LIST)
    return negated


def _end_of_all(text: str, first: re.Match[str], others: tuple[re.Pattern[str], ...]) -> int | None:
    """Where the phrase ends whose first part was matched; ``None`` where a part is missing or stands in a word."""
    if not _stands(text, first):
        return None
    end, limit = first.end(), clause_span(text, first.end() - 1)[1]
    for pattern in others:
        following = next((m for m in pattern.finditer(text, end, limit) if _stands(text, m)), None)
        if following is None:
            return None
        end = following.end()
    return end


def _stands(text: str, match: re.Match[str]) -> bool:
    """Starts a token, is no part of a pattern such as 문제없습니다, and ends a token unless it ends in Hangul."""
    ends = is_hangul(text[match.end() - 1]) or is_boundary(text, match.end())
    return ends and is_boundary(text, match.start()) and not is_spared(text, match.start())


@rule_metric(
    name="dont_know",
    version=2,
    scale=YES_NO,
    title=Bilingual("Admits not knowing", "모름 인정"),
    formula=Bilingual(
        "1 if the answer refuses or admits not knowing and gives no figure or fact all the same: in an answer of at "
        "most two sentences or in the first statement of a longer one, or a bare n/a, none, null or unknown; else 0",
        "답변이 답을 거절하거나 모른다고 인정하고 수치나 사실을 덧붙이지 않으면 1, 아니면 0: 두 문장 이하의 답변 또는 "
        "긴 답변의 첫 진술에 그런 말이 있거나, 답변이 n/a, none, null, unknown뿐인 경우",
    ),
    source="001",
    direction=Direction.NONE,
    review_form=ReviewForm.YES_NO,
)
def dont_know(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0, for every answer. The profile's list ``dont_know`` takes the place of the built-in phrases."""
    own = settings.phrases.get("dont_know")
    span = find_refusal(answer.text, anywhere=False) if own is None else _first_of(own, answer.text)
    if span is None:
        return Result.scored(0.0)
    start, end = span
    return Result.scored(1.0, findings=(Finding("flag", answer.text[start:end], "dont_know", start=start, end=end),))


def _first_of(phrases: Iterable[str], text: str) -> tuple[int, int] | None:
    """The first of the phrases in a text of at most two sentences, or in the first sentence of a longer one."""
    spans = sentences(fold_with_lines(text))
    limit = len(text) if len(spans) <= FEW_SENTENCES else fold(text).span(*spans[0])[1]
    hits = (find_phrase(phrase, text[:limit]) for phrase in phrases)
    return min(((hit.start, hit.end) for hit in hits if hit is not None and hit.counts), default=None)


CORRECT_PREMISE = "should_correct_premise"

_DENIALS = (  # of what was asked about; refusals are read by ``refusals.py``
    "존재하지 않", "존재한 적", "해당하지 않", "제공되지 않", "제공하지 않", "포함되어 있지 않", "상장되지 않",
    "출시되지 않", "발표되지 않", "공개되지 않", "확정되지 않", "결정되지 않", "집계되지 않", "적이 없", "적 없",
    "아닙니다", "아니에요", "아니다", "없습니다", "없어요", "없다", "없는 것으로",
    "does not exist", "do not exist", "doesn't exist", "don't exist", "did not exist", "no such", "not found",
    "not available", "unavailable", "not provided", "not included", "not contain", "doesn't contain", "there is no",
    "there are no", "there was no", "there were no", "do not have", "don't have", "not been listed",
    "not been released", "not been announced", "not been published", "not yet been", "is not true", "isn't true",
    "is incorrect",
)  # fmt: skip
_DISCLAIMERS = (
    "보장되지 않", "보장되지는 않", "보장되지 못", "보장하지 않", "보장하지는 않", "보장하지 못", "보장할 수 없",
    "보장될 수 없", "보장해 드리지 않", "보장해 드리지 못", "보장해 드릴 수 없", "보장은 없", "보장이 없",
    "보장이 안 되", "보장이 안 됩", "보장은 안 되", "보장은 안 됩", "보장이 되지 않", "보장되는 것은 아니",
    "보장되는 것이 아니",
    "보장하는 것은 아니", "보장하는…아닙", "보장되는…아닙", "보장하는…아니", "보장되는…아니", "보장형…아닙",
    "보장형…아니", "보장 상품이 아닙", "보장 상품이 아니", "손실이 발생할 수 있", "손실을 볼 수 있",
    "손실이 있을 수 있", "손실 가능성이 있", "손실의 가능성이 있", "손실 위험이 있", "손실의 위험이 있",
    "손실이 생길 수 있", "손해를 볼 수 있", "손해가 날 수 있", "원금을 잃을 수 있", "보호 대상이 아닙",
    "보호 대상이 아니", "보호되지 않", "보호받지 못", "보호를 받지 못",
    "not guaranteed", "isn't guaranteed", "aren't guaranteed", "never guaranteed", "no guarantee", "no guarantees",
    "not guarantee", "doesn't guarantee", "don't guarantee", "can't guarantee", "cannot guarantee",
    "cannot be guaranteed", "may lose", "might lose", "could lose", "can lose", "may suffer losses",
    "is a risk of loss", "risk losing", "not insured", "not protected", "not covered by deposit insurance",
)  # fmt: skip

DEFAULT_CHECKS: Mapping[str, CheckPhrases] = MappingProxyType(
    {
        "should_not_hallucinate": CheckPhrases(any_of=_DENIALS),
        "should_not_fabricate_data": CheckPhrases(any_of=_DENIALS),
        "should_provide_accurate_disclaimer": CheckPhrases(any_of=_DISCLAIMERS),
        CORRECT_PREMISE: CheckPhrases(any_of=("미래에셋",)),  # of source 000; an import tells where it is looked for
    }
)

# What may not be made up: "찾을 수 없었습니다만, 약 5%로 추정됩니다" refuses and makes it up all the same.
_MADE_UP = frozenset({"should_not_hallucinate", "should_not_fabricate_data"})
_GUESSES = re.compile(
    r"추정|추측|짐작|예상|대략|아마|것으로 보[이입여]|[것듯] 같|약 ?(?=\d)|정도로|"
    r"\b(?:estimate[sd]?|estimated|approximately|roughly|probably|likely|presumably|my guess|i would guess)\b"
)
ESTIMATED = "estimated"

# Source 000, section 2.1 (C), for ``matching: substring``. Its "보장" + "아니" or "없" is read as 보장 and either.
SOURCE_CHECKS: Mapping[str, CheckPhrases] = MappingProxyType(
    {
        "should_not_hallucinate": CheckPhrases(any_of=("없", "찾을 수 없", "존재하지 않")),
        "should_correct_premise": CheckPhrases(any_of=("미래에셋",)),
        "should_not_fabricate_data": CheckPhrases(any_of=("없", "확인 불가")),
        "should_provide_accurate_disclaimer": CheckPhrases(all_of=("보장",), any_of=("아니", "없")),
    }
)


@rule_metric(
    name="negative_detection",
    version=3,
    scale=YES_NO,
    title=Bilingual("Negative detection", "부정 질문 탐지"),
    formula=Bilingual(
        "1 if the answer to a negative question refuses or corrects as its check asks, else 0; a refusal that goes on "
        "to give a figure or fact is none",
        "부정 질문에 대한 답변이 검증 유형이 요구하는 대로 거부하거나 교정하면 1, 아니면 0. 거부한 뒤 수치나 사실을 "
        "말하면 거부가 아님",
    ),
    source="000",
    inputs=("check",),
    review_form=ReviewForm.YES_NO,
)
def negative_detection(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0; not applicable (``not_negative``) to other questions; failed (``no_check``, ``unknown_check: NAME``,
    ``no_check_phrases``) where the question does not say what to look for."""
    if question.category.casefold() != NEGATIVE_CATEGORY and not question.check:
        return Result.not_applicable("not_negative")
    if not question.check:
        return Result.failed("no_check")
    origin, phrases = _phrases(question, settings)
    if phrases is None:
        return Result.failed(f"unknown_check: {question.check}")
    if not (phrases.all_of or phrases.any_of or phrases.none_of):
        return Result.failed("no_check_phrases")
    passed, findings = _judge(phrases, answer.text, settings, list_missing=origin != "default")
    if origin == "default" and question.check in _MADE_UP and settings.matching != "substring":
        findings = _refusals_and_denials(answer.text, findings)
        passed = any(finding.verdict != ESTIMATED for finding in findings)
    return Result.scored(
        1.0 if passed else 0.0,
        detail={"check": question.check, "phrases": origin, "matching": settings.matching},
        findings=findings,
    )


def _phrases(question: QuestionSpec, settings: RuleSettings) -> tuple[str, CheckPhrases | None]:
    """Where the phrases come from, and the phrases; ``None`` for a check that nobody defines."""
    if question.check_phrases is not None:
        return "question", question.check_phrases
    if question.check in settings.checks:
        return "profile", settings.checks[question.check]
    defaults = SOURCE_CHECKS if settings.matching == "substring" else DEFAULT_CHECKS
    return "default", defaults.get(question.check)


def _find(phrase: str, text: str, settings: RuleSettings) -> PhraseHit | None:
    if settings.matching != "substring":
        return find_phrase(phrase, text)
    start = text.find(phrase)
    return None if start < 0 else PhraseHit(phrase, start, start + len(phrase), negated=False, counts=True)


def _judge(
    phrases: CheckPhrases, text: str, settings: RuleSettings, *, list_missing: bool
) -> tuple[bool, tuple[Finding, ...]]:
    # A check that asks for a negation ("보장" with "않") names in all_of what is to be negated.
    topics_only = any(map(holds_negation, (*phrases.all_of, *phrases.any_of)))
    all_of, any_of, none_of = (
        [(phrase, _find(phrase, text, settings)) for phrase in group]
        for group in (phrases.all_of, phrases.any_of, phrases.none_of)
    )
    has_all = all(hit is not None and (hit.counts or topics_only) for _, hit in all_of)
    has_any = not any_of or any(hit is not None and hit.counts for _, hit in any_of)
    has_none = not any(hit is not None and hit.counts for _, hit in none_of)
    findings = (
        *_findings("all_of", all_of, list_missing=True),
        *_findings("any_of", any_of, list_missing=list_missing and not has_any),
        *_findings("none_of", none_of, list_missing=False),
    )
    return has_all and has_any and has_none, findings


def _refusals_and_denials(text: str, denials: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The refusal of an answer, if it is one, with what denies outside of phrases of refusal: "no information, but 5%"
    denies nothing."""
    span = find_refusal(text)
    refusal = () if span is None else (Finding("keyword", text[slice(*span)], "any_of", start=span[0], end=span[1]),)
    refused = phrases_of_refusal(text)
    alone = (
        one for one in denials if not any(start < (one.end or 0) and (one.start or 0) < end for start, end in refused)
    )
    return (*refusal, *(_told_all_the_same(text, one) for one in alone))


def _told_all_the_same(text: str, refusal: Finding) -> Finding:
    """The finding of a refusal; where its sentence goes on to guess at a figure, with that verdict."""
    behind = fold_with_lines(text[refusal.end :])
    rest = behind[: sentence_span(behind, 0)[1]] if behind else ""
    told = any(not number.is_code for number in quantities(rest))
    return replace(refusal, verdict=ESTIMATED) if told and _GUESSES.search(rest) else refusal


def _findings(group: str, hits: list[tuple[str, PhraseHit | None]], *, list_missing: bool) -> Iterator[Finding]:
    """The verdict is the list the phrase stands in, ``negated`` or ``missing``."""
    for phrase, hit in hits:
        if hit is None:
            if list_missing:
                yield Finding("keyword", phrase, MISSING, reason=group)
        elif not hit.counts:
            yield Finding("keyword", phrase, NEGATED, start=hit.start, end=hit.end, reason=group)
        else:
            reason = NEGATION_NOT_CONFIRMED if hit.negated else ""
            yield Finding("keyword", phrase, group, start=hit.start, end=hit.end, reason=reason)


URGENCIES = ("low", "medium", "high")
_TAG_FIELDS = ("tags", "matched_tags")


@rule_metric(
    name="next_steps",
    scale=Scale(ScaleKind.CLASS, labels=URGENCIES),
    title=Bilingual("Next steps", "후속 안내"),
    formula=Bilingual(
        "urgency, suggested questions and actions by the profile's rules on words and tags of passages; "
        "reported, never scored",
        "프로필 규칙(단어와 청크 태그)에 따른 긴급도, 후속 질문, 조치; 보고만 하며 점수에 넣지 않음",
    ),
    source="004",
    direction=Direction.NONE,
    review_form=ReviewForm.NONE,
)
def next_steps(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """The urgency as label, the proposals as findings; not applicable (``no_next_steps``) without rules for them."""
    rules = settings.next_steps
    if rules is None:
        return Result.not_applicable("no_next_steps")
    told, tags = _told(answer.text), _tags(answer.contexts or ())
    korean = any(map(is_hangul, question.text))
    steps = (step for step in rules.steps if _holds(step, question.text, told, tags))
    proposed = [(step.ko if korean else step.en, step.kind) for step in steps]
    levels = [urgency.level for urgency in rules.urgency if _holds(urgency, question.text, told, tags)]
    return Result.labelled(
        max(levels, key=URGENCIES.index, default=URGENCIES[0]),
        detail={
            "suggested_queries": [text for text, kind in proposed if kind == "suggestion"],
            "action_items": [text for text, kind in proposed if kind == "action"],
        },
        findings=tuple(Finding("next_step", text, kind) for text, kind in proposed),
    )


def _holds(condition: Condition, question: str, told: str, tags: frozenset[str]) -> bool:
    return (
        (not condition.question or _mentions(question, condition.question))
        and (not condition.answer_lacks or not _mentions(told, condition.answer_lacks))
        and (not condition.tags or not tags.isdisjoint(map(_tag, condition.tags)))
    )


def _mentions(text: str, words: Iterable[str]) -> bool:
    return any(find_keyword((word,), text) is not None for word in words)


def _told(answer: str) -> str:
    """The sentences that tell something: "배출 위치를 모릅니다" says nothing about where."""
    lined = fold_with_lines(answer)
    parts = (lined[start:end] for start, end in sentences(lined))
    return " ".join(part for part in parts if find_refusal(part) is None)


def _tags(contexts: Iterable[ContextSpec]) -> frozenset[str]:
    found: set[str] = set()
    for context in contexts:
        for field in _TAG_FIELDS:
            value = context.metadata.get(field)
            if isinstance(value, str):
                found.update(map(_tag, value.split(",")))
            elif isinstance(value, list | tuple):
                found.update(_tag(str(tag)) for tag in value)
    return frozenset(found)


def _tag(text: str) -> str:
    return folded(text).replace(" ", "_")
