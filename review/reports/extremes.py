"""What to look at first: the answers with the lowest scores, and where judge and experts are furthest apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.profiles.means import on_unit_scale
from evaluation.profiles.spec import ProfileSpec, Unit
from review.evidence.effective import Effective
from review.evidence.judged import Key
from review.evidence.run_evidence import Said
from review.evidence.scorers import title_of
from review.reports.report import AnswerLine, Disagreement
from review.reports.scores import SideScore
from review.reports.values import Side

SHOWN = 10


def answer_lines(
    profile: ProfileSpec, said: Said, reviewed: Side, score: SideScore, found: Mapping[Key, Effective]
) -> tuple[AnswerLine, ...]:
    """Every answer with its effective values and its score."""
    by_answer: dict[int, dict[str, Effective]] = {answer_id: {} for answer_id in said.answers}
    for (answer_id, metric_id), value in found.items():
        by_answer[answer_id][said.names[metric_id]] = value
    own = own_scores(profile, reviewed, score)
    return tuple(
        AnswerLine(answer, by_answer[answer.answer_id], own[at]) for at, answer in enumerate(said.answers.values())
    )


def own_scores(profile: ProfileSpec, side: Side, score: SideScore) -> list[float | None]:
    """Per answer: the profile's own score of it, or for run-mean profiles the weighted mean of the parts it has."""
    if profile.unit is Unit.PER_ANSWER:
        return [one.value for one in score.answers]
    total = [0.0] * len(side.answers)
    weight = [0.0] * len(side.answers)
    for part in profile.parts:
        metric = side.metrics.get(part.metric)
        if metric is None:
            continue
        for at, value in enumerate(metric.values):
            if value.value is not None:
                unit = on_unit_scale(profile, part, value.value, metric.scale.low, metric.scale.high)
                total[at] += part.weight * unit
                weight[at] += part.weight
    return [t / w if w else None for t, w in zip(total, weight, strict=True)]


def worst_answers(lines: Sequence[AnswerLine]) -> tuple[AnswerLine, ...]:
    """The answers with the lowest scores, the lowest first; perfect ones are not listed."""
    scored = [line for line in lines if line.score is not None and line.score < 1]
    return tuple(sorted(scored, key=lambda line: line.score or 0.0)[:SHOWN])


def disagreements(said: Said, found: Mapping[Key, Effective]) -> tuple[Disagreement, ...]:
    """Where a person's value is furthest from the primary judge's, by the share of the scale between them."""
    far: list[Disagreement] = []
    for (answer_id, metric_id), value in found.items():
        ours = value.judged.answer if value.judged else None
        theirs = value.label if value.value is None else value.value
        if not value.human or ours is None or theirs is None:
            continue
        metric = said.metrics[metric_id]
        distance = _distance(ours, theirs, metric.read_scale().width)
        if distance > 0:
            answer, name = said.answers[answer_id], said.names[metric_id]
            far.append(Disagreement(answer, name, title_of(metric), ours, theirs, value.raters, distance))
    return tuple(sorted(far, key=lambda one: -one.distance)[:SHOWN])


def _distance(ours: float | str, theirs: float | str, width: float) -> float:
    if isinstance(ours, str) or isinstance(theirs, str):
        return float(ours != theirs)
    return abs(ours - theirs) / width
