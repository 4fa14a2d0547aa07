"""Text heuristics of the offline baseline: content words of Korean and English, word overlap, refusal patterns, and
grades from 1 to 5. Keyword metrics use ``metrics/`` instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise

from evaluation.core.metric_specs import Bilingual
from evaluation.core.samples import NEGATIVE_CATEGORY, AnswerSpec, QuestionSpec
from evaluation.judging.calls import JudgeCall
from evaluation.judging.prose import sentences
from evaluation.metrics.normalise import FUNCTION_WORDS, folded

# A Latin letter or a digit: 200TR is one run, not a number.
_ALPHANUMERIC = r"[^\W_가-힣]"
_RUN = re.compile(rf"(?<!{_ALPHANUMERIC})\d+(?:[.,]\d+)*(?!{_ALPHANUMERIC})|[가-힣]+|{_ALPHANUMERIC}+")
_MIN_WORD_SHARE = 0.5

_ENDING_LIST = (
    "입니다 합니다 됩니다 습니다 했습니다 되었습니다 하였습니다 이다 한다 된다 하는 되는 하여 "
    "하고 되고 하며 되며 하면 되면 하지 되지 하지만 되지만 할 될 이라고 이라는 이며 이고 이나 "
    "으로부터 에서는 에서도 에게서 까지는 부터는 에서 에게 으로 까지 부터 보다 처럼 만큼 마다 "
    "이란 에는 에도 로는 은 는 이 가 을 를 의 에 로 와 과 도 만 며"
)
# Longest first, so that 에서는 precedes 는.
_ENDINGS = tuple(sorted(_ENDING_LIST.split(), key=len, reverse=True))
_FUNCTION_VERBS = ("있", "없", "않", "아니", "아닙", "합니", "됩니", "입니", "해당")
_STOP_WORDS = FUNCTION_WORDS | {"할", "한", "될", "된", "whom", "whose", "s"}


@dataclass(frozen=True, slots=True)
class Word:
    """Content word: its form in the text, and the pieces it is compared by (Hangul: pairs of syllables)."""

    surface: str
    pieces: frozenset[str]


class Words(tuple[Word, ...]):
    """Content words in order."""

    @cached_property
    def pieces(self) -> frozenset[str]:
        """The pieces of all words."""
        return frozenset().union(*(word.pieces for word in self))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The words that are numbers in digits."""
        return frozenset(word.surface for word in self if word.surface[0].isdigit())


@lru_cache(maxsize=1024)
def content_words(text: str) -> Words:
    """Distinct content words in order; numbers without grouping commas, Hangul without particles.

    Cached, because all judgements of an answer compare the same passages and sentences."""
    words_by_stem: dict[str, Word] = {}
    for match in _RUN.finditer(folded_text := folded(text)):
        after_digit = folded_text[match.start() - 1 : match.start()].isdigit()
        stem = _stem(match[0], shortest=1 if after_digit else 2)
        if stem not in _STOP_WORDS and not stem.startswith(_FUNCTION_VERBS):
            words_by_stem.setdefault(stem, Word(stem, _pieces(stem)))
    return Words(words_by_stem.values())


def words_of_all(texts: Iterable[str]) -> Words:
    """Content words of several texts."""
    return Words(chain.from_iterable(map(content_words, texts)))


def coverage(expected: Words, available: Words) -> float:
    """Share of the expected words that are available, 0 to 1; 1 if none is expected. A Hangul word counts by its share
    of syllable pairs, from one half on."""
    return sum(word_shares(expected, available).values()) / len(expected) if expected else 1.0


def word_shares(expected: Words, available: Words) -> dict[str, float]:
    """Share of each expected word that is available: 0, or 0.5 to 1."""
    pieces = available.pieces
    share_by_word = {word.surface: len(word.pieces & pieces) / len(word.pieces) for word in expected}
    return {surface: share if share >= _MIN_WORD_SHARE else 0.0 for surface, share in share_by_word.items()}


def _stem(run: str, *, shortest: int) -> str:
    """Hangul word without one ending, if at least ``shortest`` syllables remain (one after a digit: 3년까지)."""
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


