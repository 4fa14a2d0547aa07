"""The forms in which a lead amends a question or a rubric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.samples import QuestionSpec
from evaluation.judging.rubric import RubricMetric
from evaluation.models import RubricVersion
from evaluation.wording.markdown import language_of
from review.models import ReviewItem


@dataclass(frozen=True, slots=True)
class AmendQuestionPage:
    """A question with its references, one of them blank."""

    item_id: int
    set_name: str
    question: str
    language: str
    references: tuple[str, ...]
    error: str


@dataclass(frozen=True, slots=True)
class AnchorLine:
    """A level or label with its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class AmendRubricPage:
    """A metric's question and levels in a version of a rubric."""

    item_id: int
    metric: str
    version: str
    language: str
    question: str
    lines: tuple[AnchorLine, ...]
    error: str


def question_page(
    item: ReviewItem,
    question: QuestionSpec,
    text: str | None = None,
    references: Sequence[str] | None = None,
    error: str = "",
) -> AmendQuestionPage:
    """The form with the question as it is, or with what a refused form held."""
    words = question.text if text is None else text
    held = question.references if references is None else references
    owner = item.answer.question.question_set
    return AmendQuestionPage(item.pk, str(owner), words, language_of(words), (*held, ""), error)


def rubric_page(
    item: ReviewItem,
    version: RubricVersion,
    metric: RubricMetric,
    question: str | None = None,
    texts: Mapping[str, str] | None = None,
    error: str = "",
) -> AmendRubricPage:
    """The form with the rubric as it is, or with what a refused form held."""
    stored = {f"{level.value:g}": level.text for level in metric.levels}
    stored |= {label.label: label.text for label in metric.labels}
    held = {**stored, **(texts or {})}
    return AmendRubricPage(
        item_id=item.pk,
        metric=metric.name,
        version=str(version),
        language=version.language,
        question=metric.question.strip() if question is None else question,
        lines=tuple(AnchorLine(name, held[name]) for name in stored),
        error=error,
    )
