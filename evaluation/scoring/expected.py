"""Which metrics a unit is to give, known before it has run."""

from __future__ import annotations

from evaluation.judges.definitions import define, definitions
from evaluation.judging.catalogue import family_for
from evaluation.models import MetricDefinition, Run, WorkUnit
from evaluation.work.planning import RunConfig


def expected_metrics(run: Run, unit: WorkUnit) -> list[MetricDefinition]:
    """The metrics of a rules, judge or embedding unit; none for a unit that asks the system or has no answer yet."""
    if unit.answer_id is None or unit.kind == WorkUnit.Kind.ASK:
        return []
    if unit.kind == WorkUnit.Kind.RULES:
        names = list(RunConfig.model_validate(run.config).rules)
    elif unit.kind == WorkUnit.Kind.EMBED and unit.run_judge_id is None:
        names = list(RunConfig.model_validate(run.config).embeddings)
    elif unit.run_judge is not None:
        return [define(spec) for spec in family_for(unit.run_judge.rubric_version.rubric).given]
    else:
        names = []
    return list(definitions(names).values())
