"""A run as REST shows it: the names of source 002, with progress and links beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.reverse import reverse

from evaluation.models import Answer, JudgeBatch, Run
from evaluation.runs.costs import Spending, spending_by_rubric
from evaluation.runs.progress import Progress, progress, progress_by_run
from evaluation.runs.results import FAITHFULNESS, MEANS, RELEVANCY, drift, figures, updated_at, values_of
from evaluation.wording.messages import explain_reason
from evaluation.work.planning import RunConfig

LINKS = {"self": "api-run", "answers": "api-run-answers"}
ACTIONS = ("pause", "resume", "cancel", "retry-failed")


class SpendingSerializer(serializers.Serializer[Any]):
    """What calls cost in US dollars: ``cost`` is a lower bound while ``unknown_costs`` is above 0. ``cached`` calls
    were answered from the ledger; ``saved`` is what those replies had cost, a lower bound while ``unknown_savings`` is
    above 0."""

    calls = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=16, decimal_places=8)
    unknown_costs = serializers.IntegerField()
    cached = serializers.IntegerField()
    saved = serializers.DecimalField(max_digits=16, decimal_places=8)
    unknown_savings = serializers.IntegerField()


class ProgressSerializer(SpendingSerializer):
    """How far a run is, and what its calls cost, those of preflight and embeddings included."""

    total = serializers.IntegerField()
    ended = serializers.IntegerField()
    failed = serializers.IntegerField()
    share = serializers.FloatField(min_value=0, max_value=1)
    seconds_left = serializers.FloatField(allow_null=True)


class RunSummarySerializer(serializers.Serializer[Any]):
    """A run in a list, and the reply to whoever starts or steers one."""

    id = serializers.IntegerField()
    project = serializers.IntegerField()
    name = serializers.CharField(allow_blank=True)
    dataset_id = serializers.IntegerField(help_text="id of the question set's version")
    answer_set = serializers.IntegerField()
    profile = serializers.CharField(help_text="name and version")
    status = serializers.ChoiceField(choices=Run.State.choices)
    k = serializers.IntegerField()
    evaluation_type = serializers.ChoiceField(choices=["full_rag", "retrieval_only"])
    error_message = serializers.CharField(allow_null=True)
    progress = ProgressSerializer()
    links = serializers.DictField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


class FiguresSerializer(serializers.Serializer[Any]):
    """A metric over the run, on its own scale, by rules and the primary judge alone."""

    mean = serializers.FloatField(allow_null=True)
    scored = serializers.IntegerField()
    failed = serializers.IntegerField()
    not_applicable = serializers.IntegerField()


class RetrievalSerializer(serializers.Serializer[Any]):
    """The means of source 002's retrieval metrics; null where the run does not compute them."""

    precision_at_k = serializers.FloatField(allow_null=True)
    recall_at_k = serializers.FloatField(allow_null=True)
    hit_rate_at_k = serializers.FloatField(allow_null=True)
    mrr = serializers.FloatField(allow_null=True)
    k = serializers.IntegerField()


class ResultSerializer(serializers.Serializer[Any]):
    """One answer with source 002's values; null where there is none."""

    id = serializers.IntegerField(help_text="of the answer")
    test_case_id = serializers.CharField(help_text="the question's own id")
    sample = serializers.IntegerField()
    retrieved_chunk_ids = serializers.ListField(child=serializers.CharField(), allow_null=True)
    precision = serializers.FloatField(allow_null=True)
    recall = serializers.FloatField(allow_null=True)
    hit = serializers.BooleanField(allow_null=True)
    reciprocal_rank = serializers.FloatField(allow_null=True)
    generated_answer = serializers.CharField(allow_null=True)
    faithfulness = serializers.FloatField(allow_null=True)
    answer_relevancy = serializers.FloatField(allow_null=True)


class DriftSerializer(serializers.Serializer[Any]):
    """A part of the run of which a newer version exists; the run keeps using ``used``."""

    part = serializers.CharField()
    name = serializers.CharField()
    used = serializers.IntegerField()
    newest = serializers.IntegerField()


class BatchSerializer(serializers.Serializer[Any]):
    """Calls of the run that were handed to the provider together. ``status``, ``done`` and ``failed`` are what the
    provider told last, ``reason`` why it did not end well."""

    id = serializers.CharField(help_text="the provider's; empty while it has none")
    state = serializers.ChoiceField(choices=JudgeBatch.State.choices)
    status = serializers.CharField()
    model = serializers.CharField()
    calls = serializers.IntegerField()
    done = serializers.IntegerField()
    failed = serializers.IntegerField()
    reason = serializers.CharField(allow_null=True)
    sent_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class RunSerializer(RunSummarySerializer):
    """A run with its means and one page of its results."""

    metrics = RetrievalSerializer()
    mean_faithfulness = serializers.FloatField(allow_null=True)
    mean_answer_relevancy = serializers.FloatField(allow_null=True)
    means = serializers.DictField(child=FiguresSerializer(), help_text="every metric of the run, by name")
    costs = serializers.DictField(
        child=SpendingSerializer(), help_text="by rubric, `embeddings` and `preflight`; their sum is the progress's"
    )
    drift = DriftSerializer(many=True)
    batches = BatchSerializer(many=True)
    results = ResultSerializer(many=True)
    results_next = serializers.CharField(allow_null=True, help_text="address of the next page of results")
    results_previous = serializers.CharField(allow_null=True)
    updated_at = serializers.DateTimeField()


