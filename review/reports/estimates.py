"""The overall score and every metric three ways, judge only, reviewed and corrected, over the run and by category."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import get_language, gettext, ngettext

from evaluation.models import Run
from evaluation.profiles.arithmetic import Gap, Label, MissingPart
from evaluation.profiles.per_answer import reweighted
from review.evidence.carried import Origin
from review.evidence.effective import Effective, Said, Source
from review.reports.figure import Figure, Withheld, day_and_age, plain, withheld
from review.reports.gathering import Gathered, gather
from review.reports.lines import CategoryLine, MetricLine, category_lines, corrected_of_category, metric_lines
from review.reports.scores import SideScore, by_category, score_side
from review.statistics.correction.outcome import Target


@dataclass(frozen=True, slots=True)
class CarriedFrom:
    """An earlier answer set whose ratings count here: the newest run over it, the system that answered, how many of our
    answers have a value from it, and when the oldest and the newest of its ratings were given."""

    answer_set_id: int
    run_id: int
    system: str
    answers: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class ThreeScores:
    """The overall score three ways; ``sections.OVERALL`` says what each field means. A ``rules_only`` or ``partial``
    figure is shown with its weight ("rules only, weight 0.40") and stands in ``part_only``, the three being withheld
    with that label. ``missing`` names the parts left out, ``weights`` are those in use (empty where every answer has
    its own), ``reweighted`` counts answers to which a part did not apply, so that the others weigh more there.
    ``mean_shift`` is ``None`` without ratings of both kinds. ``carried`` tells whose ratings count for being of equal
    answers, the newest first."""

    label: Label
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


def three_scores(basis: Gathered) -> ThreeScores:
    """The three overall scores, or why each is withheld. A run that is not finished has none; one without all parts
    of the profile has only a figure labelled as partial, never an overall score."""
    run, machine = basis.run, basis.machine
    heard, human = basis.sides.found.heard, basis.sides.found.reviewed
    values = [value for of_answers in heard.values() for value in of_answers.values()]
    n = len(basis.sides.machine.answers)
    judge_only = _named(run, machine, n)
    partial = machine.outcome.label in {Label.RULES_ONLY, Label.PARTIAL}
    return ThreeScores(
        label=machine.outcome.label,
        weight=machine.outcome.weight,
        missing=machine.outcome.missing,
        weights=machine.outcome.weights_used,
        reweighted=0 if partial else reweighted(basis.profile, machine.answers),
        judge_only=judge_only,
        reviewed=_named(run, basis.reviewed, n) if human else withheld(Withheld.NOT_REVIEWED, n),
        corrected=_corrected(basis, Target.QUESTIONS_LIKE_THESE),
        corrected_this_run=_corrected(basis, Target.THIS_RUN),
        part_only=machine.figure if partial and run.state in Run.ENDED and not machine.figure.withheld else None,
        answers=n,
        questions=len({answer.question_id for answer in basis.said.answers.values()}),
        reviewed_answers=len(human),
        overrides=sum(value.source is Source.OVERRIDE for value in values),
        unresolved=sum(value.unresolved for value in values),
        examples=any(row.example for row in basis.said.ratings),
        mean_shift=mean_shift(basis.said),
        carried=tuple(_carried(heard)),
    )


def _carried(heard: Mapping[int, Mapping[int, Effective]]) -> Iterator[CarriedFrom]:
    by_set: dict[int, dict[int, list[Origin]]] = {}
    for of_answers in heard.values():
        for answer, value in of_answers.items():
            if origin := value.carried:
                by_set.setdefault(origin.answer_set_id, {}).setdefault(answer, []).append(origin)
    for pk, by_answer in sorted(by_set.items(), reverse=True):
        origins = [one for several in by_answer.values() for one in several]
        given = [one.at for one in origins]
        yield CarriedFrom(pk, origins[0].run_id, origins[0].system, len(by_answer), min(given), max(given))


def carried_in_words(scores: ThreeScores) -> str:
    """From where ratings of equal answers come, and how old they are; empty where there are none."""
    return "; ".join(
        ngettext(
            "%(count)d answer as in run #%(run)d (%(system)s), rated on %(day)s, %(age)s ago",
            "%(count)d answers as in run #%(run)d (%(system)s), rated since %(day)s, %(age)s ago",
            one.answers,
        )
        % {"count": one.answers, "run": one.run_id, "system": one.system, **day_and_age(one.oldest)}
        for one in scores.carried
    )


def reviewed_score(run: Run) -> Figure:
    """The overall score with people's values where there are any, as it stands now; what the judge says without any."""
    basis = gather(run)
    return _named(run, basis.reviewed, len(basis.said.answers))


def weights_in_words(scores: ThreeScores, metrics: Sequence[MetricLine]) -> str:
    """That the weights in use are not the profile's, because parts do not apply; empty where they are."""
    language, found = get_language() or "en", []
    titles = {line.name: line.title.in_language(language) for line in metrics}
    if gone := [one for one in scores.missing if one.gap is Gap.NOT_APPLICABLE]:
        parts = ", ".join(f"{titles.get(one.metric, one.metric)} ({100 * one.weight:.0f}%)" for one in gone)
        text = gettext("applies to no answer here: %(parts)s; the other weights were scaled up to take its place")
        found.append(text % {"parts": parts})
    if scores.reweighted:
        text = gettext("in %(count)d of %(answers)d answers a part does not apply and the others weigh more")
        found.append(text % {"count": scores.reweighted, "answers": scores.answers})
    return "; ".join(found)


