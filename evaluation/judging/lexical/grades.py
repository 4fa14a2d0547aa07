"""The offline baseline's grades: shares of words turned into the levels 1 to 5, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.registry import Bilingual
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.judging.lexical.words import (
    Word,
    content_words,
    coverage,
    denies,
    negates,
    numbers,
    refuses,
    sentences,
    shares,
    states_ignorance,
)

NEGATIVE = "negative"
_LOWER_ENDS = ((0.9, 5), (0.7, 4), (0.45, 3), (0.2, 2))  # share from which a level is given
_NAMED = 0.8  # share of a keyword's words from which the answer names it
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Grade:
    """A level and why, in both languages. ``share`` is what the level was made of, from 0 to 1, where there is one."""

    level: int
    reason: Bilingual
    share: float | None = None

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
    if question.category == NEGATIVE and negates(reference) and not negates(answer.text):
        note = Bilingual("The reference denies; the answer does not.", "기대 답변과 달리 부정하지 않습니다.")
        return _capped(grade, 2, note)
    return _numbers_checked(grade, content_words(reference), given, content_words(question.text))


def completeness(question: QuestionSpec, answer: AnswerSpec) -> Grade:
    """Mean over the reference's sentences of the share of their words found in the answer; else named keywords."""
    given = content_words(answer.text)
    if refusal := _refusal_grade(question, answer):
        return refusal
    if not question.references:
        return _named_points(question, given)
    best = max(_mean_over_sentences(text, given, question) for text in question.references)
    percent = round(100 * best)
    return Grade(
        level_of(best),
        Bilingual(
            f"On average {percent}% of the content words of each sentence of the reference occur in the answer.",
            f"기대 답변의 문장마다 평균 {percent}%의 내용어가 답변에 있습니다.",
        ),
        best,
    )


def faithfulness(question: QuestionSpec, answer: AnswerSpec) -> Grade:
    """Mean over the answer's claiming sentences of the share of their new words found in the contexts; a number
    that is in no context halves its sentence. Sentences that only say that something is not known claim nothing."""
    asked = content_words(question.text)
    evidence = [word for context in answer.contexts or () for word in content_words(context.text)]
    claims = [claimed_words(sentence, asked) for sentence in sentences(answer.text) if not states_ignorance(sentence)]
    supports = [_support(words, evidence, asked) for words in claims if words]
    if not supports:
        return _claims_nothing(answer)
    if not answer.contexts:
        return Grade(1, Bilingual("Nothing was retrieved to support it.", "검색된 문단이 없어 근거가 없습니다."))
    share = sum(supports) / len(supports)
    weak = sum(support < _LOWER_ENDS[1][0] for support in supports)
    return Grade(
        level_of(share),
        Bilingual(
            f"{round(100 * share)}% of the answer's content words are supported by the contexts; "
            f"{weak} of {len(supports)} sentences are not.",
            f"답변 내용어의 {round(100 * share)}%가 문단에 있습니다. "
            f"문장 {len(supports)}개 중 {weak}개는 근거가 부족합니다.",
        ),
        share,
    )


def claimed_words(sentence: str, asked: Sequence[Word]) -> tuple[Word, ...]:
    """The words by which a sentence claims something: those the question does not hold, else all of them (a plain yes
    or no repeats the question's words); none for a question and for the echo of this one."""
    words = content_words(sentence)
    if sentence.endswith("?") or {word.surface for word in words} == {word.surface for word in asked}:
        return ()
    return _beyond(words, asked) or words


def _claims_nothing(answer: AnswerSpec) -> Grade:
    """An honest refusal claims nothing; a blank answer or an echo of the question says nothing, and earns nothing."""
    if any(states_ignorance(sentence) for sentence in sentences(answer.text)):
        return Grade(5, Bilingual("The answer makes no factual claim.", "답변에 사실 주장이 없습니다."))
    return Grade(1, Bilingual("Says nothing beyond the question.", "질문 외에 말하는 것이 없습니다."))


def _refusal_grade(question: QuestionSpec, answer: AnswerSpec) -> Grade | None:
    """The grade where reference or answer says that there is no answer; ``None`` where words decide."""
    negative = question.category == NEGATIVE
    refused = denies(answer.text) if negative else refuses(answer.text)
    if negative and question.references and all(denies(reference) for reference in question.references):
        if refused:
            return Grade(5, Bilingual("Refuses as the reference does.", "기대 답변처럼 답이 없다고 말합니다."))
        return Grade(1, Bilingual("Answers where the reference refuses.", "답이 없다고 해야 하는데 답을 내놓습니다."))
    if refused and _best_share(question, answer) < _LOWER_ENDS[2][0]:
        return Grade(1, Bilingual("Refuses although there is an answer.", "답이 있는데도 없다고 말합니다."))
    return None


def _best_share(question: QuestionSpec, answer: AnswerSpec) -> float:
    given = content_words(answer.text)
    if question.references:
        return max(coverage(wanted_words(reference, question), given) for reference in question.references)
    return sum(named(point, given) for point in question.keywords) / max(len(question.keywords), 1)


def _covered(wanted: Sequence[Word], given: Sequence[Word]) -> Grade:
    found = shares(wanted, given)
    share = coverage(wanted, given)
    missing = [surface for surface, value in found.items() if not value][:_MOST_LISTED]
    count = sum(value > 0 for value in found.values())
    en = f"{count} of {len(found)} content words of the reference occur in the answer."
    ko = f"기대 답변의 내용어 {len(found)}개 중 {count}개가 답변에 있습니다."
    if missing:
        en, ko = f"{en} Missing: {', '.join(missing)}.", f"{ko} 없는 말: {', '.join(missing)}."
    return Grade(level_of(share), Bilingual(en, ko), share)


def _named_points(question: QuestionSpec, given: Sequence[Word]) -> Grade:
    missing = [point[0] for point in question.keywords if point and not named(point, given)]
    total = len(question.keywords)
    count = total - len(missing)
    en, ko = f"Names {count} of {total} required points.", f"요점 {total}개 중 {count}개를 말합니다."
    if missing:
        listed = ", ".join(missing[:_MOST_LISTED])
        en, ko = f"{en} Missing: {listed}.", f"{ko} 없는 요점: {listed}."
    share = count / total if total else 0.0
    return Grade(level_of(share), Bilingual(en, ko), share)


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
    note = Bilingual(f"Gives other numbers: {listed}.", f"다른 숫자를 말합니다: {listed}.")
    return _capped(grade, 2 if missing == expected else 3, note)


def _capped(grade: Grade, top: int, note: Bilingual) -> Grade:
    reason = Bilingual(f"{grade.reason.en} {note.en}", f"{grade.reason.ko} {note.ko}")
    return Grade(min(grade.level, top), reason, min(grade.unit, (top - 1) / 4))


def _beyond(words: Sequence[Word], asked: Sequence[Word]) -> tuple[Word, ...]:
    """The words whose pieces are not all in the question: an echo is no answer."""
    known = frozenset().union(*(word.pieces for word in asked))
    return tuple(word for word in words if not word.pieces <= known)


def _support(words: Sequence[Word], evidence: Sequence[Word], asked: Sequence[Word]) -> float:
    share = coverage(words, evidence)
    return share / 2 if numbers(words) - numbers(evidence) - numbers(asked) else share
