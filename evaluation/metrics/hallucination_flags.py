"""Hallucination flags of regulation evaluation: phone numbers in no source, wrong institutions, and avoidance instead
of an answer. Each flag is a finding with its span, so that a person can confirm or reject it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from evaluation.core.metric_specs import Bilingual, Direction, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import YES_NO, ReviewForm
from evaluation.metrics.matching import KeywordHit, Tier, compile_keyword, find_keyword
from evaluation.metrics.normalise import (
    content_tokens,
    fold,
    fold_with_lines,
    folded,
    holds_hangul,
    is_hangul,
    sentences,
)
from evaluation.metrics.phones import phones
from evaluation.metrics.prepared_text import prepare

# Syllables of the words that a sentence shares with a passage; a letter counts half.
_MIN_WEIGHT = 5.0
# Of a bare number; shorter ones may be list numbers.
_MIN_SHARED_DIGITS = 3
_GENERIC_LIST = (
    "학교 대학 대학교 기관 회사 홈페이지 담당 담당자 부서 관련 해당 규정 내용 사항 자세 자세한 문의 확인 참고 안내 "
    "방법 website homepage details information please contact check university institution department office page"
)
_GENERIC = frozenset(_GENERIC_LIST.split())


def states_source_fact(sentences: Sequence[str], question: str, passages: Sequence[str]) -> bool:
    """Return whether a sentence states a fact of a passage: a shared number or article, or content words of at least
    five syllables. Words of the question and generic words do not count."""
    asked_values, asked_words = _values(question), frozenset(content_tokens(question)) | _GENERIC
    sentence_facts = [(_values(sentence), frozenset(content_tokens(sentence))) for sentence in sentences]
    for passage in passages:
        values, words = _values(passage) - asked_values, frozenset(content_tokens(passage)) - asked_words
        if any(
            values & sentence_values or sum(map(_weight, words & sentence_words)) >= _MIN_WEIGHT
            for sentence_values, sentence_words in sentence_facts
        ):
            return True
    return False


def _values(text: str) -> frozenset[str]:
    """Numbers and articles of a text that are informative by themselves."""
    return frozenset(
        quantity.canonical
        for quantity in prepare(text).quantities
        if quantity.unit or quantity.is_counted or len(quantity.canonical) >= _MIN_SHARED_DIGITS
    )


def _weight(word: str) -> float:
    return len(word) if is_hangul(word[0]) else len(word) / 2


# Kind of every finding; the verdict is one of the next three.
FLAG = "flag"
UNKNOWN_PHONE, FORBIDDEN_NAME, AVOIDANCE = "unknown_phone", "forbidden_name", "avoidance"
# The profile's lists of phrases.
FORBIDDEN_NAMES, OWN_NAMES, AVOIDANCES = "forbidden_names", "own_names", "avoidance"
AVOIDANCE_PHRASES = (
    "대학마다 다릅니다", "대학마다 다를 수 있습니다", "학교마다 다릅니다", "학교마다 다를 수 있습니다",
    "기관마다 다릅니다", "기관마다 다를 수 있습니다", "상황에 따라 다릅니다", "경우에 따라 다릅니다",
    "확인해 주세요", "확인하세요", "확인해 보세요", "확인하시기 바랍니다", "확인해 주시기 바랍니다",
    "문의해 주세요", "문의하세요", "문의해 보세요", "문의하시기 바랍니다", "문의해 주시기 바랍니다",
    "참고하세요", "참고해 주세요", "참고하시기 바랍니다", "varies by university", "varies from university",
    "depends on the university", "depends on the institution", "depends on your situation", "please check with",
    "please check the", "please contact", "please consult", "please refer to",
)  # fmt: skip
# 서울대 also means 서울대학교.
_SCHOOL_SUFFIX = "대"


@rule_metric(
    name="hallucination_flags",
    scale=YES_NO,
    title=Bilingual("Hallucination flags", "환각 표시"),
    formula=Bilingual(
        "1 if anything is flagged, else 0: a phone number that is neither in a source nor in the question; a name that "
        "the profile forbids, unless the question names it and the answer denies it or names its own institution; "
        "an evasive phrase in an answer without a fact from the sources",
        "표시된 것이 있으면 1, 없으면 0: 출처와 질문 어디에도 없는 전화번호; 프로필이 금지한 기관명(질문에 나온 "
        "이름을 답변이 부정하거나 자기 기관을 밝히면 제외); 출처의 사실 없이 회피하는 표현",
    ),
    source="regulation",
    direction=Direction.LOWER,
    inputs=("contexts",),
    review_form=ReviewForm.YES_NO,
)
def hallucination_flags(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0, with the flags as findings. Phone numbers and avoidance need sources. If the system does not retrieve,
    only names are checked; without forbidden names the metric is then not applicable (``does_not_retrieve``)."""
    names = settings.phrases.get(FORBIDDEN_NAMES, ())
    if answer.contexts is None and not names:
        return Result.not_applicable("does_not_retrieve")
    question_text = " ".join((question.text, *question.history))
    flags = list(_forbidden_names(names, question_text, answer.text, settings.phrases.get(OWN_NAMES, ())))
    if answer.contexts is not None:
        flags += _unknown_phones(question_text, answer.text, answer.contexts)
        flags += _avoidance(question_text, answer, settings.phrases.get(AVOIDANCES, AVOIDANCE_PHRASES))
    verdicts = [flag.verdict for flag in flags]
    return Result.scored(
        1.0 if flags else 0.0,
        detail={verdict: verdicts.count(verdict) for verdict in (UNKNOWN_PHONE, FORBIDDEN_NAME, AVOIDANCE)}
        | {"checked": "all" if answer.contexts is not None else "names"},
        findings=tuple(flags),
    )


