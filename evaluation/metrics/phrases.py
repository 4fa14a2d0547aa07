"""Phrase metrics: admitting ignorance (RAGAS), negative detection (graphrag evaluation, 2.1 C), and next steps (phases,
phase 4), which are never scored. ``refusals.py`` reads refusals. Phrases of denials, checks and profiles start at a
token and may continue with any ending.

"찾을 수 없" matches "찾을수 없습니다"; "없습니다" matches neither in "문제없습니다" nor after 문제가, 틀림 and others.
A phrase may contain gaps written "…": its parts then occur in this order within one clause."""

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
from evaluation.metrics.negation import clause_span, holds_negation, is_false_negation, is_negated
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
from evaluation.metrics.prepared_text import prepare, quantities
from evaluation.metrics.refusals import SHORT_ANSWER_SENTENCES, find_refusal, phrases_of_refusal

_GAP = "…"


@dataclass(frozen=True, slots=True)
class PhraseHit:
    """Occurrence of a phrase in the original text. ``counts`` is false for a hit in a negated clause confirmed by a
    morphological analyzer, unless the phrase itself contains a negation."""

    phrase: str
    start: int
    end: int
    negated: bool
    counts: bool


@lru_cache(maxsize=2048)
def _patterns(phrase: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_spacing_pattern(part)) for part in map(folded, phrase.split(_GAP)) if part)


def _spacing_pattern(part: str) -> str:
    """Pattern in which spaces beside Hangul are optional."""
    pieces = []
    for place, character in enumerate(part):
        if character == " ":
            pieces.append(r"\s?" if is_hangul(part[place - 1]) or is_hangul(part[place + 1]) else r"\s")
        else:
            pieces.append(re.escape(character))
    return "".join(pieces)


def find_phrase(phrase: str, original: str) -> PhraseHit | None:
    """First occurrence that counts, else the first negated one, else ``None``."""
    patterns = _patterns(phrase)
    if not patterns:
        return None
    prepared = prepare(original)
    text = prepared.lined
    negated: PhraseHit | None = None
    for match in patterns[0].finditer(text):
        end = _phrase_end(text, match, patterns[1:])
        if end is None:
            continue
        start, stop = prepared.folded.span(match.start(), end)
        if holds_negation(match[0]) or len(patterns) > 1 or not is_negated(text, match.start(), end):
            return PhraseHit(phrase, start, stop, negated=False, counts=True)
        negated = negated or PhraseHit(phrase, start, stop, negated=True, counts=analysis() == CLOSED_LIST)
    return negated


def _phrase_end(text: str, first: re.Match[str], later_parts: tuple[re.Pattern[str], ...]) -> int | None:
    """End of the phrase whose first part matched; ``None`` if a part is missing or inside a word."""
    if not _is_standalone(text, first):
        return None
    end, limit = first.end(), clause_span(text, first.end() - 1)[1]
    for pattern in later_parts:
        following = next((m for m in pattern.finditer(text, end, limit) if _is_standalone(text, m)), None)
        if following is None:
            return None
        end = following.end()
    return end


def _is_standalone(text: str, match: re.Match[str]) -> bool:
    """Return whether the match starts a token, ends one (unless it ends in Hangul), and is not part of 문제없습니다 and
    the
    like."""
    ends_token = is_hangul(text[match.end() - 1]) or is_boundary(text, match.end())
    return ends_token and is_boundary(text, match.start()) and not is_false_negation(text, match.start())


