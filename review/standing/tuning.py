"""Tuning to the ratings: changes between two releases, and the score of never-rated questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.core.metric_specs import MetricKind
from review.evidence.answers import RunAnswer
from review.evidence.carried import equal_answers
from review.models import FrameMember
from review.models.queue_spec import CRITERIA_PER_ANSWER
from review.reports.figure import Figure, Withheld, add_constant, withheld
from review.reports.inputs import MetricLabels, ReportInputs
from review.statistics.agreement.statistic import Array
from review.statistics.correction.frame import Component, frame_strata
from review.statistics.correction.outcome import Target
from review.statistics.sampling.draw import CHANGED
from review.statistics.sampling.member import Inclusion
from review.statistics.standing import NeverRated, never_rated_score, score_levels


@dataclass(frozen=True, slots=True)
class ReleaseStep:
    """Changes from one release to the next, for each answer of the former to a question of both.

    ``changed``: the next release gives no equal answer. ``rated``: somebody had rated the answer, or an equal one,
    before the next release. ``levels``: the judge's level and the category. Answers that were rated without being
    sampled at random are left out; ``changed_answers`` counts them too."""

    changed: tuple[bool, ...]
    rated: tuple[bool, ...]
    levels: tuple[tuple[int, str], ...]
    changed_answers: int


def release_step(before: ReportInputs, after: ReportInputs) -> ReleaseStep:
    """Compare the answers of two releases."""
    questions = {row.question_pk for row in after.evidence.answers.values()}
    answers = [row for row in before.evidence.answers.values() if not row.failed and row.question_pk in questions]
    pairs = equal_answers(after.run.answer_set_id, before.run.answer_set_id)
    unchanged = {earlier for current, earlier in pairs if current in after.evidence.answers}
    rated, sampled = _rated_answers(before, after), _random_answers(before)
    levels = score_levels(_judge_scores(before, answers)).tolist()
    tested = [
        (row.answer_id not in unchanged, row.answer_id in rated, (level, row.category))
        for row, level in zip(answers, levels, strict=True)
        if row.answer_id not in rated or row.answer_id in sampled
    ]
    changed, rated_flags, tested_levels = zip(*tested, strict=True) if tested else ((), (), ())
    changed_answers = sum(row.answer_id not in unchanged for row in answers)
    return ReleaseStep(changed, rated_flags, tested_levels, changed_answers)


def _judge_scores(basis: ReportInputs, answers: Sequence[RunAnswer]) -> Array:
    """Mean of the judged metrics of each answer, as shares of their scales; NaN without any."""
    scales = {
        pk: metric.read_scale()
        for pk, metric in basis.evidence.metrics.items()
        if metric.kind not in {MetricKind.RULE, MetricKind.EMBEDDING} and not metric.read_scale().labels
    }
    scores = np.full(len(answers), np.nan)
    for position, answer in enumerate(answers):
        values = [
            (judged.value - scale.low) / scale.width
            for pk, scale in scales.items()
            if (judged := basis.evidence.scored.get(pk, {}).get(answer.answer_id)) and judged.value is not None
        ]
        if values:
            scores[position] = sum(values) / len(values)
    return scores


def _rated_answers(before: ReportInputs, after: ReportInputs) -> set[int]:
    """Answers that had a rating, of themselves or of an equal answer, before the later answers were collected."""
    evidence, collected_at = before.evidence, after.run.answer_set.created_at
    own = {row.answer_id for row in (*evidence.ratings, *evidence.withheld) if row.at < collected_at}
    return own | {answer for (answer, _), equal in evidence.standing.items() if equal.origin.at < collected_at}


def _random_answers(basis: ReportInputs) -> set[int]:
    """Answers whose rating, if any, goes back to a random sample."""
    sampled = {
        answer
        for labels in basis.correction.labels.values()
        for sample_round in labels.samples.rounds
        for answer, place in sample_round.inclusions.items()
        if place.sampled and place.probability is not None
    }
    return sampled | {answer for answer, _ in basis.evidence.standing}


def score_despite_tuning(basis: ReportInputs, earlier: Sequence[ReportInputs], confidence: float = 0.95) -> Figure:
    """Score for questions like these, from the questions that nobody had rated before this release."""
    n = len(basis.evidence.answers)
    escape = _escape_chances(earlier)
    rated = {question for previous in earlier for question in _rated_questions(previous, basis)}
    components = [
        _never_rated(component, basis, rated, escape)
        for component in basis.correction.components(basis.profile, basis.machine)
    ]
    usable = [component for component in components if component is not None]
    estimate = never_rated_score(usable, confidence) if len(usable) == len(components) else None
    if estimate is None:
        return withheld(Withheld.TUNED, n)
    extra = {"labels": estimate.labels, "method": "never_rated"}
    target = str(Target.QUESTIONS_LIKE_THESE)
    figure = Figure(estimate.value, estimate.low, estimate.high, target, n, extra=extra)
    return add_constant(figure, basis.profile.constant)


def _rated_questions(previous: ReportInputs, basis: ReportInputs) -> set[int]:
    answers = previous.evidence.answers
    return {answers[key].question_pk for key in _rated_answers(previous, basis) if key in answers}


def _escape_chances(earlier: Sequence[ReportInputs]) -> dict[int, float]:
    """Chance that no earlier release had the question rated: the product of 1 - p over the releases."""
    chances: dict[int, float] = {}
    for basis in earlier:
        for probabilities in (_rating_probabilities(basis), _pair_probabilities(basis)):
            for answer, probability in probabilities.items():
                question = basis.evidence.answers[answer].question_pk
                chances[question] = chances.get(question, 1.0) * (1.0 - probability)
    return chances


def _pair_probabilities(basis: ReportInputs) -> dict[int, float]:
    """Chance of each answer to be drawn as one that changed since an earlier release, and reached. One query.

    Several samples of a question are drawn together, so that one of them stands for all."""
    members = FrameMember.objects.filter(
        draw__run__answer_set=basis.run.answer_set_id,
        draw__baseline__isnull=False,
        answer__answer_set=basis.run.answer_set_id,
        stratum=CHANGED,
    )
    rated = {row.answer_id for row in (*basis.evidence.ratings, *basis.evidence.withheld)}
    by_draw: dict[int, list[tuple[int, float, bool]]] = {}
    rows = members.order_by("pk").values_list("draw", "answer", "probability", "sampled")
    for draw, answer, probability, is_sampled in rows:
        by_draw.setdefault(draw, []).append((answer, probability or 0.0, is_sampled))
    escapes: dict[int, float] = {}
    for draw_members in by_draw.values():
        sampled = [answer for answer, _, is_sampled in draw_members if is_sampled]
        reached = len(rated.intersection(sampled)) / len(sampled)
        by_question = {
            basis.evidence.answers[answer].question_pk: (answer, probability)
            for answer, probability, _ in draw_members
            if answer in basis.evidence.answers
        }
        for answer, probability in by_question.values():
            escapes[answer] = escapes.get(answer, 1.0) * (1.0 - probability * reached)
    return {answer: 1.0 - escape for answer, escape in escapes.items()}


def _rating_probabilities(basis: ReportInputs) -> dict[int, float]:
    """Chance of each answer to be sampled and reached for any metric, in any round.

    Where criteria rotate, each sampled answer gets the same number of them, so the chances by metric add up to as many
    times the answer's."""
    by_answer: dict[int, list[float]] = {}
    for labels in basis.correction.labels.values():
        for answer, escape in _metric_escapes(labels).items():
            if answer in basis.evidence.answers:
                by_answer.setdefault(answer, []).append(1.0 - escape)
    rotated = any(draw.metric_id is not None for draw in basis.samples.draws)
    return {
        answer: min(1.0, max(max(chances), sum(chances) / CRITERIA_PER_ANSWER if rotated else 0.0))
        for answer, chances in by_answer.items()
    }


