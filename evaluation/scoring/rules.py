"""The rules step: all rule metrics of a profile on an answer, in one unit."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import prefetch_related_objects

from evaluation.core.samples import AnswerSpec, QuestionSpec, Result, Status
from evaluation.judges.definitions import definitions
from evaluation.metrics.catalogue import rule_metric_named
from evaluation.models import Answer, MetricDefinition, Run, WorkUnit
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.scoring.writing import Outcome, write
from evaluation.work.planning import RunConfig

BATCH = 200
RETRIEVAL_INPUTS = {"latency", "retrieved_ids"}  # what can be computed where the system only retrieved


def score_rules(run: Run, claimed: Sequence[WorkUnit]) -> None:
    """Compute and write the rule metrics of the claimed units."""
    config = RunConfig.model_validate(run.config)
    settings = rule_settings(ProfileSpec.model_validate(run.profile_version.spec), k=config.k)
    metrics = definitions(config.rules)
    prefetch_related_objects(claimed, "answer__question", "answer__contexts")

    def result(name: str, question: QuestionSpec, spec: AnswerSpec) -> Result:
        metric = rule_metric_named(name)
        if config.evaluation_type == "retrieval_only" and not RETRIEVAL_INPUTS & set(metric.spec.inputs):
            return Result.not_applicable("not_generated")
        return metric(question, spec, settings)

    def results(answer: Answer) -> dict[MetricDefinition, Result]:
        question, lost = answer.question.read(), answer.status == "failed"
        spec = AnswerSpec("") if lost else answer.read()
        found = {row: result(name, question, spec) for name, row in metrics.items()}
        if not lost:
            return found
        # What does not apply to the question does not fail with the answer.
        failed = Result.failed("upstream: " + answer.reason)
        return {row: r if r.status is Status.NOT_APPLICABLE else failed for row, r in found.items()}

    write([Outcome(unit, results(unit.answer)) for unit in claimed if unit.answer is not None])