@rule_metric(
    name="dont_know",
    version=2,
    scale=YES_NO,
    title=Bilingual("Admits not knowing", "모름 인정"),
    formula=Bilingual(
        "1 if the answer refuses or admits not knowing, and gives no figure or fact; else 0. It must do so within two "
        "sentences, in the first statement of a longer answer, or consist of n/a, none, null or unknown",
        "답변이 답을 거절하거나 모른다고 인정하고 수치나 사실을 덧붙이지 않으면 1, 아니면 0: 두 문장 이하의 답변 또는 "
        "긴 답변의 첫 진술에 그런 말이 있거나, 답변이 n/a, none, null, unknown뿐인 경우",
    ),
    source="ragas",
    direction=Direction.NONE,
    review_form=ReviewForm.YES_NO,
)
def dont_know(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0, for every answer. The profile's list ``dont_know`` replaces the built-in phrases."""
    profile_phrases = settings.phrases.get("dont_know")
    span = (
        find_refusal(answer.text, anywhere=False)
        if profile_phrases is None
        else _first_hit(profile_phrases, answer.text)
    )
    if span is None:
        return Result.scored(0.0)
    start, end = span
    return Result.scored(1.0, findings=(Finding("flag", answer.text[start:end], "dont_know", start=start, end=end),))


def _first_hit(phrases: Iterable[str], text: str) -> tuple[int, int] | None:
    """First of the phrases in a text of at most two sentences, or in the first sentence of a longer one."""
    spans = sentences(fold_with_lines(text))
    limit = len(text) if len(spans) <= SHORT_ANSWER_SENTENCES else fold(text).span(*spans[0])[1]
    hits = (find_phrase(phrase, text[:limit]) for phrase in phrases)
    return min(((hit.start, hit.end) for hit in hits if hit is not None and hit.counts), default=None)


CORRECT_PREMISE = "should_correct_premise"

# Of the subject of the question; ``refusals.py`` reads refusals.
_DENIALS = (
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
        # Of graphrag evaluation; an import sets where it applies.
        CORRECT_PREMISE: CheckPhrases(any_of=("미래에셋",)),
    }
)

# Checks against fabrication: "찾을 수 없었습니다만, 약 5%로 추정됩니다" refuses and fabricates anyway.
_FABRICATION_CHECKS = frozenset({"should_not_hallucinate", "should_not_fabricate_data"})
_GUESSES = re.compile(
    r"추정|추측|짐작|예상|대략|아마|것으로 보[이입여]|[것듯] 같|약 ?(?=\d)|정도로|"
    r"\b(?:estimate[sd]?|estimated|approximately|roughly|probably|likely|presumably|my guess|i would guess)\b"
)
ESTIMATED = "estimated"