class BaselineReason(Enum):
    """Sentences of the baseline's reasons, with placeholders in braces."""

    IN_PASSAGES = Bilingual("{percent}% of its words are in the passages.", "단어의 {percent}%가 문단에 있습니다.")
    IN_NO_PASSAGE = Bilingual("Numbers that are in none: {listed}.", "어디에도 없는 숫자: {listed}.")
    OF_NUGGET = Bilingual("{percent}% of its words occur.", "단어의 {percent}%가 있습니다.")
    HELPS = Bilingual("Holds words of the expected answer.", "기대 답변의 단어가 있습니다.")
    HELPS_NOT = Bilingual("Holds hardly any words of the expected answer.", "기대 답변의 단어가 거의 없습니다.")
    HELPING = Bilingual("{count} of {total} passages help.", "문단 {total}개 중 {count}개가 도움이 됩니다.")
    NOT_LOOKED_FOR = Bilingual("Contradictions are not looked for.", "모순은 살펴보지 않습니다.")
    ASKS_BACK = Bilingual("Asks back where that is welcome.", "되물어도 되는 질문에 되묻습니다.")
    NOTHING_NEW = Bilingual("Refuses or says nothing new.", "답을 피하거나 새로 말하는 것이 없습니다.")
    TAKES_UP = Bilingual("Takes up {percent}% of the question's words.", "질문 단어의 {percent}%를 이어받습니다.")
    POINTS = Bilingual("Names {count} of {total} points.", "{total}개 중 {count}개를 말합니다.")
    FORM = Bilingual("Form {form}.", "형식 {form}.")
    FORM_AND_SOURCES = Bilingual("Form {form}, in the sources {valid}.", "형식 {form}, 출처에 있는 비율 {valid}.")
    NEGATES = Bilingual("Negates in the reference's words.", "기대 답변의 말로 부정합니다.")
    NOT_THERE = Bilingual("Says that it is not there.", "없거나 알 수 없다고 말합니다.")
    PASSAGES_WORDS = Bilingual("Answers in the passages' words.", "문단의 말로 답합니다.")
    NO_PASSAGES_WORDS = Bilingual("Says what no passage says.", "어느 문단에도 없는 말을 합니다.")
    COUNTED = Bilingual(
        "Counted by words ({offline}), not judged by the criterion.",
        "기준으로 판정한 것이 아니라 단어를 센 값입니다({offline}).",
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
        "The passages support {percent}% of the answer's content words. Unsupported sentences: {weak} of {total}.",
        "답변 내용어의 {percent}%가 문단에 있습니다. 근거가 부족한 문장: {total}개 중 {weak}개.",
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

    def format(self, **values: object) -> Bilingual:
        return Bilingual(self.value.en.format(**values), self.value.ko.format(**values))


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Bilingual], ...]:
    """Patterns of the sentences in both languages. Placeholders match numbers, except lists of words and names."""
    patterns = []
    for reason in BaselineReason:
        for text in (reason.value.en, reason.value.ko):
            value = r"(?P<\1>.+?)" if "{listed}" in text or "{offline}" in text else r"(?P<\1>[0-9.e+-]+)"
            patterns.append((re.compile(re.sub(r"\\{(\w+)\\}", value, re.escape(text)) + r"(?: |\Z)"), reason.value))
    return tuple(patterns)


def translate_reason(reason: str, language: str) -> str:
    """Translate a reason of the baseline to this language; other texts are returned unchanged."""
    sentences_told, position = [], 0
    while position < len(reason):
        matches = ((pattern.match(reason, position), sentence) for pattern, sentence in _patterns())
        match, sentence = next(((m, sentence) for m, sentence in matches if m), (None, None))
        if match is None or sentence is None:
            return reason
        sentences_told.append(sentence.in_language(language).format(**match.groupdict()))
        position = match.end()
    return " ".join(sentences_told)


