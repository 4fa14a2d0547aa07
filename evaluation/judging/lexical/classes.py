"""The offline baseline's classes: right or wrong, and what an answer does with a negative question."""

from __future__ import annotations

from typing import Any

from evaluation.core.registry import Bilingual
from evaluation.judging.calls import JudgeCall
from evaluation.judging.lexical.grades import Grade, correctness, faithfulness, wanted_words
from evaluation.judging.lexical.refusals import denies, negates
from evaluation.judging.lexical.words import content_words, coverage, reasons_in

_RIGHT = 4  # level of correctness
_LIKE_REFERENCE = 0.45


def classed_answer(call: JudgeCall) -> dict[str, Any]:
    """CORRECT from level 4 of the baseline's correctness, else WRONG."""
    grade = correctness(call.question, call.answer)
    return {"answer_class": _labelled(call, "CORRECT" if grade.level >= _RIGHT else "WRONG", grade.reason)}


def labelled_negative(call: JudgeCall) -> dict[str, Any]:
    """What predicates and words tell: a negation in the reference's own words corrects, a refusal abstains, claims
    that the passages support answer, anything else is made up."""
    return {"negative_label": _labelled(call, *_negative(call))}


def _negative(call: JudgeCall) -> tuple[str, Bilingual]:
    text, given = call.answer.text, content_words(call.answer.text)
    wanted = [wanted_words(reference, call.question) for reference in call.question.references]
    alike = max((coverage(words, given) for words in wanted), default=0.0)
    if alike >= _LIKE_REFERENCE and negates(text) and not all(map(denies, call.question.references)):
        return "correct_premise", Bilingual("Negates in the reference's words.", "기대 답변의 말로 부정합니다.")
    if denies(text):
        return "abstain", Bilingual("Says that it is not there.", "없거나 알 수 없다고 말합니다.")
    supported: Grade = faithfulness(call.question, call.answer)
    if supported.level >= _RIGHT and call.answer.contexts:
        return "answer", Bilingual("Answers in the passages' words.", "문단의 말로 답합니다.")
    return "fabricate", Bilingual("Says what no passage says.", "어느 문단에도 없는 말을 합니다.")


def _labelled(call: JudgeCall, label: str, reason: Bilingual) -> dict[str, str]:
    return {"reason": reason.in_language(reasons_in(call)), "label": label}
