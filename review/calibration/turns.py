"""What is left to be judged in a turn, for looks and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from evaluation.core.samples import Result
from evaluation.models import Answer, JudgeVersion, RubricVersion
from evaluation.scoring.aside import judged_aside, reach
from evaluation.worker.jobs import Lease

Left = tuple[RubricVersion, int, Sequence[int]]
"""What is still to be judged: by which version, the how-manieth time, which answers."""
Keep = Callable[[RubricVersion, Answer, int, Mapping[str, Result]], None]


def judge_left(lease: Lease, judge: JudgeVersion, left: Callable[[], Iterable[Left]], keep: Keep) -> bool:
    """Have judged what is left, as far as the turn's time goes; whether nothing is left now.

    :raises Refused: ``judge_away``; what was heard before is kept.
    """
    if not (waiting := list(left())):
        return True
    wanted = Answer.objects.filter(pk__in={pk for *_, missing in waiting for pk in missing})
    answers = wanted.select_related("question").prefetch_related("contexts").in_bulk()
    found = reach(judge)
    _note_model(lease, found.model)
    for rubric, repeat, missing in waiting:
        several = [answers[pk] for pk in missing]
        for answer, results in judged_aside(judge, rubric.rubric, several, rung=found.rung, more=lease.more):
            keep(rubric, answer, repeat, results)
    return not any(left())


def model_of(lease: Lease) -> str:
    """The models that answered under the judge's name so far."""
    return str(lease.job.notes.get("model", ""))


def _note_model(lease: Lease, model: str) -> None:
    names = list(filter(None, model_of(lease).split(", ")))
    if model and model not in names:
        lease.note(model=", ".join([*names, model])[:400])
