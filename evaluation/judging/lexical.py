"""The words of the offline baseline: content words of Korean and English text and how far texts share them, predicates
that say that something is not known or not there, and grades from 1 to 5 made of both. Heuristics, not metrics:
keywords are matched by ``metrics/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import pairwise

from evaluation.core.metric_specs import Bilingual
from evaluation.core.samples import NEGATIVE_CATEGORY, AnswerSpec, QuestionSpec
from evaluation.judging.calls import JudgeCall
from evaluation.judging.prose import sentences
from evaluation.metrics.normalise import FUNCTION_WORDS, folded

_ALPHANUMERIC = r"[^\W_가-힣]"  # a Latin letter or a digit: 200TR is one run, not a number
_RUN = re.compile(rf"(?<!{_ALPHANUMERIC})\d+(?:[.,]\d+)*(?!{_ALPHANUMERIC})|[가-힣]+|{_ALPHANUMERIC}+")
_HALF_FOUND = 0.5

_ENDING_LIST = (
    "입니다 합니다 됩니다 습니다 했습니다 되었습니다 하였습니다 이다 한다 된다 하는 되는 하여 "
    "하고 되고 하며 되며 하면 되면 하지 되지 하지만 되지만 할 될 이라고 이라는 이며 이고 이나 "
    "으로부터 에서는 에서도 에게서 까지는 부터는 에서 에게 으로 까지 부터 보다 처럼 만큼 마다 "
    "이란 에는 에도 로는 은 는 이 가 을 를 의 에 로 와 과 도 만 며"
)
# Longest first, so that 에서는 goes before 는.
_ENDINGS = tuple(sorted(_ENDING_LIST.split(), key=len, reverse=True))
_FUNCTION_VERBS = ("있", "없", "않", "아니", "아닙", "합니", "됩니", "입니", "해당")
_STOP_WORDS = FUNCTION_WORDS | {"할", "한", "될", "된", "whom", "whose", "s"}


@dataclass(frozen=True, slots=True)
class Word:
    """A content word: how it stands in the text, and the pieces it is compared by (Hangul: pairs of syllables)."""

    surface: str
    pieces: frozenset[str]


def content_words(text: str) -> tuple[Word, ...]:
    """The distinct content words in order; numbers without grouping commas, Hangul without particles."""
    found: dict[str, Word] = {}
    for match in _RUN.finditer(compared := folded(text)):
        behind_a_digit = compared[match.start() - 1 : match.start()].isdigit()
        stem = _stem(match[0], shortest=1 if behind_a_digit else 2)
        if stem not in _STOP_WORDS and not stem.startswith(_FUNCTION_VERBS):
            found.setdefault(stem, Word(stem, _pieces(stem)))
    return tuple(found.values())


def numbers(words: Iterable[Word]) -> frozenset[str]:
    """The words that are numbers written in digits."""
    return frozenset(word.surface for word in words if word.surface[0].isdigit())


def coverage(wanted: Sequence[Word], given: Iterable[Word]) -> float:
    """Share of the wanted words that occur among the given ones, 0 to 1; a Hangul word counts by the share of its
    syllable pairs, from half of them on. Nothing wanted is covered wholly."""
    return sum(shares(wanted, given).values()) / len(wanted) if wanted else 1.0


def shares(wanted: Sequence[Word], given: Iterable[Word]) -> dict[str, float]:
    """How far each wanted word is found, 0 or from 0.5 to 1."""
    pieces = frozenset().union(*(word.pieces for word in given))
    found = {word.surface: len(word.pieces & pieces) / len(word.pieces) for word in wanted}
    return {surface: share if share >= _HALF_FOUND else 0.0 for surface, share in found.items()}


def _stem(run: str, *, shortest: int) -> str:
    """A Hangul word without one ending, where ``shortest`` syllables remain (one behind a digit: 3년까지)."""
    if run[0].isdigit():
        return run.replace(",", "")
    if "가" <= run[0] <= "힣":
        fitting = (e for e in _ENDINGS if run.endswith(e) and len(run) - len(e) >= shortest)
        return run.removesuffix(next(fitting, ""))
    return run[:-1] if len(run) > 3 and run.endswith("s") and not run.endswith("ss") else run


def _pieces(stem: str) -> frozenset[str]:
    if "가" <= stem[0] <= "힣" and len(stem) > 2:
        return frozenset(map("".join, pairwise(stem)))
    return frozenset({stem})


class Said(Enum):
    """Every sentence of the baseline's reasons, with names of values in braces."""

    IN_PASSAGES = Bilingual("{percent}% of its words are in the passages.", "낱말의 {percent}%가 문단에 있습니다.")
    IN_NO_PASSAGE = Bilingual("Numbers that are in none: {listed}.", "어디에도 없는 숫자: {listed}.")
    OF_NUGGET = Bilingual("{percent}% of its words occur.", "낱말의 {percent}%가 있습니다.")
    HELPS = Bilingual("Holds words of the expected answer.", "기대 답변의 낱말이 있습니다.")
    HELPS_NOT = Bilingual("Holds hardly any words of the expected answer.", "기대 답변의 낱말이 거의 없습니다.")
    HELPING = Bilingual("{count} of {total} passages help.", "문단 {total}개 중 {count}개가 도움이 됩니다.")
    NOT_LOOKED_FOR = Bilingual("Contradictions are not looked for.", "모순은 살펴보지 않습니다.")
    ASKS_BACK = Bilingual("Asks back where that is welcome.", "되물어도 되는 질문에 되묻습니다.")
    NOTHING_NEW = Bilingual("Refuses or says nothing new.", "답을 피하거나 새로 말하는 것이 없습니다.")
    TAKES_UP = Bilingual("Takes up {percent}% of the question's words.", "질문 낱말의 {percent}%를 이어받습니다.")
    POINTS = Bilingual("Names {count} of {total} points.", "{total}개 중 {count}개를 말합니다.")
    FORM = Bilingual("Form {form}.", "형식 {form}.")
    FORM_AND_SOURCES = Bilingual("Form {form}, in the sources {valid}.", "형식 {form}, 출처에 있는 비율 {valid}.")
    NEGATES = Bilingual("Negates in the reference's words.", "기대 답변의 말로 부정합니다.")
    NOT_THERE = Bilingual("Says that it is not there.", "없거나 알 수 없다고 말합니다.")
    PASSAGES_WORDS = Bilingual("Answers in the passages' words.", "문단의 말로 답합니다.")
    NO_PASSAGES_WORDS = Bilingual("Says what no passage says.", "어느 문단에도 없는 말을 합니다.")
    COUNTED = Bilingual(
        "Counted by words ({offline}), not judged by the criterion.",
        "기준으로 판정한 것이 아니라 낱말을 센 값입니다({offline}).",
    )
    DENIES_NOT = Bilingual("The reference denies; the answer does not.", "기대 답변과 달리 부정하지 않습니다.")
    BY_SENTENCE = Bilingual(
        "On average {percent}% of the content words of each sentence of the reference occur in the answer.",
        "기대 답변의 문장마다 평균 {percent}%의 내용어가 답변에 있습니다.",
    )
    NO_CLAIM = Bilingual("The answer makes no factual claim.", "답변에 사실 주장이 없습니다.")
    ECHO = Bilingual("Says nothing beyond the question.", "질문 외에 말하는 것이 없습니다.")
    NOT_RETRIEVED = Bilingual("Nothing was retrieved to support it.", "검색된 문단이 없어 근거가 없습니다.")
    SUPPORTED = Bilingual(
        "{percent}% of the answer's content words are supported by the contexts; {weak} of {total} sentences are not.",
        "답변 내용어의 {percent}%가 문단에 있습니다. 문장 {total}개 중 {weak}개는 근거가 부족합니다.",
    )
    REFUSES_RIGHTLY = Bilingual("Refuses as the reference does.", "기대 답변처럼 답이 없다고 말합니다.")
    ANSWERS_WRONGLY = Bilingual("Answers where the reference refuses.", "답이 없다고 해야 하는데 답을 내놓습니다.")
    REFUSES_WRONGLY = Bilingual("Refuses although there is an answer.", "답이 있는데도 없다고 말합니다.")
    IN_ANSWER = Bilingual(
        "{count} of {total} content words of the reference occur in the answer.",
        "기대 답변의 내용어 {total}개 중 {count}개가 답변에 있습니다.",
    )
    MISSING_WORDS = Bilingual("Missing: {listed}.", "없는 말: {listed}.")
    REQUIRED_POINTS = Bilingual("Names {count} of {total} required points.", "요점 {total}개 중 {count}개를 말합니다.")
    MISSING_POINTS = Bilingual("Missing points: {listed}.", "없는 요점: {listed}.")
    OTHER_NUMBERS = Bilingual("Gives other numbers: {listed}.", "다른 숫자를 말합니다: {listed}.")

    def of(self, **values: object) -> Bilingual:
        """The sentence with its values."""
        return Bilingual(self.value.en.format(**values), self.value.ko.format(**values))


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Bilingual], ...]:
    """What a sentence looks like in either language: values are numbers, but for lists of words and names."""
    found = []
    for said in Said:
        for text in (said.value.en, said.value.ko):
            value = r"(?P<\1>.+?)" if "{listed}" in text or "{offline}" in text else r"(?P<\1>[0-9.e+-]+)"
            found.append((re.compile(re.sub(r"\\{(\w+)\\}", value, re.escape(text)) + r"(?: |\Z)"), said.value))
    return tuple(found)