def _named(run: Run, side: SideScore, n: int) -> Figure:
    """The side's figure where it may be called the overall score."""
    if run.state not in Run.ENDED:
        return withheld(Withheld.NOT_FINISHED, n)
    label = side.outcome.label
    if side.figure.withheld or label is Label.OVERALL_SCORE:
        return side.figure
    return dataclasses.replace(withheld(str(label), n), worst=side.figure.worst, best=side.figure.best)


def _corrected(basis: Gathered, target: Target) -> Figure:
    n, outcome = len(basis.said.answers), basis.machine.outcome
    if basis.run.state not in Run.ENDED:
        return withheld(Withheld.NOT_FINISHED, n)
    if outcome.label is not Label.OVERALL_SCORE:
        return withheld(outcome.reason or str(outcome.label), n)
    return basis.correction.overall(basis.profile, basis.machine, target)


def mean_shift(said: Said) -> float | None:
    """The mean change from experts' blind first ratings to their last ones, as a share of the scale: it explains why
    reviewed and corrected differ when everything is reviewed. ``None`` without ratings of both kinds."""
    widths = {pk: said.metrics[pk].read_scale().width for pk in said.blind_by_metric}
    changes: list[float] = []
    for key, rows in said.blind.items():
        before = [row.value for row in rows if row.value is not None]
        after = [row.value for row in said.latest.get(key, []) if row.value is not None]
        if before and after and (width := widths[key[1]]):
            changes.append((sum(after) / len(after) - sum(before) / len(before)) / width)
    return sum(changes) / len(changes) if changes else None


OVERALL = "overall"
WAYS = ("judge_only", "reviewed", "corrected", "corrected_this_run")  # in the order they are shown
#: What every estimate says, whoever made it; null where it means nothing for that estimate.
KEYS = ("value", "low", "high", "target", "n", "labels", "effective_labels", "lambda", "method")


@dataclass(frozen=True, slots=True)
class ThreeWays:
    """One figure three ways: what the judge said, with people's values where there are any, and what the experts
    would have said of all, the last with an interval for questions like these and one for this run. ``rated`` counts
    the answers with an expert's value."""

    judge_only: Figure
    reviewed: Figure
    corrected: Figure
    corrected_this_run: Figure
    rated: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Each estimate with all of :data:`KEYS`, or ``withheld`` with the reason and what is missing."""
        labels = {"judge_only": 0, "reviewed": self.rated}
        return {name: _estimate(figure, labels.get(name)) for name, figure in self.named()}

    def named(self) -> list[tuple[str, Figure]]:
        """The estimates with their names."""
        return [(name, getattr(self, name)) for name in WAYS]


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
    scores = three_scores(basis)
    found = {OVERALL: ThreeWays(**{name: getattr(scores, name) for name in WAYS}, rated=scores.reviewed_answers)}
    found |= {line.name: _metric(basis, line) for line in metric_lines(basis)}
    parts = category_lines(basis) if by_category else ()
    return CorrectionSheet(basis.run.pk, found, {line.name: _category(basis, line) for line in parts})


def _metric(basis: Gathered, line: MetricLine) -> ThreeWays:
    metric = basis.said.metrics[line.metric_id]
    narrow = basis.correction.of_metric(metric, target=Target.THIS_RUN)
    return ThreeWays(line.judge_only, line.reviewed, line.corrected, narrow, _people(basis, line.metric_id))


def _category(basis: Gathered, line: CategoryLine) -> dict[str, ThreeWays]:
    side = basis.sides.machine.at(by_category(basis.sides.machine.answers)[line.name])
    machine, answers = score_side(basis.profile, side, all_parts=True), frozenset(one.answer_id for one in side.answers)
    narrow = corrected_of_category(basis, machine, line.name, Target.THIS_RUN)
    people = basis.sides.found.reviewed & answers
    found = {OVERALL: ThreeWays(line.judge_only, line.reviewed, line.corrected_overall, narrow, len(people))}
    for pk in sorted(basis.said.computed, key=lambda pk: basis.said.metrics[pk].name):
        metric = basis.said.metrics[pk]
        ours, theirs = line.metrics[metric.name]
        narrow = basis.correction.of_metric(metric, line.name, Target.THIS_RUN)
        rated = _people(basis, pk, answers)
        theirs = theirs if rated else withheld(Withheld.NOT_REVIEWED)
        found[metric.name] = ThreeWays(ours, theirs, line.corrected[metric.name], narrow, rated)
    return found


def _people(basis: Gathered, metric_id: int, answers: frozenset[int] | None = None) -> int:
    """How many answers have a person's value of the metric."""
    heard = basis.sides.found.heard.get(metric_id, {})
    return sum(value.human and (answers is None or answer in answers) for answer, value in heard.items())


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
