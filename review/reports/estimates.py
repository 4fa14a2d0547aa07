"""The three estimates of the overall score and of every metric, over the run and by category, ready to be printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from review.reports.as_json import plain
from review.reports.figure import Figure, Withheld, withheld
from review.reports.gathering import Gathered
from review.reports.lines import category_lines, corrected_of_category, metric_lines
from review.reports.overall import three_scores
from review.reports.report import CategoryLine, MetricLine
from review.reports.scores import score_side
from review.statistics.correction.outcome import Target

OVERALL = "overall"
#: What every estimate says, whoever made it; null where it means nothing for that estimate.
KEYS = ("value", "low", "high", "target", "n", "labels", "effective_labels", "lambda", "method")


@dataclass(frozen=True, slots=True)
class ThreeWays:
    """One figure three ways: what the judge said, with people's values where there are any, and what the experts
    would have said of all, the last with an interval for this run and one for questions like these. ``rated`` counts
    the answers with an expert's value."""

    judge_only: Figure
    reviewed: Figure
    corrected: Figure
    corrected_over_questions: Figure
    rated: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Each estimate with all of :data:`KEYS`, or ``withheld`` with the reason and what is missing."""
        return {
            "judge_only": _estimate(self.judge_only, labels=0),
            "reviewed": _estimate(self.reviewed, labels=self.rated),
            "corrected": _estimate(self.corrected),
            "corrected_over_questions": _estimate(self.corrected_over_questions),
        }

    def named(self) -> Iterator[tuple[str, Figure]]:
        """The estimates with their names, in the order they are shown."""
        yield "judge_only", self.judge_only
        yield "reviewed", self.reviewed
        yield "corrected", self.corrected
        yield "corrected_over_questions", self.corrected_over_questions


@dataclass(frozen=True, slots=True)
class CorrectionSheet:
    """All estimates of a run: by metric name with the overall score under ``overall``, and the same by category."""

    run_id: int
    estimates: Mapping[str, ThreeWays]
    by_category: Mapping[str, Mapping[str, ThreeWays]]

    def to_dict(self) -> dict[str, Any]:
        """``{"run", "overall": {...}, "metrics": {name: {...}}, "by_category": {name: {"overall", "metrics"}}}``."""
        found = {"run": self.run_id, **_sheet(self.estimates)}
        if self.by_category:
            found["by_category"] = {name: _sheet(estimates) for name, estimates in self.by_category.items()}
        return found


def three_ways(basis: Gathered, *, by_category: bool = False) -> CorrectionSheet:
    """The estimates of a run as they stand now, without any bootstrap."""
    lines = metric_lines(basis.profile, basis.sides, basis.correction)
    found = {OVERALL: _overall(basis), **{line.name: _metric(basis, line) for line in lines}}
    parts = category_lines(basis.profile, basis.sides, basis.correction) if by_category else ()
    return CorrectionSheet(basis.run.pk, found, {line.name: _category(basis, line) for line in parts})


def _overall(basis: Gathered) -> ThreeWays:
    scores = three_scores(basis.run, basis.profile, basis.sides, basis.machine, basis.reviewed, basis.correction)
    return ThreeWays(
        judge_only=scores.judge_only,
        reviewed=scores.reviewed,
        corrected=scores.corrected,
        corrected_over_questions=scores.corrected_over_questions,
        rated=scores.reviewed_answers,
    )


def _metric(basis: Gathered, line: MetricLine) -> ThreeWays:
    metric = basis.said.metrics[line.metric_id]
    wider = basis.correction.of_metric(metric, target=Target.QUESTIONS_LIKE_THESE)
    return ThreeWays(line.judge_only, line.reviewed, line.corrected, wider, _people(basis, line.metric_id))


def _category(basis: Gathered, line: CategoryLine) -> dict[str, ThreeWays]:
    answers = frozenset(one.answer_id for one in basis.said.answers.values() if one.category == line.name)
    found = {OVERALL: _overall_of_category(basis, line, answers)}
    for pk in sorted(basis.said.computed, key=lambda pk: basis.said.metrics[pk].name):
        metric = basis.said.metrics[pk]
        ours, theirs = line.metrics[metric.name]
        wider = basis.correction.of_metric(metric, line.name, Target.QUESTIONS_LIKE_THESE)
        rated = _people(basis, pk, answers)
        theirs = theirs if rated else withheld(Withheld.NOT_REVIEWED)
        found[metric.name] = ThreeWays(ours, theirs, line.corrected[metric.name], wider, rated)
    return found


def _overall_of_category(basis: Gathered, line: CategoryLine, answers: frozenset[int]) -> ThreeWays:
    machine = score_side(basis.profile, basis.sides.machine.within(answers), all_parts=True)
    wider = corrected_of_category(basis.profile, machine, basis.correction, line.name, Target.QUESTIONS_LIKE_THESE)
    people = {answer for (answer, _), value in basis.sides.found.values.items() if value.human} & answers
    return ThreeWays(line.judge_only, line.reviewed, line.corrected_overall, wider, len(people))


def _people(basis: Gathered, metric_id: int, answers: frozenset[int] | None = None) -> int:
    """How many answers have a person's value of the metric."""
    return sum(
        value.human and (answers is None or value.answer_id in answers)
        for value in basis.sides.found.of_metric(metric_id)
    )


def _sheet(estimates: Mapping[str, ThreeWays]) -> dict[str, Any]:
    return {
        OVERALL: estimates[OVERALL].to_dict(),
        "metrics": {name: one.to_dict() for name, one in estimates.items() if name != OVERALL},
    }


def _estimate(figure: Figure, labels: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = plain(figure)
    if figure.withheld:
        return found
    if labels is not None:
        found |= {"labels": labels, "effective_labels": None, "lambda": None, "method": "mean"}
    return {key: found.get(key) for key in KEYS} | found
