"""Remaining verdicts of hold-out tests and anchor checks, judged within a worker's time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from evaluation.core.samples import Result
from evaluation.models import Answer, JudgeVersion, RubricVersion
from evaluation.scoring.adhoc import find_response_format, judge_without_storing
from evaluation.worker.jobs import Lease

RemainingWork = tuple[RubricVersion, int, Sequence[int]]
"""What is still to be judged: by which version, the how-manieth time, which answers."""
StoreVerdicts = Callable[[RubricVersion, Answer, int, Mapping[str, Result]], None]


def judge_remaining(
    lease: Lease, judge: JudgeVersion, remaining: Callable[[], Iterable[RemainingWork]], store: StoreVerdicts
) -> bool:
    """Judge the remaining answers until the lease ends; return whether none remain.

    :raises DomainError: ``judge_away``; verdicts received before are stored."""
    if not (batches := list(remaining())):
        return True
    rows = Answer.objects.filter(pk__in={pk for *_, missing in batches for pk in missing})
    answers = rows.select_related("question").prefetch_related("contexts").in_bulk()
    probe = find_response_format(judge)
    _record_model(lease, probe.model)
    for rubric, repeat, missing in batches:
        batch = [answers[pk] for pk in missing]
        for answer, results in judge_without_storing(
            judge, rubric.rubric, batch, response_format=probe.response_format, may_start=lease.may_continue
        ):
            store(rubric, answer, repeat, results)
    return not any(remaining())


def recorded_models(lease: Lease) -> str:
    """Return the models that answered for the judge so far, comma-separated."""
    return str(lease.job.notes.get("model", ""))


def _record_model(lease: Lease, model: str) -> None:
    names = list(filter(None, recorded_models(lease).split(", ")))
    if model and model not in names:
        lease.note(model=", ".join([*names, model])[:400])
