"""Release difference of two runs: what changed, what is known about it, and how much more to rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evaluation.metrics.catalogue import is_rule_metric, rule_metric_named
from evaluation.models import MetricDefinition
from evaluation.profiles.arithmetic import FigureLabel
from evaluation.profiles.spec import OverallUnit
from review.queues.planning import TARGET_HALF_WIDTHS
from review.releases.changes import AnsweredQuestion, answered_questions, same_questions
from review.releases.labels import PairDraw, PairLabels, PartBuilder, Release, is_exact, newest_pair_draw
from review.reports.figure import Figure, Withheld, plain, to_figure, withheld
from review.reports.inputs import ReportInputs
from review.reports.scores import score_side
from review.statistics.correction.frame import ReviewState
from review.statistics.precision import PlannedStratum, labels_for_width, standard_deviation
from review.statistics.release_difference import PairedPart, release_difference

VERSIONS_DIFFER, LATENCY_COUNTS = "metric_versions_differ", "latency_in_score"
# Standard deviation of a difference, as a share of the scale, until enough pairs are rated: root 2 times the guess of
# the judge's error in one answer.
GUESSED_DEVIATION = 0.25 * math.sqrt(2.0)
MIN_PAIRS_FOR_DEVIATION = 10


@dataclass(frozen=True, slots=True)
class MarginPlan:
    """Number of changed questions to rate in both runs, besides those rated already, for a half-width ``margin``."""

    margin: float
    questions: int


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """What changed between two runs over the same questions, and the difference for exactly these questions.

    Of ``questions``, ``changed`` have different answers: ``rated_both`` of these are rated in both runs by the same
    reviewers, ``rated_one`` otherwise (one of the answers, or by different people), the others not at all. ``waiting``
    are drawn questions that nobody was served in both runs yet, in the queue ``queue_id`` of the newest draw.
    ``rounds_left`` counts the planned rounds after it, ``None`` before the first. ``guessed``: the plans rest on a
    guess."""

    questions: int
    changed: int
    rated_both: int
    rated_one: int
    waiting: int
    queue_id: int | None
    figure: Figure
    rounds_left: int | None = None
    plans: tuple[MarginPlan, ...] = ()
    guessed: bool = False

    @property
    def unrated(self) -> int:
        """Changed questions without any rating."""
        return self.changed - self.rated_both - self.rated_one

    @property
    def decides(self) -> bool:
        """Return whether there is an interval, so that this difference leads."""
        return self.figure.low is not None

    def to_dict(self) -> dict[str, Any]:
        """JSON form: counts, ``difference`` as a figure, and ``plans``."""
        return {
            "questions": self.questions,
            "changed": self.changed,
            "rated": {"both": self.rated_both, "one": self.rated_one, "none": self.unrated},
            "waiting": self.waiting,
            "queue": self.queue_id,
            "rounds_left": self.rounds_left,
            "difference": plain(self.figure),
            "plans": [{"margin": plan.margin, "questions": plan.questions} for plan in self.plans],
            "guessed": self.guessed,
        }


@dataclass(frozen=True, slots=True)
class Releases:
    """Two runs over the same questions, paired: their questions, labels, and the parts of the score that both have.

    ``draw`` is the newest one among the changed questions. ``metrics`` are those of the parts. ``reason`` is a code if
    the scores cannot be compared; there are no parts then."""

    questions: Sequence[AnsweredQuestion]
    labels: PairLabels
    draw: PairDraw | None
    parts: tuple[PairedPart, ...] = ()
    metrics: tuple[MetricDefinition, ...] = ()
    reason: str = ""

    @property
    def changed(self) -> list[AnsweredQuestion]:
        return [question for question in self.questions if question.changed]


def pair_releases(current: ReportInputs, baseline: ReportInputs, *, standing: bool = False) -> Releases | None:
    """Pair two runs; ``None`` unless they have different answers to one version of a question set.

    The score is that of the current run's profile. ``standing``: ratings count as for a new draw, whatever earlier
    draws took."""
    if not same_questions(current, baseline):
        return None
    new, old = (Release(basis, score_side(current.profile, basis.sides.machine)) for basis in (current, baseline))
    draw = newest_pair_draw(current, baseline)
    labels = PairLabels(new, old, None if standing else draw)
    releases = Releases(answered_questions(current, baseline), labels, draw)
    for release in (new, old):
        outcome = release.score.outcome
        if outcome.label is not FigureLabel.OVERALL_SCORE:
            return replace(releases, reason=outcome.reason or str(outcome.label))
    weights = _part_weights(new, old)
    metrics, old_metrics = (_computed_metrics(release) for release in (new, old))
    if any(name not in metrics or metrics[name] != old_metrics.get(name) for name in weights):
        return replace(releases, reason=VERSIONS_DIFFER)
    if all(is_exact(metrics[name]) for name in weights):
        return replace(releases, reason=str(Withheld.RULES_ONLY))
    if any(is_rule_metric(name) and "latency" in rule_metric_named(name).spec.inputs for name in weights):
        return replace(releases, reason=LATENCY_COUNTS)
    builder = PartBuilder(current.profile, new, old, labels)
    parts = (builder.part(metrics[name], weight, releases.questions) for name, weight in weights.items())
    return replace(
        releases,
        parts=tuple(part for part in parts if part is not None),
        metrics=tuple(metrics[name] for name in weights),
    )


def _part_weights(new: Release, old: Release) -> dict[str, float]:
    """Weight of each part in the score; 1 in per-answer profiles, whose contributions are weighted."""
    if new.basis.profile.unit is OverallUnit.PER_ANSWER:
        names = (name for release in (new, old) for score in release.score.answers for name in score.weights_used)
        return dict.fromkeys(names, 1.0)
    return dict(new.score.outcome.weights_used) | {
        name: weight
        for name, weight in old.score.outcome.weights_used.items()
        if name not in new.score.outcome.weights_used
    }


def _computed_metrics(release: Release) -> dict[str, MetricDefinition]:
    evidence = release.basis.evidence
    return {evidence.metrics[pk].name: evidence.metrics[pk] for pk in evidence.computed}


def find_release_difference(
    current: ReportInputs, baseline: ReportInputs, confidence: float = 0.95
) -> ReleaseDifference | None:
    """Release difference of two runs; ``None`` unless they have different answers to one version of a question set.

    A handful of queries."""
    releases = pair_releases(current, baseline)
    return None if releases is None else describe_difference(releases, confidence)


def describe_difference(releases: Releases, confidence: float = 0.95) -> ReleaseDifference:
    """Count what changed and what is rated, and estimate the difference."""
    changed, questions = releases.changed, len(releases.questions)
    judged = [part for part in releases.parts if part.component.judged]
    both = _questions_in_state(judged, ReviewState.RATED)
    rated = {question.question_id for question in changed if releases.labels.rated_answers(question)}
    figure = difference_figure(releases, confidence)
    plans, guessed = _plans(judged, questions, confidence, figure) if judged else ((), False)
    return ReleaseDifference(
        questions=questions,
        changed=len(changed),
        rated_both=len(both),
        rated_one=len(rated - both),
        waiting=len(_questions_in_state(judged, ReviewState.NOT_REACHED)),
        queue_id=releases.draw.queue_id if releases.draw else None,
        rounds_left=max(0, releases.draw.looks - releases.draw.number) if releases.draw else None,
        figure=figure,
        plans=plans,
        guessed=guessed,
    )


def difference_figure(releases: Releases, confidence: float) -> Figure:
    """The difference for these questions, new run minus old one, or why there is none.

    The error is shared over the planned rounds. A round that was not planned allows no verdict."""
    if releases.reason:
        return withheld(releases.reason, len(releases.questions))
    looks, number = (releases.draw.looks, releases.draw.number) if releases.draw else (1, 1)
    shared = 1.0 - (1.0 - confidence) / looks
    figure = to_figure(release_difference(releases.parts, len(releases.questions), shared))
    return replace(figure, extra={**figure.extra, "looks": looks, "planned": number <= looks})


def _questions_in_state(parts: Sequence[PairedPart], state: ReviewState) -> set[str]:
    """Changed questions that have the state in any of the parts."""
    return {
        str(part.component.frame.names[position])
        for part in parts
        for position in np.flatnonzero(part.component.frame.state == state).tolist()
    }


def _plans(
    parts: Sequence[PairedPart], questions: int, confidence: float, figure: Figure
) -> tuple[tuple[MarginPlan, ...], bool]:
    """Numbers of further pairs for the usual margins, and whether the deviation of a difference is a guess.

    Rated pairs are certain in the next draw. Margins that are reached already are left out."""
    deviation = _deviation(parts)
    frame = max((part.component.frame for part in parts), key=len)
    rated = int(frame.labelled.sum())
    if not (open_questions := len(frame) - rated):
        return (), False
    stratum = PlannedStratum("", open_questions, GUESSED_DEVIATION if deviation is None else deviation)
    reached = math.inf if figure.low is None or figure.high is None else (figure.high - figure.low) / 2.0
    by_number: dict[int, float] = {}
    for margin in TARGET_HALF_WIDTHS:
        if margin < reached:
            plan = labels_for_width([stratum], margin * questions / len(frame), confidence, certain=rated)
            by_number[plan.labels] = margin
    return tuple(MarginPlan(margin, needed) for needed, margin in sorted(by_number.items())), deviation is None


def _deviation(parts: Sequence[PairedPart]) -> float | None:
    """Standard deviation of the rated differences of the score, with the judge's differences taken off if that lowers
    it; ``None`` with too few, or if they are all equal."""
    ratings: dict[str, float] = {}
    residuals: dict[str, float] = {}
    rated = set.intersection(*({*_questions_in_state([part], ReviewState.RATED)} for part in parts))
    for part in parts:
        frame, weight = part.component.frame, part.component.weight
        for position, name in enumerate(map(str, frame.names)):
            if name in rated:
                rating, judge = float(frame.rating[position]), float(frame.judge[position])
                ratings[name] = ratings.get(name, 0.0) + weight * rating
                residuals[name] = residuals.get(name, 0.0) + weight * (rating - judge)
    if len(rated) < MIN_PAIRS_FOR_DEVIATION:
        return None
    known = [value for value in residuals.values() if not math.isnan(value)]
    deviations = [standard_deviation(values) for values in (list(ratings.values()), known) if len(values) > 1]
    return min((value for value in deviations if value > 0), default=None)


def fully_rated_questions(releases: Releases) -> set[str]:
    """Changed questions whose difference is known in every judged part."""
    unknown = {
        str(part.component.frame.names[position])
        for part in releases.parts
        if part.component.judged
        for position in np.flatnonzero(part.component.frame.state != ReviewState.RATED).tolist()
    }
    return {question.question_id for question in releases.changed} - unknown


# Margin of the number of questions that the form suggests.
SUGGESTED_MARGIN = 0.03


def suggested_size(release: ReleaseDifference) -> int:
    """Number of changed questions for a margin of at most 0.03, or the largest planned number."""
    sizes = [plan.questions for plan in release.plans if plan.margin <= SUGGESTED_MARGIN]
    return min(sizes, default=max((plan.questions for plan in release.plans), default=0))
