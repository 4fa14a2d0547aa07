"""Which metrics a unit is to give, known before it has run."""

from __future__ import annotations

from evaluation.judging.catalogue import family_metrics
from evaluation.runs.config import RunConfig
from evaluation.runs.models import Run
from evaluation.scores.models import MetricDefinition
from evaluation.scoring.definitions import definitions
from evaluation.work.models import WorkUnit


def expected_metrics(run: Run, unit: WorkUnit) -> list[MetricDefinition]:
    """The metrics of a rules or judge unit; none for a unit that asks the system or has no answer yet."""
    if unit.answer_id is None or unit.kind == WorkUnit.Kind.ASK:
        return []
    if unit.kind == WorkUnit.Kind.RULES:
        names = list(RunConfig.model_validate(run.config).rules)
    else:
        names = [spec.name for spec in family_metrics(unit.run_judge.rubric_version.family)] if unit.run_judge else []
    return list(definitions(names).values())