def retold(reason: str, language: str) -> str:
    """A reason of the baseline in this language, whichever it was given in; any other text as it is."""
    parts, place = [], 0
    while place < len(reason):
        found = ((pattern.match(reason, place), said) for pattern, said in _patterns())
        match, said = next(((m, said) for m, said in found if m), (None, None))
        if match is None or said is None:
            return reason
        parts.append(said.in_language(language).format(**match.groupdict()))
        place = match.end()
    return " ".join(parts)


def told(call: JudgeCall, reason: Bilingual) -> str:
    """A reason as it is kept: in the rubric's language, and in Korean for a Korean question whatever the rubric is
    written in. Pages tell it in the reader's language (:func:`retold`)."""
    asked_in_korean = any("가" <= letter <= "힣" for letter in call.question.text)
    return reason.in_language("ko" if asked_in_korean else call.rubric.language)


_NOT_KNOWN = re.compile(
    r"(?:찾을|찾아볼|확인할|알|답할|답변할|제공할|말씀드릴|드릴)\s?수(?:가|는)?\s?없|확인되지\s?않|제공(?:하|되)지\s?않"
    r"|(?:포함|언급|기재|명시)(?:(?:되어|돼)?\s?있지|되지)\s?않|모르겠|모릅니다|알지\s?못"
    r"|(?:정보|내용|자료|기록|데이터|언급|근거|답변|설명|항목|(?:문서|문단|출처)에)[^.\n]{0,12}없(?:습니다|다\b|어요|음\b)"
    r"|(?:could|can|did|was|were)\s?(?:not|n't)\s(?:be\s|able to\s)?"
    r"(?:find|found|locate|determine|confirm|answer|verif)"
    r"|\bcannot (?:be )?(?:find|found|determine|confirm|answer|verif)"
    r"|\bunable to (?:find|determine|confirm|answer|verif)"
    r"|\bdo(?:es)?(?: not|n't) (?:contain|mention|specify|provide|include|cover|know|have (?:any )?information)"
    r"|\b(?:is|are|was|were)(?: not|n't) (?:available|found|provided|mentioned|specified|stated|known|covered|listed)"
    r"|\bno (?:information|record|data|mention|document)|\bnot (?:available|found)\b",
    re.IGNORECASE,
)
# 없 counts only as a predicate, not behind words it makes positive (문제없습니다) and not as "cannot" (넘을 수 없다).
_NOT_THERE = re.compile(
    r"존재하지\s?않|(?<!문제)(?<!틀림)(?<!변함)(?<!상관)(?<!다름)(?<!끊임)(?<!어김)(?<!수)"
    r"(?<!문제[가는] )(?<!변함이 )(?<!상관[이은] )(?<!다름이 )(?<!수 )(?<!수[는가] )없(?:습니다|다\b|어요|음\b)"
    r"|\bdo(?:es)?(?: not|n't) exist|\bthere (?:is|are|was|were) no\b|\bno such\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"아니|아닙|아닌|않|못\s?[하한했]|\bnot\b|n't\b|\bno\b|\bnever\b|\brather than\b", re.IGNORECASE)
_SHORT = 2  # sentences


def refuses(text: str) -> bool:
    """Whether the text as a whole says that the answer is not known: in its first sentence, or anywhere in a text of
    at most two."""
    return any(states_ignorance(part) for part in _decisive(text))


def denies(text: str) -> bool:
    """Whether the text refuses, or says in the same place that what was asked for does not exist."""
    return any(states_ignorance(part) or _NOT_THERE.search(part) for part in _decisive(text))


def states_ignorance(sentence: str) -> bool:
    """Whether one sentence says that something is not known or not in the sources."""
    return bool(_NOT_KNOWN.search(sentence))


def negates(text: str) -> bool:
    """Whether the text holds a negation of any kind anywhere."""
    return any(pattern.search(text) for pattern in (_NEGATION, _NOT_KNOWN, _NOT_THERE))


def _decisive(text: str) -> tuple[str, ...]:
    parts = sentences(text)
    return parts if len(parts) <= _SHORT else parts[:1]


_LOWER_ENDS = ((0.9, 5), (0.7, 4), (0.45, 3), (0.2, 2))  # share from which a level is given
_NAMED = 0.8  # share of a keyword's words from which the answer names it
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Grade:
    """A level and why, in both languages. ``share`` is what the level was made of, from 0 to 1, where there is one."""

    level: int
    reason: Bilingual
    share: float | None = None

    @classmethod
    def of(cls, share: float, reason: Bilingual) -> Grade:
        """The grade that a share makes."""
        return cls(level_of(share), reason, share)

    @property
    def unit(self) -> float:
        """The grade between 0 and 1: the share, else the level's place between 1 and 5."""
        return (self.level - 1) / 4 if self.share is None else self.share


def level_of(share: float) -> int:
    """The level of a share between 0 and 1: from .9 on 5, .7 on 4, .45 on 3, .2 on 2, below 1."""
    return next((level for lower, level in _LOWER_ENDS if share >= lower - 1e-9), 1)


def correctness(question: QuestionSpec, answer: AnswerSpec) -> Grade:
    """Words of the best-matching reference, those of the question left out, found in the answer (else named keywords);
    capped where numbers differ and where a negative reference is answered without a negation."""
    given = content_words(answer.text)
    if refusal := _refusal_grade(question, answer):
        return refusal
    if not question.references:
        return _named_points(question, given)
    reference = max(question.references, key=lambda text: coverage(wanted_words(text, question), given))
    grade = _covered(wanted_words(reference, question), given)
    if question.category == NEGATIVE_CATEGORY and negates(reference) and not negates(answer.text):
        return _capped(grade, 2, Said.DENIES_NOT.value)
    return _numbers_checked(grade, content_words(reference), given, content_words(question.text))


def completeness(question: QuestionSpec, answer: AnswerSpec) -> Grade:
    """Mean over the reference's sentences of the share of their words found in the answer; else named keywords."""
    given = content_words(answer.text)
    if refusal := _refusal_grade(question, answer):
        return refusal
    if not question.references:
        return _named_points(question, given)
    best = max(_mean_over_sentences(text, given, question) for text in question.references)
    return Grade.of(best, Said.BY_SENTENCE.of(percent=round(100 * best)))


def faithfulness(question: QuestionSpec, answer: AnswerSpec) -> Grade:
    """Mean over the answer's claiming sentences of the share of their new words found in the contexts; a number
    that is in no context halves its sentence. Sentences that only say that something is not known claim nothing."""
    asked = content_words(question.text)
    evidence = [word for context in answer.contexts or () for word in content_words(context.text)]
    claims = [claimed_words(sentence, asked) for sentence in sentences(answer.text) if not states_ignorance(sentence)]
    known = numbers(evidence) | numbers(asked)
    supports = [coverage(words, evidence) / (2 if numbers(words) - known else 1) for words in claims if words]
    if not supports:  # an honest refusal claims nothing; a blank answer or an echo says nothing, and earns nothing
        if any(map(states_ignorance, sentences(answer.text))):
            return Grade(5, Said.NO_CLAIM.value)
        return Grade(1, Said.ECHO.value)
    if not answer.contexts:
        return Grade(1, Said.NOT_RETRIEVED.value)
    share = sum(supports) / len(supports)
    weak = sum(support < _LOWER_ENDS[1][0] for support in supports)
    return Grade.of(share, Said.SUPPORTED.of(percent=round(100 * share), weak=weak, total=len(supports)))


def claimed_words(sentence: str, asked: Sequence[Word]) -> tuple[Word, ...]:
    """The words by which a sentence claims something: those the question does not hold, else all of them (a plain yes
    or no repeats the question's words); none for a question and for the echo of this one."""
    words = content_words(sentence)
    if sentence.endswith("?") or {word.surface for word in words} == {word.surface for word in asked}:
        return ()
    return _beyond(words, asked) or words


def _refusal_grade(question: QuestionSpec, answer: AnswerSpec) -> Grade | None:
    """The grade where reference or answer says that there is no answer; ``None`` where words decide."""
    negative = question.category == NEGATIVE_CATEGORY
    refused = denies(answer.text) if negative else refuses(answer.text)
    if negative and question.references and all(denies(reference) for reference in question.references):
        if refused:
            return Grade(5, Said.REFUSES_RIGHTLY.value)
        return Grade(1, Said.ANSWERS_WRONGLY.value)
    if refused:
        given = content_words(answer.text)
        held = [coverage(wanted_words(reference, question), given) for reference in question.references]
        held = held or [sum(named(point, given) for point in question.keywords) / max(len(question.keywords), 1)]
        if max(held) < _LOWER_ENDS[2][0]:
            return Grade(1, Said.REFUSES_WRONGLY.value)
    return None


def _covered(wanted: Sequence[Word], given: Sequence[Word]) -> Grade:
    found = shares(wanted, given)
    share = coverage(wanted, given)
    missing = [surface for surface, value in found.items() if not value][:_MOST_LISTED]
    count = sum(value > 0 for value in found.values())
    reason = Said.IN_ANSWER.of(count=count, total=len(found))
    if missing:
        reason = joined(reason, Said.MISSING_WORDS.of(listed=", ".join(missing)))
    return Grade.of(share, reason)


def _named_points(question: QuestionSpec, given: Sequence[Word]) -> Grade:
    missing = [point[0] for point in question.keywords if point and not named(point, given)]
    total = len(question.keywords)
    count = total - len(missing)
    reason = Said.REQUIRED_POINTS.of(count=count, total=total)
    if missing:
        reason = joined(reason, Said.MISSING_POINTS.of(listed=", ".join(missing[:_MOST_LISTED])))
    return Grade.of(count / total if total else 0.0, reason)


def named(alternatives: Sequence[str], given: Sequence[Word]) -> bool:
    return any((words := content_words(text)) and coverage(words, given) >= _NAMED for text in alternatives)


def wanted_words(reference: str, question: QuestionSpec) -> tuple[Word, ...]:
    """The reference's words that the question does not give away; all of them where it gives all."""
    words = content_words(reference)
    return _beyond(words, content_words(question.text)) or words


def _mean_over_sentences(reference: str, given: Sequence[Word], question: QuestionSpec) -> float:
    asked = content_words(question.text)
    parts = [words for sentence in sentences(reference) if (words := _beyond(content_words(sentence), asked))]
    parts = parts or [content_words(reference)]
    return sum(coverage(words, given) if words else 0.0 for words in parts) / len(parts)


def _numbers_checked(grade: Grade, wanted: Sequence[Word], given: Sequence[Word], asked: Sequence[Word]) -> Grade:
    expected = numbers(wanted) - numbers(asked)
    missing = expected - numbers(given)
    foreign = numbers(given) - expected - numbers(asked)
    if not missing or not foreign:
        return grade
    listed = ", ".join(sorted(foreign)[:_MOST_LISTED])
    return _capped(grade, 2 if missing == expected else 3, Said.OTHER_NUMBERS.of(listed=listed))


def _capped(grade: Grade, top: int, note: Bilingual) -> Grade:
    return Grade(min(grade.level, top), joined(grade.reason, note), min(grade.unit, (top - 1) / 4))


def joined(one: Bilingual, other: Bilingual) -> Bilingual:
    """One reason after the other."""
    return Bilingual(f"{one.en} {other.en}", f"{one.ko} {other.ko}")


def _beyond(words: Sequence[Word], asked: Sequence[Word]) -> tuple[Word, ...]:
    """The words whose pieces are not all in the question: an echo is no answer."""
    known = frozenset().union(*(word.pieces for word in asked))
    return tuple(word for word in words if not word.pieces <= known)