def _metric_escapes(labels: MetricLabels) -> dict[int, float]:
    """Chance of each answer that no round had it rated for a metric."""
    escapes: dict[int, float] = {}
    served = labels.means.keys() | labels.silent
    for sample_round in labels.samples.rounds:
        reached = _reached_shares(sample_round.inclusions, served)
        for answer, place in sample_round.inclusions.items():
            chance = (place.probability or 0.0) * reached.get(place.stratum, 0.0)
            escapes[answer] = escapes.get(answer, 1.0) * (1.0 - chance)
    return escapes


def _reached_shares(places: Mapping[int, Inclusion], served: Collection[int]) -> dict[str, float]:
    """Share of the sampled answers of each stratum that reviewers came to."""
    counts: dict[str, list[int]] = {}
    for answer, place in places.items():
        if place.sampled:
            count = counts.setdefault(place.stratum, [0, 0])
            count[0] += answer in served
            count[1] += 1
    return {stratum: reached / sampled for stratum, (reached, sampled) in counts.items()}


def _never_rated(
    component: Component, basis: ReportInputs, rated: Collection[int], escape: Mapping[int, float]
) -> NeverRated | None:
    """Never-rated questions of a component; ``None`` if there are none. Questions that could not have escaped represent
    no others."""
    question_by_answer = {key: answer.question_pk for key, answer in basis.evidence.answers.items()}
    questions = [question_by_answer[int(str(key))] for key in component.frame.keys]
    chances = np.array([0.0 if question in rated else escape.get(question, 1.0) for question in questions])
    positions = np.flatnonzero(chances > 0.0)
    if not len(positions):
        return None
    frame = component.frame.take(positions)
    inclusion, labelled = np.ones(len(frame)), np.zeros(len(frame), dtype=np.bool_)
    for stratum in frame_strata(frame):
        inclusion[stratum.labelled], labelled[stratum.labelled] = stratum.inclusion, True
    return NeverRated(
        judge=frame.judge,
        rating=np.where(labelled, frame.rating, np.nan),
        escape=chances[positions],
        probability=inclusion,
        group=frame.group,
        slope=component.slope or 0.0,
        weight=component.weight,
        low=component.low,
        high=component.high,
        exact=not component.judged,
    )