def reason_text(call: JudgeCall, reason: Bilingual) -> str:
    """Reason text to store: in Korean for a Korean question, else in the rubric's language. Pages use
    :func:`translate_reason`."""
    korean_question = any("가" <= letter <= "힣" for letter in call.question.text)
    return reason.in_language("ko" if korean_question else call.rubric.language)


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
# 없 counts only as a predicate, not after nouns that make it positive (문제없습니다), nor as "cannot" (넘을 수 없다).
_NOT_THERE = re.compile(
    r"존재하지\s?않|(?<!문제)(?<!틀림)(?<!변함)(?<!상관)(?<!다름)(?<!끊임)(?<!어김)(?<!수)"
    r"(?<!문제[가는] )(?<!변함이 )(?<!상관[이은] )(?<!다름이 )(?<!수 )(?<!수[는가] )없(?:습니다|다\b|어요|음\b)"
    r"|\bdo(?:es)?(?: not|n't) exist|\bthere (?:is|are|was|were) no\b|\bno such\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"아니|아닙|아닌|않|못\s?[하한했]|\bnot\b|n't\b|\bno\b|\bnever\b|\brather than\b", re.IGNORECASE)
# Sentences of a short text.
_SHORT_SENTENCES = 2


def is_refusal(text: str) -> bool:
    """Return whether the text says that the answer is unknown: in its first sentence, or anywhere in at most two
    sentences."""
    return any(states_ignorance(part) for part in _decisive_sentences(text))


def is_denial(text: str) -> bool:
    """Return whether the text refuses, or says in its decisive sentences that the subject does not exist."""
    return any(states_ignorance(part) or _NOT_THERE.search(part) for part in _decisive_sentences(text))


def states_ignorance(sentence: str) -> bool:
    """Return whether a sentence says that something is unknown or not in the sources."""
    return bool(_NOT_KNOWN.search(sentence))


def contains_negation(text: str) -> bool:
    """Return whether the text contains any negation."""
    return any(pattern.search(text) for pattern in (_NEGATION, _NOT_KNOWN, _NOT_THERE))


def _decisive_sentences(text: str) -> tuple[str, ...]:
    parts = sentences(text)
    return parts if len(parts) <= _SHORT_SENTENCES else parts[:1]


# Minimum share of each level.
_LEVEL_BOUNDS = ((0.9, 5), (0.7, 4), (0.45, 3), (0.2, 2))
# Minimum share of a keyword's words in the answer.
_NAMED = 0.8
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class Grade:
    """Level with its reason in both languages. ``share`` (0 to 1) is the measure behind the level, if any."""

    level: int
    reason: Bilingual
    share: float | None = None

    @classmethod
    def of(cls, share: float, reason: Bilingual) -> Grade:
        return cls(level_for_share(share), reason, share)

    @property
    def unit(self) -> float:
        """Grade on 0..1: the share, else the level's position between 1 and 5."""
        return (self.level - 1) / 4 if self.share is None else self.share


def level_for_share(share: float) -> int:
    """Level of a share from 0 to 1: 5 from .9, 4 from .7, 3 from .45, 2 from .2, else 1."""
    return next((level for lower, level in _LEVEL_BOUNDS if share >= lower - 1e-9), 1)


def correctness(question: QuestionSpec, answer: AnswerSpec) -> Grade:
    """Share of the best reference's words (without those of the question) in the answer, else of the keywords. Capped
    if numbers differ, or if a negative reference is answered without a negation."""
    answer_words = content_words(answer.text)
    if refusal := _refusal_grade(question, answer):
        return refusal
    if not question.references:
        return _points_grade(question, answer_words)
    reference = max(question.references, key=lambda text: coverage(reference_words(text, question), answer_words))
    grade = _coverage_grade(reference_words(reference, question), answer_words)
    if question.category == NEGATIVE_CATEGORY and contains_negation(reference) and not contains_negation(answer.text):
        return _cap_grade(grade, 2, BaselineReason.DENIES_NOT.value)
    return _check_numbers(grade, content_words(reference), answer_words, content_words(question.text))


def completeness(question: QuestionSpec, answer: AnswerSpec) -> Grade:
    """Mean over the reference's sentences of the share of their words in the answer, else of the keywords."""
    answer_words = content_words(answer.text)
    if refusal := _refusal_grade(question, answer):
        return refusal
    if not question.references:
        return _points_grade(question, answer_words)
    best = max(_mean_over_sentences(text, answer_words, question) for text in question.references)
    return Grade.of(best, BaselineReason.BY_SENTENCE.format(percent=round(100 * best)))


def faithfulness(question: QuestionSpec, answer: AnswerSpec) -> Grade:
    """Mean over the claiming sentences of the share of their new words in the contexts. A number that is in no context
    halves its sentence. Sentences that only admit ignorance are skipped."""
    question_words = content_words(question.text)
    evidence = words_of_all(context.text for context in answer.contexts or ())
    claims = [
        claimed_words(sentence, question_words) for sentence in sentences(answer.text) if not states_ignorance(sentence)
    ]
    known_numbers = evidence.numbers | question_words.numbers
    supports = [coverage(words, evidence) / (2 if words.numbers - known_numbers else 1) for words in claims if words]
    # A refusal makes no claim; a blank answer or an echo gets the lowest grade.
    if not supports:
        if any(map(states_ignorance, sentences(answer.text))):
            return Grade(5, BaselineReason.NO_CLAIM.value)
        return Grade(1, BaselineReason.ECHO.value)
    if not answer.contexts:
        return Grade(1, BaselineReason.NOT_RETRIEVED.value)
    share = sum(supports) / len(supports)
    weak = sum(support < _LEVEL_BOUNDS[1][0] for support in supports)
    return Grade.of(share, BaselineReason.SUPPORTED.format(percent=round(100 * share), weak=weak, total=len(supports)))


def claimed_words(sentence: str, question_words: Words) -> Words:
    """Words by which a sentence makes a claim: those not in the question, else all. Empty for questions and echoes."""
    words = content_words(sentence)
    if sentence.endswith("?") or {word.surface for word in words} == {word.surface for word in question_words}:
        return Words()
    return _new_words(words, question_words) or words


def _refusal_grade(question: QuestionSpec, answer: AnswerSpec) -> Grade | None:
    """Grade if reference or answer says that there is no answer; ``None`` if words decide."""
    negative = question.category == NEGATIVE_CATEGORY
    refused = is_denial(answer.text) if negative else is_refusal(answer.text)
    if negative and question.references and all(is_denial(reference) for reference in question.references):
        if refused:
            return Grade(5, BaselineReason.REFUSES_RIGHTLY.value)
        return Grade(1, BaselineReason.ANSWERS_WRONGLY.value)
    if refused:
        answer_words = content_words(answer.text)
        coverages = [coverage(reference_words(reference, question), answer_words) for reference in question.references]
        coverages = coverages or [
            sum(names_any(point, answer_words) for point in question.keywords) / max(len(question.keywords), 1)
        ]
        if max(coverages) < _LEVEL_BOUNDS[2][0]:
            return Grade(1, BaselineReason.REFUSES_WRONGLY.value)
    return None


def _coverage_grade(expected: Words, available: Words) -> Grade:
    share_by_word = word_shares(expected, available)
    share = coverage(expected, available)
    missing = [surface for surface, value in share_by_word.items() if not value][:_MAX_LISTED]
    count = sum(value > 0 for value in share_by_word.values())
    reason = BaselineReason.IN_ANSWER.format(count=count, total=len(share_by_word))
    if missing:
        reason = join_reasons(reason, BaselineReason.MISSING_WORDS.format(listed=", ".join(missing)))
    return Grade.of(share, reason)


def _points_grade(question: QuestionSpec, answer_words: Words) -> Grade:
    missing = [point[0] for point in question.keywords if point and not names_any(point, answer_words)]
    total = len(question.keywords)
    count = total - len(missing)
    reason = BaselineReason.REQUIRED_POINTS.format(count=count, total=total)
    if missing:
        reason = join_reasons(reason, BaselineReason.MISSING_POINTS.format(listed=", ".join(missing[:_MAX_LISTED])))
    return Grade.of(count / total if total else 0.0, reason)


def names_any(alternatives: Sequence[str], available: Words) -> bool:
    return any((words := content_words(text)) and coverage(words, available) >= _NAMED for text in alternatives)


def reference_words(reference: str, question: QuestionSpec) -> Words:
    """Words of the reference that are not in the question; all if every word is."""
    words = content_words(reference)
    return _new_words(words, content_words(question.text)) or words


def _mean_over_sentences(reference: str, answer_words: Words, question: QuestionSpec) -> float:
    question_words = content_words(question.text)
    parts = [
        words for sentence in sentences(reference) if (words := _new_words(content_words(sentence), question_words))
    ]
    parts = parts or [content_words(reference)]
    return sum(coverage(words, answer_words) if words else 0.0 for words in parts) / len(parts)


def _check_numbers(grade: Grade, expected_words: Words, answer_words: Words, question_words: Words) -> Grade:
    expected = expected_words.numbers - question_words.numbers
    missing = expected - answer_words.numbers
    foreign = answer_words.numbers - expected - question_words.numbers
    if not missing or not foreign:
        return grade
    listed = ", ".join(sorted(foreign)[:_MAX_LISTED])
    return _cap_grade(grade, 2 if missing == expected else 3, BaselineReason.OTHER_NUMBERS.format(listed=listed))


def _cap_grade(grade: Grade, top: int, note: Bilingual) -> Grade:
    return Grade(min(grade.level, top), join_reasons(grade.reason, note), min(grade.unit, (top - 1) / 4))


def join_reasons(first: Bilingual, second: Bilingual) -> Bilingual:
    return Bilingual(f"{first.en} {second.en}", f"{first.ko} {second.ko}")


def _new_words(words: Words, question_words: Words) -> Words:
    """Words with a piece that is not in the question."""
    return Words(word for word in words if not word.pieces <= question_words.pieces)
