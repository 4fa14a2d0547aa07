"""Judge-only, reviewed and corrected estimates of the overall score and of each metric, over the run and by
category."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import get_language, gettext, ngettext

from evaluation.models import Run
from evaluation.profiles.arithmetic import FigureLabel, MissingPart, MissingReason
from evaluation.profiles.per_answer import count_reweighted
from review.evidence.carried import RatingOrigin
from review.evidence.effective import EffectiveValue, RunEvidence, ValueSource
from review.reports.figure import Figure, Withheld, day_and_age, plain, withheld
from review.reports.inputs import ReportInputs, load_inputs
from review.reports.lines import CategoryLine, MetricLine, category_lines, corrected_category_score, metric_lines
from review.reports.scores import SideScore, places_by_category, score_side
from review.statistics.correction.outcome import Target


@dataclass(frozen=True, slots=True)
class CarriedFrom:
    """An earlier answer set whose ratings count in this run.

    ``run_id`` is its newest run, ``answers`` counts this run's answers with a value from it, ``oldest`` and ``newest``
    bound the times of its ratings."""

    answer_set_id: int
    run_id: int
    system: str
    answers: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class OverallScores:
    """Estimates of the overall score. ``sections.OVERALL`` documents each field.

    A ``rules_only`` or ``partial`` figure is in ``part_only``, and the three estimates are withheld with that label.
    ``missing`` lists omitted parts. ``weights`` are those in use, empty if they differ by answer. ``reweighted`` counts
    answers to which some part does not apply. ``mean_shift`` is ``None`` without both first and later ratings.
    ``carried`` lists the sources of carried ratings, newest first."""

    label: FigureLabel
    weight: float
    missing: tuple[MissingPart, ...]
    weights: Mapping[str, float]
    reweighted: int
    judge_only: Figure
    reviewed: Figure
    corrected: Figure
    corrected_this_run: Figure
    part_only: Figure | None
    answers: int
    questions: int
    reviewed_answers: int
    overrides: int
    unresolved: int
    examples: bool
    mean_shift: float | None
    carried: tuple[CarriedFrom, ...]


def overall_scores(basis: ReportInputs) -> OverallScores:
    """Compute the overall scores, or why each is withheld.

    An unfinished run has none. A run that lacks parts of the profile has only a partial figure."""
    run, machine = basis.run, basis.machine
    values_by_metric, reviewed_answers = basis.sides.run_values.human_values, basis.sides.run_values.reviewed
    values = [value for by_answer in values_by_metric.values() for value in by_answer.values()]
    n = len(basis.sides.machine.answers)
    judge_only = _overall_figure(run, machine, n)
    partial = machine.outcome.label in {FigureLabel.RULES_ONLY, FigureLabel.PARTIAL}
    return OverallScores(
        label=machine.outcome.label,
        weight=machine.outcome.weight,
        missing=machine.outcome.missing,
        weights=machine.outcome.weights_used,
        reweighted=0 if partial else count_reweighted(basis.profile, machine.answers),
        judge_only=judge_only,
        reviewed=_overall_figure(run, basis.reviewed, n) if reviewed_answers else withheld(Withheld.NOT_REVIEWED, n),
        corrected=corrected_score(basis, Target.QUESTIONS_LIKE_THESE),
        corrected_this_run=corrected_score(basis, Target.THIS_RUN),
        part_only=machine.figure if partial and run.state in Run.ENDED and not machine.figure.withheld else None,
        answers=n,
        questions=len({answer.question_id for answer in basis.evidence.answers.values()}),
        reviewed_answers=len(reviewed_answers),
        overrides=sum(value.source is ValueSource.OVERRIDE for value in values),
        unresolved=sum(value.unresolved for value in values),
        examples=any(row.example for row in basis.evidence.ratings),
        mean_shift=mean_shift(basis.evidence),
        carried=tuple(_carried(values_by_metric)),
    )


def _carried(values_by_metric: Mapping[int, Mapping[int, EffectiveValue]]) -> Iterator[CarriedFrom]:
    by_set: dict[int, dict[int, list[RatingOrigin]]] = {}
    for values_by_answer in values_by_metric.values():
        for answer, value in values_by_answer.items():
            if origin := value.carried:
                by_set.setdefault(origin.answer_set_id, {}).setdefault(answer, []).append(origin)
    for pk, by_answer in sorted(by_set.items(), reverse=True):
        origins = [source for answer_origins in by_answer.values() for source in answer_origins]
        rating_times = [source.at for source in origins]
        yield CarriedFrom(
            pk, origins[0].run_id, origins[0].system, len(by_answer), min(rating_times), max(rating_times)
        )


def carried_in_words(scores: OverallScores) -> str:
    """Sources and age of carried ratings. Empty if there are none."""
    return "; ".join(
        ngettext(
            "%(count)d answer, same as in run #%(run)d (%(system)s), rated %(day)s (%(age)s ago)",
            "%(count)d answers, same as in run #%(run)d (%(system)s), rated since %(day)s (%(age)s ago)",
            source.answers,
        )
        % {"count": source.answers, "run": source.run_id, "system": source.system, **day_and_age(source.oldest)}
        for source in scores.carried
    )


def reviewed_score(run: Run) -> Figure:
    """Current reviewed score, which equals the judge-only score without reviews."""
    basis = load_inputs(run)
    return _overall_figure(run, basis.reviewed, len(basis.evidence.answers))


def weights_in_words(scores: OverallScores, metrics: Sequence[MetricLine]) -> str:
    """Explain weights that differ from the profile's because parts do not apply. Empty if none differ."""
    language, remarks = get_language() or "en", []
    titles = {line.name: line.title.in_language(language) for line in metrics}
    if inapplicable_parts := [part for part in scores.missing if part.gap is MissingReason.NOT_APPLICABLE]:
        parts = ", ".join(
            f"{titles.get(part.metric, part.metric)} ({100 * part.weight:.0f}%)" for part in inapplicable_parts
        )
        text = gettext("not applicable to any answer: %(parts)s (other weights scaled up)")
        remarks.append(text % {"parts": parts})
    if scores.reweighted:
        text = gettext("a part does not apply to %(count)d of %(answers)d answers, so the others weigh more")
        remarks.append(text % {"count": scores.reweighted, "answers": scores.answers})
    return "; ".join(remarks)