def _unknown_phones(question_text: str, answer: str, contexts: tuple[ContextSpec, ...]) -> Iterator[Finding]:
    view = fold(answer)
    answer_phones = phones(view.text)
    if not answer_phones:
        return
    texts = (folded(question_text), *(folded(_searchable_text(context)) for context in contexts))
    known_numbers = frozenset(number for text in texts for phone in phones(text) for number in phone.numbers)
    for phone in answer_phones:
        if unknown := [number for number in phone.numbers if number not in known_numbers]:
            start, end = view.span(phone.start, phone.end)
            yield Finding(FLAG, answer[start:end], UNKNOWN_PHONE, start=start, end=end, reason=", ".join(unknown))


def _searchable_text(context: ContextSpec) -> str:
    """Text, source and fields of a passage; numbers often have a field of their own."""
    fields = (str(value) for value in context.metadata.values() if isinstance(value, str | int))
    return " \n ".join((context.text, context.source, *fields))


def _forbidden_names(
    names: tuple[str, ...], question_text: str, answer: str, own_names: tuple[str, ...]
) -> Iterator[Finding]:
    for name in names:
        wordings = (name, f"{name}학교") if name.endswith(_SCHOOL_SUFFIX) else (name,)
        hit = _find_name(wordings, answer)
        if hit is None or (
            _find_name(wordings, question_text)
            and (hit.negated or any(_find_name((own_name,), answer) for own_name in own_names))
        ):
            continue
        yield Finding(FLAG, answer[hit.start : hit.end], FORBIDDEN_NAME, start=hit.start, end=hit.end)


def _find_name(wordings: tuple[str, ...], text: str) -> KeywordHit | None:
    """Hit of the name itself, not of a longer word that begins with it (서울대공원)."""
    hits = (find_keyword((wording,), text) for wording in wordings)
    whole_hits = [hit for hit in hits if hit is not None and hit.tier is not Tier.COMPOUND]
    return min(whole_hits, key=lambda hit: (hit.negated, hit.start), default=None)


def _avoidance(question_text: str, answer: AnswerSpec, phrases: tuple[str, ...]) -> Iterator[Finding]:
    if not holds_hangul(answer.text):
        phrases = _without_hangul(phrases)
    matches = (find_keyword((phrase,), answer.text) for phrase in phrases)
    hits = [hit for hit in matches if hit is not None and hit.counts]
    if not hits:
        return
    spans = sorted({(hit.start, hit.end) for hit in hits})
    passages = [context.text for context in answer.contexts or ()]
    if states_source_fact(_statements(answer.text, spans), question_text, passages):
        return
    for start, end in spans:
        yield Finding(FLAG, answer.text[start:end], AVOIDANCE, start=start, end=end)


@lru_cache(maxsize=64)
def _without_hangul(phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Phrases that can occur in a text without Hangul: with letters, digits or a number in words."""
    compiled = ((phrase, compile_keyword(phrase)) for phrase in phrases)
    return tuple(phrase for phrase, keyword in compiled if keyword.canonical or not keyword.is_hangul)


def _statements(text: str, excluded: list[tuple[int, int]]) -> list[str]:
    """Folded sentences of a text without the excluded spans."""
    characters = list(text)
    for start, end in excluded:
        characters[start:end] = " " * (end - start)
    folded_lines = fold_with_lines("".join(characters))
    return [folded_lines[start:end] for start, end in sentences(folded_lines)]
