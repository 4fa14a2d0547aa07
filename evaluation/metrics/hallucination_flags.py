"""Hallucination flags (source 003): phone numbers from nowhere, wrong institutions, and avoidance instead of an answer.
Each flag is a finding with its text and place, so that a person can confirm or reject it.
"""

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
from evaluation.metrics.prepared import prepare

_LEAST_WEIGHT = 5.0  # syllables of the words that one sentence shares with one passage; a letter is half a syllable
_LEAST_SHARED_DIGITS = 3  # of a bare number: 2 may be the number of a list
_GENERIC_LIST = (
    "학교 대학 대학교 기관 회사 홈페이지 담당 담당자 부서 관련 해당 규정 내용 사항 자세 자세한 문의 확인 참고 안내 "
    "방법 website homepage details information please contact check university institution department office page"
)
_GENERIC = frozenset(_GENERIC_LIST.split())


def passes_on(sentences: Sequence[str], question: str, passages: Sequence[str]) -> bool:
    """Whether any of the sentences holds a fact of a passage: a number or article, or content words that weigh at
    least five syllables together, none of them in the question already and none that fits every answer."""
    asked_values, asked_words = _values(question), frozenset(content_tokens(question)) | _GENERIC
    given = [(_values(sentence), frozenset(content_tokens(sentence))) for sentence in sentences]
    for passage in passages:
        values, words = _values(passage) - asked_values, frozenset(content_tokens(passage)) - asked_words
        if any(values & said or sum(map(_weight, words & spoken)) >= _LEAST_WEIGHT for said, spoken in given):
            return True
    return False


def _values(text: str) -> frozenset[str]:
    """The numbers and articles of a text that say something by themselves."""
    return frozenset(
        quantity.canonical
        for quantity in prepare(text).quantities
        if quantity.unit or quantity.is_counted or len(quantity.canonical) >= _LEAST_SHARED_DIGITS
    )


def _weight(word: str) -> float:
    return len(word) if is_hangul(word[0]) else len(word) / 2


FLAG = "flag"  # the kind of every finding; the verdict is one of the next three
UNKNOWN_PHONE, FORBIDDEN_NAME, AVOIDANCE = "unknown_phone", "forbidden_name", "avoidance"
FORBIDDEN_NAMES, OWN_NAMES, AVOIDANCES = "forbidden_names", "own_names", "avoidance"  # the profile's lists of phrases
AVOIDANCE_PHRASES = (
    "대학마다 다릅니다", "대학마다 다를 수 있습니다", "학교마다 다릅니다", "학교마다 다를 수 있습니다",
    "기관마다 다릅니다", "기관마다 다를 수 있습니다", "상황에 따라 다릅니다", "경우에 따라 다릅니다",
    "확인해 주세요", "확인하세요", "확인해 보세요", "확인하시기 바랍니다", "확인해 주시기 바랍니다",
    "문의해 주세요", "문의하세요", "문의해 보세요", "문의하시기 바랍니다", "문의해 주시기 바랍니다",
    "참고하세요", "참고해 주세요", "참고하시기 바랍니다", "varies by university", "varies from university",
    "depends on the university", "depends on the institution", "depends on your situation", "please check with",
    "please check the", "please contact", "please consult", "please refer to",
)  # fmt: skip
_SCHOOL = "대"  # 서울대 is 서울대학교 too


