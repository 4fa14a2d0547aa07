"""Rule metrics of claimed units: computed, or taken over from an earlier run that computed the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec, Result, Status
from evaluation.core.samples import Finding as Part
from evaluation.judges.shipping import definitions
from evaluation.metrics.catalogue import rule_metric_named
from evaluation.metrics.normalise import analysis
from evaluation.models import Answer, Context, Finding, MetricDefinition, Run, Score, WorkUnit
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.scoring.writing import PARTS, Outcome, write
from evaluation.worker.lifecycle import RunConfig

RULE_BATCH = 200
RETRIEVAL_INPUTS = {"latency", "retrieved_ids"}  # what can be computed where the system only retrieved
Results = dict[MetricDefinition, Result]


class Rules:
    """The rule metrics of one run, made ready once for all its units."""

    def __init__(self, run: Run) -> None:
        self._config = RunConfig.model_validate(run.config)
        self._settings = _settings(run, self._config)
        self._metrics = definitions(self._config.rules)
        self._before = _same_before(run, self._config, self._settings)

    def score(self, claimed: Sequence[WorkUnit]) -> None:
        """Write the rule metrics of claimed units."""
        units = [unit for unit in claimed if unit.answer_id is not None]
        known = _taken_over(self._before, self._metrics, units) if self._before else {}
        rows = Answer.objects.select_related("question").filter(pk__in=[unit.answer_id for unit in units])
        answers = rows.exclude(pk__in=known).in_bulk()
        contexts = _contexts(answers)
        for pk, answer in answers.items():
            known[pk] = self._computed(answer, contexts.get(pk, ()))
        write([Outcome(unit, known[unit.answer_id or 0]) for unit in units])

    def _computed(self, answer: Answer, contexts: Sequence[ContextSpec]) -> Results:
        question, lost = answer.question.read(), answer.status == "failed"
        spec = AnswerSpec("") if lost else answer.read(contexts)
        found = {row: self._result(name, question, spec) for name, row in self._metrics.items()}
        if not lost:
            return found
        # What does not apply to the question does not fail with the answer.
        failed = Result.failed("upstream: " + answer.reason)
        return {row: r if r.status is Status.NOT_APPLICABLE else failed for row, r in found.items()}

    def _result(self, name: str, question: QuestionSpec, spec: AnswerSpec) -> Result:
        metric = rule_metric_named(name)
        if self._config.evaluation_type == "retrieval_only" and not RETRIEVAL_INPUTS & set(metric.spec.inputs):
            return Result.not_applicable("not_generated")
        return metric(question, spec, self._settings)


def _settings(run: Run, config: RunConfig) -> RuleSettings:
    return rule_settings(ProfileSpec.model_validate(run.profile_version.spec), k=config.k)


def _contexts(answers: Mapping[int, Answer]) -> dict[int, list[ContextSpec]]:
    """The passages of the answers, in their order. One query, and no model objects: there are many."""
    rows = Context.objects.filter(answer_id__in=list(answers)).order_by("answer_id", "position")
    found: dict[int, list[ContextSpec]] = {}
    for pk, *about in rows.values_list("answer_id", "text", "chunk_id", "score", "source", "metadata"):
        found.setdefault(pk, []).append(ContextSpec(*about))
    return found


MOST_LOOKED_AT = 20  # earlier runs of the same answers


def _same_before(run: Run, config: RunConfig, settings: RuleSettings) -> Run | None:
    """The newest earlier run of the same answers whose rules went by the same settings, read Korean in the same way as
    this process does, and hold every metric of this run."""
    if not config.rules or config.analysis != analysis():
        return None
    runs = Run.objects.filter(answer_set=run.answer_set_id, pk__lt=run.pk, config__analysis=config.analysis)
    for before in runs.select_related("profile_version").order_by("-pk")[:MOST_LOOKED_AT]:
        other = RunConfig.model_validate(before.config)
        if set(config.rules) <= set(other.rules) and _settings(before, other) == settings:
            return before
    return None


_SCORE = ("status", "value", "label", "reason", "detail")


def _taken_over(before: Run, metrics: Mapping[str, MetricDefinition], units: Sequence[WorkUnit]) -> dict[int, Results]:
    """What the earlier run has of the units' answers, where it is done with all of it. Two queries."""
    by_pk = {row.pk: row for row in metrics.values()}
    rows = Score.objects.filter(run=before, answer_id__in=[unit.answer_id for unit in units], metric_id__in=by_pk)
    rows = rows.filter(unit__kind=WorkUnit.Kind.RULES, unit__state=WorkUnit.State.DONE, round=0)
    scores = list(rows.values_list("pk", "answer_id", "metric_id", *_SCORE))
    parts = _parts([pk for pk, *_ in scores])
    found: dict[int, Results] = {}
    for pk, answer_id, metric_id, status, value, label, reason, detail in scores:
        made = Result(Status(status), value, label, reason, detail, parts.get(pk, ()))
        found.setdefault(answer_id, {})[by_pk[metric_id]] = made
    return {pk: results for pk, results in found.items() if len(results) == len(by_pk)}


def _parts(scores: Sequence[int]) -> dict[int, list[Part]]:
    rows = Finding.objects.filter(score_id__in=scores).order_by("score_id", "position")
    found = rows.values_list("score_id", *PARTS)
    return {pk: [Part(*about) for _, *about in several] for pk, several in groupby(found, key=itemgetter(0))}