def run_summaries(runs: Sequence[Run], request: Request) -> list[dict[str, Any]]:
    """The runs of a list. Needs answer sets and profiles at hand."""
    far = progress_by_run(runs)
    return [_summary(run, far[run.pk], request) for run in runs]


def run_summary(run: Run, request: Request) -> dict[str, Any]:
    """One run without its results."""
    return _summary(run, progress(run), request)


def _summary(run: Run, far: Progress, request: Request) -> dict[str, Any]:
    config = RunConfig.model_validate(run.config)
    return {
        "id": run.pk,
        "project": run.project_id,
        "name": run.name,
        "dataset_id": run.answer_set.question_set_id,
        "answer_set": run.answer_set_id,
        "profile": str(run.profile_version),
        "status": run.state,
        "k": config.k,
        "evaluation_type": config.evaluation_type,
        "error_message": explain_reason(run.reason) if run.reason else None,
        "progress": _progress(far),
        "links": _links(run, request),
        "created_at": run.created_at,
    }


def run_json(run: Run, request: Request) -> dict[str, Any]:
    """The run with its means, still without its results."""
    summary, means = run_summary(run, request), figures(run)
    mean = {name: one.mean for name, one in means.items()}
    return summary | {
        "metrics": {name: mean.get(metric) for name, metric in MEANS.items()} | {"k": summary["k"]},
        "mean_faithfulness": mean.get(FAITHFULNESS),
        "mean_answer_relevancy": mean.get(RELEVANCY),
        "means": {name: asdict(one) for name, one in means.items()},
        "costs": {name: spending_json(part) for name, part in spending_by_rubric(run).items()},
        "drift": [asdict(one) for one in drift(run)],
        "batches": _batches(run),
        "updated_at": updated_at(run),
    }


def _batches(run: Run) -> list[dict[str, Any]]:
    in_batches = RunConfig.model_validate(run.config).batch
    return [_batch(one) for one in run.batches.order_by("id")] if in_batches else []


def _batch(batch: JudgeBatch) -> dict[str, Any]:
    names = ("state", "status", "model", "done", "failed", "sent_at", "expires_at", "ended_at")
    reason = explain_reason(batch.reason) if batch.reason else None
    told = {name: getattr(batch, name) for name in names}
    return {"id": batch.provider_id, **told, "calls": batch.lines, "reason": reason}


def results_json(run: Run, answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The results of one page of answers, whose contexts are at hand."""
    values = values_of(run, answers)
    return [
        {
            "id": answer.pk,
            "test_case_id": answer.question.external_id,
            "sample": answer.sample,
            "retrieved_chunk_ids": _retrieved(answer),
            "generated_answer": answer.text if answer.status == "ok" else None,
            **values[answer.pk],
            "hit": None if values[answer.pk]["hit"] is None else bool(values[answer.pk]["hit"]),
        }
        for answer in answers
    ]


def _retrieved(answer: Answer) -> list[str] | None:
    """The ids as they were given, else those of the contexts; ``None`` where the system does not retrieve."""
    if answer.retrieved_ids is not None:
        return list(answer.retrieved_ids)
    return [context.chunk_id for context in answer.contexts.all()] if answer.retrieves else None


def _progress(now: Progress) -> dict[str, Any]:
    names = ("total", "ended", "failed", "share", "seconds_left")
    return {name: getattr(now, name) for name in names} | spending_json(now.spent)


def spending_json(spent: Spending) -> dict[str, Any]:
    """What some calls cost and saved; money as text without loss."""
    return {
        "calls": spent.calls,
        "cost": f"{spent.known:.8f}",
        "unknown_costs": spent.unknown_calls,
        "cached": spent.hits,
        "saved": f"{spent.saved:.8f}",
        "unknown_savings": spent.unpriced_hits,
    }


def _links(run: Run, request: Request) -> dict[str, str]:
    links = {name: reverse(view, args=[run.pk], request=request) for name, view in LINKS.items()}
    steering = {verb: reverse(f"api-run-{verb}", args=[run.pk], request=request) for verb in ACTIONS}
    return links | {verb.replace("-", "_"): address for verb, address in steering.items()}
