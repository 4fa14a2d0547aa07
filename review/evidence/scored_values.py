"""What the scores that count say about answers: the value a draw is steered by and a reviewer is shown."""

from __future__ import annotations

import statistics
from collections.abc import Collection
from dataclasses import dataclass

from evaluation.core.samples import Status
from evaluation.models import Run, Score
from evaluation.scoring.writing import counting
from review.models.statements import SAID

_FIELDS = (
    *("answer_id", "metric_id", "status", "value", "label", "reason", "author", "detail"),
    *("judge_version__name", "judge_version__version", "judge_version__endpoint_id", "judge_version__params"),
    *("rubric_version__family", "rubric_version__version"),
)


@dataclass(frozen=True, slots=True)
class MachineValue:
    """One metric of one answer: the mean over repeats (for classes the commonest label).

    ``status`` is ``failed`` where every repeat failed. ``spread`` is the standard deviation over repeats, of a jury
    over its members, 0 with one. ``by`` names the judge version, empty for a rule; ``rubric`` its rubric version.
    ``reason`` is the first repeat's explanation, or the code of the failure.
    """

    status: str
    value: float | None
    label: str | None
    reason: str
    by: str
    baseline: bool
    rubric: str
    spread: float = 0.0


def machine_values(run: Run, metric_ids: Collection[int]) -> dict[tuple[int, int], MachineValue]:
    """The counting values of a whole run by (answer id, metric id)."""
    scores = counting(run).filter(metric_id__in=metric_ids)
    repeats: dict[tuple[int, int], list[Score]] = {}
    for score in scores.select_related("judge_version", "rubric_version").only(*_FIELDS).order_by("repeat", "id"):
        repeats.setdefault((score.answer_id, score.metric_id), []).append(score)
    return {key: _summed_up(several) for key, several in repeats.items()}


def answer_values(run_id: int, answer_id: int, metric_ids: Collection[int]) -> dict[int, MachineValue]:
    """The counting values of one answer by metric id: a reviewer waits for them with every item."""
    repeats: dict[int, list[Score]] = {}
    for score, judge, rubric in SAID.rows(run=run_id, answer=answer_id, metrics=list(metric_ids)):
        score.judge_version, score.rubric_version = judge, rubric
        repeats.setdefault(score.metric_id, []).append(score)
    return {metric: _summed_up(several) for metric, several in repeats.items()}


def _summed_up(repeats: list[Score]) -> MachineValue:
    scored = [score for score in repeats if score.status == Status.SCORED]
    first = next(iter(scored), repeats[0])
    values = [score.value for score in scored if score.value is not None]
    labels = [score.label for score in scored if score.label is not None]
    judge, rubric = first.judge_version, first.rubric_version
    return MachineValue(
        status=first.status,
        value=statistics.fmean(values) if values else None,
        label=statistics.mode(labels) if labels and not values else None,
        reason=first.reason,
        by=str(judge) if judge else first.author,
        baseline=bool(judge and judge.is_baseline),
        rubric=f"{rubric.family} v{rubric.version}" if rubric else "",
        spread=statistics.pstdev(values) if len(values) > 1 else float(first.detail.get("spread", 0.0)),
    )
