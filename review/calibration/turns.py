"""What is left to be judged in a turn, for looks and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from evaluation.core.samples import Result
from evaluation.models import Answer, JudgeVersion, RubricVersion
from evaluation.scoring.aside import judged_aside, reach
from evaluation.worker.turns import TurnInHands

Left = tuple[RubricVersion, int, Sequence[int]]
"""What is still to be judged: by which version, the how-manieth time, which answers."""
Keep = Callable[[RubricVersion, Answer, int, Mapping[str, Result]], None]


def judge_left(turn: TurnInHands, judge: JudgeVersion, left: Callable[[], Iterable[Left]], keep: Keep) -> bool:
    """Have judged what is left, as far as the turn's time goes; whether nothing is left now.

    :raises Refused: ``judge_away``; what was heard before is kept.
    """
    if not (waiting := list(left())):
        return True
    wanted = Answer.objects.filter(pk__in={pk for *_, missing in waiting for pk in missing})
    answers = wanted.select_related("question").prefetch_related("contexts").in_bulk()
    found = reach(judge)
    _keep_model(turn.rows, found.model)
    for rubric, repeat, missing in waiting:
        several = [answers[pk] for pk in missing]
        for answer, results in judged_aside(judge, rubric.rubric, several, rung=found.rung, more=turn.more):
            keep(rubric, answer, repeat, results)
    return not any(left())


def _keep_model(rows: QuerySet[Any], model: str) -> None:
    """Remember in the one row of the turn which model answers; where it is another than before, both."""
    names = [name for name in rows.values_list("model", flat=True).get().split(", ") if name]
    if model and model not in names:
        rows.update(model=", ".join([*names, model])[:400])
