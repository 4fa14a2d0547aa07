"""REST serializers of runs: the names of the generation kind, with progress and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from rest_framework.request import Request
from rest_framework.reverse import reverse
from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DateTimeField,
    DecimalField,
    DictField,
    FloatField,
    IntegerField,
    ListField,
    Serializer,
)
from rest_framework_dataclasses.serializers import DataclassSerializer

from evaluation.connectors.protocol import FULL_RAG
from evaluation.extensions import batch_hooks
from evaluation.messages.explanations import explain_reason
from evaluation.models import Answer, BatchState, Run
from evaluation.runs.planning import JudgeCalls, Plan
from evaluation.runs.progress import Progress, Spending, progress_by_run, spending_by_rubric
from evaluation.runs.results import (
    FAITHFULNESS,
    RELEVANCY,
    Drift,
    MetricFigures,
    drift,
    generation_values,
    run_figures,
    updated_at,
)
from evaluation.worker.lifecycle import RunConfig

VERBS = ("pause", "resume", "cancel", "retry-failed")


@dataclass(frozen=True)
class RunState:
    """A run with its progress. Needs the answer set and the profile to be loaded."""

    run: Run
    progress: Progress
    request: Request

    @classmethod
    def of(cls, run: Run, request: Request) -> RunState:
        return cls.of_all([run], request)[0]

    @classmethod
    def of_all(cls, runs: Sequence[Run], request: Request) -> list[RunState]:
        """Several runs, in as many queries as one."""
        progress_of = progress_by_run(runs)
        return [cls(run, progress_of[run.pk], request) for run in runs]

    @cached_property
    def config(self) -> RunConfig:
        return RunConfig.model_validate(self.run.config)

    @property
    def links(self) -> dict[str, str]:
        """URLs of the run, of its answers, and of its actions."""
        names = {"self": "api-run-detail", "answers": "api-run-answers"}
        names |= {verb.replace("-", "_"): f"api-run-{verb}" for verb in VERBS}
        return {name: reverse(view, args=[self.run.pk], request=self.request) for name, view in names.items()}


@dataclass(frozen=True)
class RunDetail(RunState):
    """A run with its figures and one page of its answers, whose contexts are prefetched."""

    answers: Sequence[Answer]
    results_next: str | None
    results_previous: str | None

    @cached_property
    def means(self) -> Mapping[str, MetricFigures]:
        """The figures of each metric, by name."""
        return run_figures(self.run)

    @property
    def costs(self) -> Mapping[str, Spending]:
        """The cost of calls, by rubric."""
        return spending_by_rubric(self.run)

    @property
    def drift(self) -> tuple[Drift, ...]:
        """The parts that have a newer version."""
        return drift(self.run)

    @property
    def batches(self) -> list[Any]:
        """Batches of calls sent to a provider, oldest first."""
        hooks = batch_hooks()
        return hooks.run_batches(self.run) if hooks and self.config.batch else []

    @property
    def updated_at(self) -> datetime:
        """The time of the last change."""
        return updated_at(self.run)

    @cached_property
    def results(self) -> list[AnswerResult]:
        values = generation_values(self.run, self.answers)
        generated = self.run.answer_set.evaluation_type == FULL_RAG
        return [AnswerResult(answer, values[answer.pk], generated) for answer in self.answers]


@dataclass(frozen=True)
class AnswerResult:
    """An answer with its values under the names of the generation kind. ``generated`` is false for retrieval-only
    runs."""

    answer: Answer
    values: Mapping[str, float | None]
    generated: bool

    @property
    def retrieved(self) -> list[str] | None:
        """The reported ids, or else those of the contexts; ``None`` if the system does not retrieve."""
        if self.answer.retrieved_ids is not None:
            return list(self.answer.retrieved_ids)
        return [context.chunk_id for context in self.answer.contexts.all()] if self.answer.retrieves else None

    @property
    def has_judge_value(self) -> bool:
        """Return whether a judge scored the answer."""
        return (self.values["faithfulness"], self.values["answer_relevancy"]) != (None, None)

    @property
    def text(self) -> str | None:
        """The answer's text; ``None`` if the system failed or only retrieved."""
        return self.answer.text if self.generated and self.answer.status == "ok" else None