@rule_metric(
    name="hallucination_flags",
    scale=YES_NO,
    title=Bilingual("Hallucination flags", "환각 표시"),
    formula=Bilingual(
        "1 if anything is flagged, else 0: a phone number in no source and not in the question; a name the "
        "profile forbids, unless the question names it and the answer negates it or names its own institution; "
        "a phrase of avoidance in an answer without a fact from the sources",
        "표시된 것이 있으면 1, 없으면 0: 출처와 질문 어디에도 없는 전화번호; 프로필이 금지한 기관명(질문에 나온 "
        "이름을 답변이 부정하거나 자기 기관을 밝히면 제외); 출처의 사실 없이 회피하는 표현",
    ),
    source="003",
    direction=Direction.LOWER,
    inputs=("contexts",),
    review_form=ReviewForm.YES_NO,
)
def hallucination_flags(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0 with the flags as findings. Phone numbers and avoidance need sources: where the system does not retrieve
    only names are looked at, and without names to forbid the metric is not applicable (``does_not_retrieve``)."""
    names = settings.phrases.get(FORBIDDEN_NAMES, ())
    if answer.contexts is None and not names:
        return Result.not_applicable("does_not_retrieve")
    asked = " ".join((question.text, *question.history))
    flags = list(_forbidden(names, asked, answer.text, settings.phrases.get(OWN_NAMES, ())))
    if answer.contexts is not None:
        flags += _unknown_phones(asked, answer.text, answer.contexts)
        flags += _avoidance(asked, answer, settings.phrases.get(AVOIDANCES, AVOIDANCE_PHRASES))
    verdicts = [flag.verdict for flag in flags]
    return Result.scored(
        1.0 if flags else 0.0,
        detail={verdict: verdicts.count(verdict) for verdict in (UNKNOWN_PHONE, FORBIDDEN_NAME, AVOIDANCE)}
        | {"checked": "all" if answer.contexts is not None else "names"},
        findings=tuple(flags),
    )


def _unknown_phones(asked: str, answer: str, contexts: tuple[ContextSpec, ...]) -> Iterator[Finding]:
    view = fold(answer)
    found = phones(view.text)
    if not found:
        return
    texts = (folded(asked), *(folded(_all_of(context)) for context in contexts))
    known = frozenset(number for text in texts for phone in phones(text) for number in phone.numbers)
    for phone in found:
        if unknown := [number for number in phone.numbers if number not in known]:
            start, end = view.span(phone.start, phone.end)
            yield Finding(FLAG, answer[start:end], UNKNOWN_PHONE, start=start, end=end, reason=", ".join(unknown))


def _all_of(context: ContextSpec) -> str:
    """Text, source and fields of a passage: numbers often stand in a field of their own."""
    fields = (str(value) for value in context.metadata.values() if isinstance(value, str | int))
    return " \n ".join((context.text, context.source, *fields))


def _forbidden(names: tuple[str, ...], asked: str, answer: str, own: tuple[str, ...]) -> Iterator[Finding]:
    for name in names:
        wordings = (name, f"{name}학교") if name.endswith(_SCHOOL) else (name,)
        hit = _named(wordings, answer)
        if hit is None or (_named(wordings, asked) and (hit.negated or any(_named((o,), answer) for o in own))):
            continue
        yield Finding(FLAG, answer[hit.start : hit.end], FORBIDDEN_NAME, start=hit.start, end=hit.end)


def _named(wordings: tuple[str, ...], text: str) -> KeywordHit | None:
    """The name itself, not a longer word that begins with it (서울대공원)."""
    hits = (find_keyword((wording,), text) for wording in wordings)
    found = [hit for hit in hits if hit is not None and hit.tier is not Tier.COMPOUND]
    return min(found, key=lambda hit: (hit.negated, hit.start), default=None)


def _avoidance(asked: str, answer: AnswerSpec, phrases: tuple[str, ...]) -> Iterator[Finding]:
    if not holds_hangul(answer.text):
        phrases = _that_need_no_hangul(phrases)
    found = (find_keyword((phrase,), answer.text) for phrase in phrases)
    hits = [hit for hit in found if hit is not None and hit.counts]
    if not hits:
        return
    spans = sorted({(hit.start, hit.end) for hit in hits})
    passages = [context.text for context in answer.contexts or ()]
    if passes_on(_statements(answer.text, spans), asked, passages):
        return
    for start, end in spans:
        yield Finding(FLAG, answer.text[start:end], AVOIDANCE, start=start, end=end)


@lru_cache(maxsize=64)
def _that_need_no_hangul(phrases: tuple[str, ...]) -> tuple[str, ...]:
    """The phrases that could stand in a text without Hangul: with letters or digits, or with a number in words."""
    compiled = ((phrase, compile_keyword(phrase)) for phrase in phrases)
    return tuple(phrase for phrase, keyword in compiled if keyword.canonical or not keyword.is_hangul)


def _statements(text: str, left_out: list[tuple[int, int]]) -> list[str]:
    """The folded sentences of a text without the spans that are to be left out."""
    characters = list(text)
    for start, end in left_out:
        characters[start:end] = " " * (end - start)
    lined = fold_with_lines("".join(characters))
    return [lined[start:end] for start, end in sentences(lined)]