def _overall_figure(run: Run, side: SideScore, n: int) -> Figure:
    """The side's figure, withheld unless it is a complete overall score."""
    if run.state not in Run.ENDED:
        return withheld(Withheld.NOT_FINISHED, n)
    label = side.outcome.label
    if side.figure.withheld or label is FigureLabel.OVERALL_SCORE:
        return side.figure
    return dataclasses.replace(withheld(str(label), n), worst=side.figure.worst, best=side.figure.best)


def corrected_score(basis: ReportInputs, target: Target) -> Figure:
    """Corrected overall score, or why it is withheld."""
    n, outcome = len(basis.evidence.answers), basis.machine.outcome
    if basis.run.state not in Run.ENDED:
        return withheld(Withheld.NOT_FINISHED, n)
    if outcome.label is not FigureLabel.OVERALL_SCORE:
        return withheld(outcome.reason or str(outcome.label), n)
    return basis.correction.overall(basis.profile, basis.machine, target)


def mean_shift(evidence: RunEvidence) -> float | None:
    """Mean change from blind first to latest ratings, as a share of the scale. ``None`` without both.

    It explains why reviewed and corrected scores differ although everything is reviewed."""
    widths = {pk: evidence.metrics[pk].read_scale().width for pk in evidence.blind_by_metric}
    changes: list[float] = []
    for key, rows in evidence.blind.items():
        before = [row.value for row in rows if row.value is not None]
        after = [row.value for row in evidence.latest.get(key, []) if row.value is not None]
        if before and after and (width := widths[key[1]]):
            changes.append((sum(after) / len(after) - sum(before) / len(before)) / width)
    return sum(changes) / len(changes) if changes else None


OVERALL = "overall"
# In display order.
ESTIMATE_NAMES = ("judge_only", "reviewed", "corrected", "corrected_this_run")
#: Keys of every estimate; null if not applicable.
ESTIMATE_KEYS = ("value", "low", "high", "target", "n", "labels", "effective_labels", "lambda", "method")