class ReasonField(CharField):
    """The reason for a missing value, as a sentence in the caller's language; null if there is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_null=True, **options)

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]  # null instead of an empty text
        return explain_reason(value) if value else None


class SpendingSerializer(Serializer[Spending]):
    """The cost of calls in US dollars: ``cost`` is a lower bound while ``unknown_costs`` is above 0. ``cached`` calls
    were answered from stored replies; ``saved`` is the original cost of those, a lower bound while ``unknown_savings``
    is above 0."""

    calls = IntegerField()
    cost = DecimalField(source="known", max_digits=16, decimal_places=8)
    unknown_costs = IntegerField(source="unknown_calls")
    cached = IntegerField(source="hits")
    saved = DecimalField(max_digits=16, decimal_places=8)
    unknown_savings = IntegerField(source="unpriced_hits")


class JudgeCallsSerializer(DataclassSerializer[JudgeCalls]):
    """The estimated calls to one judge for one rubric. With ``measured``, tokens are the mean of earlier replies;
    ``spread`` is the relative uncertainty of tokens and cost."""

    cost = DecimalField(max_digits=None, decimal_places=4, allow_null=True)
    spread = FloatField()

    class Meta:
        dataclass = JudgeCalls
        fields = ("judge", "rubric", "calls", "tokens_in", "tokens_out", "measured", "cost", "seconds", "spread")


class PlanSerializer(Serializer[Plan]):
    """The estimated work of a run: steps, answers, questions to the system, judge calls, tokens, US dollars and
    seconds; null if unknown."""

    units = IntegerField()
    answers = IntegerField()
    questions = IntegerField()
    calls = IntegerField()
    paid = JudgeCallsSerializer(many=True)
    tokens = IntegerField()
    cost = DecimalField(max_digits=None, decimal_places=4, allow_null=True)
    cost_low = DecimalField(max_digits=None, decimal_places=4, allow_null=True)
    cost_high = DecimalField(max_digits=None, decimal_places=4, allow_null=True)
    asking_seconds = FloatField(allow_null=True)
    seconds = FloatField(allow_null=True)


class ProgressSerializer(Serializer[Progress]):
    """The progress of a run and the cost of its calls, including preflight and embeddings."""

    calls = IntegerField(source="spent.calls")
    cost = DecimalField(source="spent.known", max_digits=16, decimal_places=8)
    unknown_costs = IntegerField(source="spent.unknown_calls")
    cached = IntegerField(source="spent.hits")
    saved = DecimalField(source="spent.saved", max_digits=16, decimal_places=8)
    unknown_savings = IntegerField(source="spent.unpriced_hits")
    total = IntegerField()
    ended = IntegerField()
    failed = IntegerField()
    share = FloatField(min_value=0, max_value=1)
    seconds_left = FloatField(allow_null=True)


class RunSummarySerializer(Serializer[Any]):
    """A run in a list, and the response to starting, pausing, resuming or cancelling one."""

    id = IntegerField(source="run.pk")
    project = IntegerField(source="run.project_id")
    name = CharField(source="run.name", allow_blank=True)
    dataset_id = IntegerField(source="run.answer_set.question_set_id", help_text="id of the question set's version")
    answer_set = IntegerField(source="run.answer_set_id")
    profile = CharField(source="run.profile_version", help_text="name and version")
    status = ChoiceField(source="run.state", choices=Run.State.choices)
    k = IntegerField(source="config.k")
    evaluation_type = ChoiceField(source="config.evaluation_type", choices=["full_rag", "retrieval_only"])
    error_message = ReasonField(source="run.reason")
    budget = DecimalField(source="run.budget", max_digits=12, decimal_places=4, allow_null=True)
    progress = ProgressSerializer()
    links = DictField(child=CharField())
    created_at = DateTimeField(source="run.created_at", default_timezone=UTC)


class FiguresSerializer(Serializer[MetricFigures]):
    """A metric of the run on its own scale, from rules and the primary judge only."""

    mean = FloatField(allow_null=True)
    scored = IntegerField()
    failed = IntegerField()
    not_applicable = IntegerField()


class MeanField(FloatField):
    """The mean of a metric of the run; null if the run does not compute it."""

    def __init__(self, metric: str) -> None:
        super().__init__(source=f"means.{metric}.mean", allow_null=True)


class RetrievalSerializer(Serializer[RunDetail]):
    """The means of the retrieval metrics; null if the run does not compute them."""

    precision_at_k = MeanField("precision_at_k")
    recall_at_k = MeanField("recall_at_k")
    hit_rate_at_k = MeanField("hit_at_k")
    mrr = MeanField("reciprocal_rank")
    k = IntegerField(source="config.k")


class ResultSerializer(Serializer[AnswerResult]):
    """An answer with its values; null if there is none."""

    id = IntegerField(source="answer.pk", help_text="id of the answer")
    test_case_id = CharField(source="answer.question.external_id", help_text="id of the question in its set")
    sample = IntegerField(source="answer.sample")
    retrieved_chunk_ids = ListField(source="retrieved", child=CharField(), allow_null=True)
    precision = FloatField(source="values.precision", allow_null=True)
    recall = FloatField(source="values.recall", allow_null=True)
    hit = BooleanField(source="values.hit", allow_null=True)
    reciprocal_rank = FloatField(source="values.reciprocal_rank", allow_null=True)
    generated_answer = CharField(source="text", allow_null=True)
    faithfulness = FloatField(source="values.faithfulness", allow_null=True)
    answer_relevancy = FloatField(source="values.answer_relevancy", allow_null=True)


class DriftSerializer(Serializer[Drift]):
    """A part of the run of which a newer version exists; the run keeps using ``used``."""

    part = CharField()
    name = CharField()
    used = IntegerField()
    newest = IntegerField()


class BatchSerializer(Serializer[Any]):
    """A batch of the run's calls at a provider. ``status``, ``done`` and ``failed`` are as the provider last reported
    them; ``reason`` says why it failed."""

    id = CharField(source="provider_id", help_text="id at the provider; empty before it has one")
    state = ChoiceField(choices=BatchState.choices)
    status = CharField()
    model = CharField()
    calls = IntegerField(source="lines")
    done = IntegerField()
    failed = IntegerField()
    reason = ReasonField()
    sent_at = DateTimeField(allow_null=True, default_timezone=UTC)
    expires_at = DateTimeField(allow_null=True, default_timezone=UTC)
    ended_at = DateTimeField(allow_null=True, default_timezone=UTC)


class RunSerializer(RunSummarySerializer):
    """A run with its means and one page of its results."""

    metrics = RetrievalSerializer(source="*")
    mean_faithfulness = MeanField(FAITHFULNESS)
    mean_answer_relevancy = MeanField(RELEVANCY)
    means = DictField(child=FiguresSerializer(), help_text="every metric of the run, by name")
    costs = DictField(
        child=SpendingSerializer(), help_text="by rubric, `embeddings` and `preflight`; adds up to that of `progress`"
    )
    packages = DictField(
        source="config.packages",
        child=CharField(),
        help_text="name, version and source hash of the package of each own metric",
    )
    drift = DriftSerializer(many=True)
    batches = BatchSerializer(many=True)
    results = ResultSerializer(many=True)
    results_next = CharField(allow_null=True, help_text="URL of the next page of results")
    results_previous = CharField(allow_null=True)
    updated_at = DateTimeField(default_timezone=UTC)
