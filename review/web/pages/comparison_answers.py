"""Two answers to one question side by side and word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import get_language

from evaluation.models import Run
from evaluation.wording import numbers
from evaluation.wording.categories import category_name
from evaluation.wording.markdown import language_of
from review.comparisons.answers import AnswerPair, Said
from review.statistics.paired_tests.text_difference import Stretch
from review.web.pages.links import answer_href


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A metric of both answers; the values that count stand apart only where people changed them."""

    title: str
    baseline: str
    ours: str
    baseline_counts: str
    ours_counts: str


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """Two answers; ``sample`` is above 1 where a question was asked several times."""

    sample: int
    language: str
    stretches: tuple[Stretch, ...]
    baseline_href: str
    ours_href: str
    values: tuple[ValueRow, ...]


@dataclass(frozen=True, slots=True)
class CompareAnswersPage:
    """The question with the answers of two runs."""

    question: str
    language: str
    category: str
    runs: str
    baseline: str
    ours: str
    pairs: tuple[AnswerDifference, ...]


def compare_answers_page(ours: Run, baseline: Run, pairs: Sequence[AnswerPair]) -> CompareAnswersPage:
    """The page of at least one pair of answers."""
    first = pairs[0].ours
    return CompareAnswersPage(
        question=first.question,
        language=language_of(first.question),
        category=category_name(first.category),
        runs=f"{baseline.pk},{ours.pk}",
        baseline=str(baseline),
        ours=str(ours),
        pairs=tuple(_pair(one, ours, baseline) for one in pairs),
    )


def _pair(one: AnswerPair, ours: Run, baseline: Run) -> AnswerDifference:
    return AnswerDifference(
        sample=one.ours.sample,
        language=language_of("".join(stretch.text for stretch in one.stretches)),
        stretches=one.stretches,
        baseline_href=answer_href(one.baseline.answer_id, baseline.pk),
        ours_href=answer_href(one.ours.answer_id, ours.pk),
        values=tuple(_value(said) for said in one.metrics),
    )


def _value(said: Said) -> ValueRow:
    before, now = numbers.on_scale(said.baseline, said.scale), numbers.on_scale(said.ours, said.scale)
    counted_before = numbers.on_scale(said.baseline_counts, said.scale)
    counted_now = numbers.on_scale(said.ours_counts, said.scale)
    return ValueRow(
        title=said.title.in_language(get_language() or "en"),
        baseline=before,
        ours=now,
        baseline_counts=counted_before if counted_before != before else "",
        ours_counts=counted_now if counted_now != now else "",
    )