@dataclass(frozen=True, slots=True)
class ScoreEstimates:
    """Judge-only, reviewed and corrected estimates of a figure. ``rated`` counts answers with an expert's value.

    ``corrected`` has an interval for questions like these, ``corrected_this_run`` one for this run."""

    judge_only: Figure
    reviewed: Figure
    corrected: Figure
    corrected_this_run: Figure
    rated: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Map each estimate to all of :data:`ESTIMATE_KEYS`, or to ``withheld`` with the reason and what is missing."""
        labels = {"judge_only": 0, "reviewed": self.rated}
        return {name: _estimate(figure, labels.get(name)) for name, figure in self.by_name()}

    def by_name(self) -> list[tuple[str, Figure]]:
        return [(name, getattr(self, name)) for name in ESTIMATE_NAMES]


@dataclass(frozen=True, slots=True)
class CorrectionSheet:
    """All estimates of a run by metric name, with the overall score under ``overall``, and again by category."""

    run_id: int
    estimates: Mapping[str, ScoreEstimates]
    by_category: Mapping[str, Mapping[str, ScoreEstimates]]

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"run", "overall": {...}, "metrics": {name: {...}}, "by_category": {name: {"overall",
        "metrics"}}}``."""
        document = {"run": self.run_id, **_sheet(self.estimates)}
        if self.by_category:
            document["by_category"] = {name: _sheet(estimates) for name, estimates in self.by_category.items()}
        return document


def correction_sheet(basis: ReportInputs, *, by_category: bool = False) -> CorrectionSheet:
    """Compute current estimates of a run, without bootstrap."""
    scores = overall_scores(basis)
    estimates = {
        OVERALL: ScoreEstimates(
            **{name: getattr(scores, name) for name in ESTIMATE_NAMES}, rated=scores.reviewed_answers
        )
    }
    estimates |= {line.name: _metric_estimates(basis, line) for line in metric_lines(basis)}
    parts = category_lines(basis) if by_category else ()
    return CorrectionSheet(basis.run.pk, estimates, {line.name: _category_estimates(basis, line) for line in parts})


def _metric_estimates(basis: ReportInputs, line: MetricLine) -> ScoreEstimates:
    metric = basis.evidence.metrics[line.metric_id]
    this_run = basis.correction.of_metric(metric, target=Target.THIS_RUN)
    return ScoreEstimates(line.judge_only, line.reviewed, line.corrected, this_run, _rated_count(basis, line.metric_id))


def _category_estimates(basis: ReportInputs, line: CategoryLine) -> dict[str, ScoreEstimates]:
    side = basis.sides.machine.subset(places_by_category(basis.sides.machine.answers)[line.name])
    machine, answers = (
        score_side(basis.profile, side, all_parts=True),
        frozenset(answer.answer_id for answer in side.answers),
    )
    this_run = corrected_category_score(basis, machine, line.name, Target.THIS_RUN)
    reviewed_answers = basis.sides.run_values.reviewed & answers
    estimates = {
        OVERALL: ScoreEstimates(line.judge_only, line.reviewed, line.corrected_overall, this_run, len(reviewed_answers))
    }
    for pk in sorted(basis.evidence.computed, key=lambda pk: basis.evidence.metrics[pk].name):
        metric = basis.evidence.metrics[pk]
        judge_only, reviewed = line.metrics[metric.name]
        this_run = basis.correction.of_metric(metric, line.name, Target.THIS_RUN)
        rated = _rated_count(basis, pk, answers)
        reviewed = reviewed if rated else withheld(Withheld.NOT_REVIEWED)
        estimates[metric.name] = ScoreEstimates(judge_only, reviewed, line.corrected[metric.name], this_run, rated)
    return estimates


def _rated_count(basis: ReportInputs, metric_id: int, answers: frozenset[int] | None = None) -> int:
    """Number of answers with an expert's value of the metric."""
    values = basis.sides.run_values.human_values.get(metric_id, {})
    return sum(value.human and (answers is None or answer in answers) for answer, value in values.items())


def _sheet(estimates: Mapping[str, ScoreEstimates]) -> dict[str, Any]:
    return {
        OVERALL: estimates[OVERALL].to_dict(),
        "metrics": {name: estimate.to_dict() for name, estimate in estimates.items() if name != OVERALL},
    }


def _estimate(figure: Figure, labels: int | None = None) -> dict[str, Any]:
    document: dict[str, Any] = plain(figure)
    if figure.withheld:
        return document
    if labels is not None:
        document |= {"labels": labels, "effective_labels": None, "lambda": None, "method": "mean"}
    return {key: document.get(key) for key in ESTIMATE_KEYS} | document
