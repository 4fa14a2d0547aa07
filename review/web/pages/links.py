"""Lists of answers that a run page points at: the worst ones, and where judge and experts differ most."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import get_language

from evaluation.core.scales import Scale
from evaluation.wording import numbers
from evaluation.wording.categories import category_name
from evaluation.wording.markdown import language_of
from review.evidence.answers import RunAnswer
from review.reports.answer_entries import ANSWERS, ToldAnswer
from review.reports.entries import Output
from review.reports.report import Disagreement, Report
from review.web.pages.figures import fact_text

WORST, FURTHEST = 6, 8  # how many of each a run page shows


@dataclass(frozen=True, slots=True)
class AnswerLink:
    """An answer by its question, with what is said of it; ``language`` is that of the question's text."""

    answer_id: int
    href: str
    question_id: str
    question: str
    language: str
    category: str
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DisagreementLink:
    """An answer on which judge and experts are far apart on one metric."""

    answer: AnswerLink
    metric: str
    judge: str
    expert: str
    raters: int


def worst_links(report: Report) -> tuple[AnswerLink, ...]:
    """The answers with the lowest scores."""
    entries = ANSWERS.entries(Output.PAGE)
    return tuple(
        _link(report, line.answer, tuple(fact_text(one, one.of(ToldAnswer(line))) for one in entries))
        for line in report.worst[:WORST]
    )


def disagreement_links(report: Report) -> tuple[DisagreementLink, ...]:
    """The largest distances of the primary judge and the experts."""
    scales = {line.name: line.scale for line in report.metrics}
    return tuple(_disagreement(report, one, scales[one.metric]) for one in report.disagreements[:FURTHEST])


def _disagreement(report: Report, one: Disagreement, scale: Scale) -> DisagreementLink:
    return DisagreementLink(
        answer=_link(report, one.answer),
        metric=one.title.in_language(get_language() or "en"),
        judge=numbers.on_scale(one.judge, scale),
        expert=numbers.on_scale(one.expert, scale),
        raters=one.raters,
    )


def _link(report: Report, answer: RunAnswer, cells: tuple[str, ...] = ()) -> AnswerLink:
    return AnswerLink(
        answer_id=answer.answer_id,
        href=answer_href(answer.answer_id, report.header.run_id),
        question_id=answer.question_id,
        question=answer.question,
        language=language_of(answer.question),
        category=category_name(answer.category),
        cells=cells,
    )


def answer_href(answer_id: int, run_id: int) -> str:
    """The answer's page as seen from a run."""
    return f"{reverse('answer', args=[answer_id])}?run={run_id}"
