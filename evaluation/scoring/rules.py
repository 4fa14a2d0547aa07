"""Rule metrics of claimed units: computed, or copied from an earlier run with equal settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Count

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec, Result, Status
from evaluation.judges.shipped import definitions
from evaluation.metrics.catalogue import rule_metric_named
from evaluation.metrics.normalise import analysis
from evaluation.models import Answer, Context, MetricDefinition, Run, Score, WorkUnit
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.scoring.scores import UnitOutcome, copy_scores, write_scores
from evaluation.worker.lifecycle import RunConfig
from evaluation.worker.units import claim

RULE_BATCH = 200
# Inputs of metrics that also apply to retrieval-only answers.
RETRIEVAL_INPUTS = {"latency", "retrieved_ids"}
MetricResults = dict[MetricDefinition, Result]


class RuleScorer:
    """The rule metrics of one run, prepared once for all its units."""

    kind = WorkUnit.Kind.RULES

    def __init__(self, run: Run) -> None:
        self._run = run
        self._config = RunConfig.model_validate(run.config)
        self._settings = _settings(run, self._config)
        self._metrics = definitions(self._config.rules)
        self._reusable = _reusable_run(run, self._config, self._settings)

    def claim(self, size: int, *, suspects: bool = False) -> list[WorkUnit]:
        return claim(self._run.pk, [self.kind], size, suspects=suspects) if self._config.rules else []

    def score(self, claimed: Sequence[WorkUnit]) -> None:
        units = [unit for unit in claimed if unit.answer_id is not None]
        copied = self._copy_earlier(units) if self._reusable else set()
        units = [unit for unit in units if unit not in copied]
        answers = Answer.objects.select_related("question").in_bulk([unit.answer_id for unit in units])
        contexts = _contexts(answers)
        results = {pk: self._compute(answer, contexts.get(pk, ())) for pk, answer in answers.items()}
        write_scores([UnitOutcome(unit, results[unit.answer_id or 0]) for unit in units])

    def _copy_earlier(self, units: Sequence[WorkUnit]) -> set[WorkUnit]:
        """Copy the earlier run's scores of the units whose answers have all of them; those units."""
        metric_ids = [row.pk for row in self._metrics.values()]
        rows = Score.objects.filter(run=self._reusable, metric__in=metric_ids, round=0)
        rows = rows.filter(unit__kind=self.kind, unit__state=WorkUnit.State.DONE)
        counts = rows.filter(answer__in=[unit.answer_id for unit in units]).values("answer").annotate(n=Count("id"))
        complete = set(counts.filter(n=len(metric_ids)).order_by().values_list("answer", flat=True))
        copied = [unit for unit in units if unit.answer_id in complete and not unit.round]
        copy_scores(rows, copied)
        return set(copied)

    def _compute(self, answer: Answer, contexts: Sequence[ContextSpec]) -> MetricResults:
        question, failed_answer = answer.question.read(), answer.status == "failed"
        spec = AnswerSpec("") if failed_answer else answer.read(contexts)
        results = {row: self._result(name, question, spec) for name, row in self._metrics.items()}
        if not failed_answer:
            return results
        # A metric that does not apply to the question does not fail with the answer.
        failed = Result.failed("upstream: " + answer.reason)
        return {row: r if r.status is Status.NOT_APPLICABLE else failed for row, r in results.items()}

    def _result(self, name: str, question: QuestionSpec, spec: AnswerSpec) -> Result:
        metric = rule_metric_named(name)
        if self._config.evaluation_type == "retrieval_only" and not RETRIEVAL_INPUTS & set(metric.spec.inputs):
            return Result.not_applicable("not_generated")
        return metric(question, spec, self._settings)


def _settings(run: Run, config: RunConfig) -> RuleSettings:
    return rule_settings(ProfileSpec.model_validate(run.profile_version.spec), k=config.k)


def _contexts(answers: Mapping[int, Answer]) -> dict[int, list[ContextSpec]]:
    """The passages of the answers in order. One query without model objects, because there are many."""
    rows = Context.objects.filter(answer_id__in=list(answers)).order_by("answer_id", "position")
    by_answer: dict[int, list[ContextSpec]] = {}
    for pk, *columns in rows.values_list("answer_id", "text", "chunk_id", "score", "source", "metadata"):
        by_answer.setdefault(pk, []).append(ContextSpec(*columns))
    return by_answer


MAX_EARLIER_RUNS = 20


def _reusable_run(run: Run, config: RunConfig, settings: RuleSettings) -> Run | None:
    """The newest earlier run of the same answers with all metrics of this run, equal rule settings and the same Korean
    analyzer."""
    if not config.rules or config.analysis != analysis():
        return None
    runs = Run.objects.filter(answer_set=run.answer_set_id, pk__lt=run.pk, config__analysis=config.analysis)
    for earlier in runs.select_related("profile_version").order_by("-pk")[:MAX_EARLIER_RUNS]:
        earlier_config = RunConfig.model_validate(earlier.config)
        if set(config.rules) <= set(earlier_config.rules) and _settings(earlier, earlier_config) == settings:
            return earlier
    return None