# Graphrag evaluation, section 2.1 (C), for ``matching: substring``: its "보장" + "아니" or "없" means 보장 and either.
GRAPHRAG_CHECKS: Mapping[str, CheckPhrases] = MappingProxyType(
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
        "1 if the answer to a negative question refuses or corrects as its check requires, else 0; a refusal followed "
        "by a figure or fact does not count",
        "부정 질문에 대한 답변이 검증 유형이 요구하는 대로 거부하거나 교정하면 1, 아니면 0. 거부한 뒤 수치나 사실을 "
        "말하면 거부가 아님",
    ),
    source="graphrag",
    inputs=("check",),
    review_form=ReviewForm.YES_NO,
)
def negative_detection(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0. Not applicable (``not_negative``) to other questions. Fails (``no_check``, ``unknown_check: NAME``,
    ``no_check_phrases``) if the question does not define its check."""
    if question.category.casefold() != NEGATIVE_CATEGORY and not question.check:
        return Result.not_applicable("not_negative")
    if not question.check:
        return Result.failed("no_check")
    origin, phrases = _phrases(question, settings)
    if phrases is None:
        return Result.failed(f"unknown_check: {question.check}")
    if not (phrases.all_of or phrases.any_of or phrases.none_of):
        return Result.failed("no_check_phrases")
    passed, findings = _apply_check(phrases, answer.text, settings, list_missing=origin != "default")
    if origin == "default" and question.check in _FABRICATION_CHECKS and settings.matching != "substring":
        findings = _refusals_and_denials(answer.text, findings)
        passed = any(finding.verdict != ESTIMATED for finding in findings)
    return Result.scored(
        1.0 if passed else 0.0,
        detail={"check": question.check, "phrases": origin, "matching": settings.matching},
        findings=findings,
    )


def _phrases(question: QuestionSpec, settings: RuleSettings) -> tuple[str, CheckPhrases | None]:
    """Origin of the phrases, and the phrases; ``None`` for an undefined check."""
    if question.check_phrases is not None:
        return "question", question.check_phrases
    if question.check in settings.checks:
        return "profile", settings.checks[question.check]
    defaults = GRAPHRAG_CHECKS if settings.matching == "substring" else DEFAULT_CHECKS
    return "default", defaults.get(question.check)


def _find(phrase: str, text: str, settings: RuleSettings) -> PhraseHit | None:
    if settings.matching != "substring":
        return find_phrase(phrase, text)
    start = text.find(phrase)
    return None if start < 0 else PhraseHit(phrase, start, start + len(phrase), negated=False, counts=True)


def _apply_check(
    phrases: CheckPhrases, text: str, settings: RuleSettings, *, list_missing: bool
) -> tuple[bool, tuple[Finding, ...]]:
    # A check for a negation ("보장" with "않") lists the negated subject in all_of.
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
    """Refusal of the answer, if any, and denials outside of refusal phrases: "no information, but 5%" denies
    nothing."""
    span = find_refusal(text)
    refusal = () if span is None else (Finding("keyword", text[slice(*span)], "any_of", start=span[0], end=span[1]),)
    refusal_spans = phrases_of_refusal(text)
    outside = (
        denial
        for denial in denials
        if not any(start < (denial.end or 0) and (denial.start or 0) < end for start, end in refusal_spans)
    )
    return (*refusal, *(_mark_estimate(text, denial) for denial in outside))


def _mark_estimate(text: str, refusal: Finding) -> Finding:
    """Mark the refusal as estimated if its sentence continues with a guessed figure."""
    following = fold_with_lines(text[refusal.end :])
    sentence_rest = following[: sentence_span(following, 0)[1]] if following else ""
    has_figure = any(not number.is_code for number in quantities(sentence_rest))
    return replace(refusal, verdict=ESTIMATED) if has_figure and _GUESSES.search(sentence_rest) else refusal


def _findings(group: str, hits: list[tuple[str, PhraseHit | None]], *, list_missing: bool) -> Iterator[Finding]:
    """Findings of phrases; the verdict is the phrase's list, ``negated`` or ``missing``."""
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
    source="phases",
    direction=Direction.NONE,
    review_form=ReviewForm.NONE,
)
def next_steps(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Urgency as label, proposals as findings; not applicable (``no_next_steps``) without rules."""
    rules = settings.next_steps
    if rules is None:
        return Result.not_applicable("no_next_steps")
    answer_text, tags = _informative_text(answer.text), _tags(answer.contexts or ())
    korean = any(map(is_hangul, question.text))
    steps = (step for step in rules.steps if _is_met(step, question.text, answer_text, tags))
    proposed = [(step.ko if korean else step.en, step.kind) for step in steps]
    levels = [urgency.level for urgency in rules.urgency if _is_met(urgency, question.text, answer_text, tags)]
    return Result.labelled(
        max(levels, key=URGENCIES.index, default=URGENCIES[0]),
        detail={
            "suggested_queries": [text for text, kind in proposed if kind == "suggestion"],
            "action_items": [text for text, kind in proposed if kind == "action"],
        },
        findings=tuple(Finding("next_step", text, kind) for text, kind in proposed),
    )


def _is_met(condition: Condition, question: str, answer_text: str, tags: frozenset[str]) -> bool:
    return (
        (not condition.question or _mentions(question, condition.question))
        and (not condition.answer_lacks or not _mentions(answer_text, condition.answer_lacks))
        and (not condition.tags or not tags.isdisjoint(map(_tag, condition.tags)))
    )


def _mentions(text: str, words: Iterable[str]) -> bool:
    return any(find_keyword((word,), text) is not None for word in words)


def _informative_text(answer: str) -> str:
    """Sentences without refusals: "배출 위치를 모릅니다" gives no location."""
    folded_lines = fold_with_lines(answer)
    parts = (folded_lines[start:end] for start, end in sentences(folded_lines))
    return " ".join(part for part in parts if find_refusal(part) is None)


def _tags(contexts: Iterable[ContextSpec]) -> frozenset[str]:
    tags: set[str] = set()
    for context in contexts:
        for field in _TAG_FIELDS:
            value = context.metadata.get(field)
            if isinstance(value, str):
                tags.update(map(_tag, value.split(",")))
            elif isinstance(value, list | tuple):
                tags.update(_tag(str(tag)) for tag in value)
    return frozenset(tags)


def _tag(text: str) -> str:
    return folded(text).replace(" ", "_")
