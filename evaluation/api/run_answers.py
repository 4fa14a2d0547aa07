"""``runs/{id}/answers/``: the answers of a run with their contexts, scores and what stands behind each score."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.accounts.exposure_hook import values_shown
from evaluation.api.endpoints import ListEndpoint
from evaluation.api.filters import AnswerFilter
from evaluation.api.pages import PagesInOrder
from evaluation.core.roles import Action
from evaluation.core.samples import Status
from evaluation.models import Answer, Context, Finding, Run, Score
from evaluation.runs.results import answers_in, primary_pairs, with_scores
from evaluation.wording.messages import explain_reason


class ContextSerializer(serializers.ModelSerializer[Context]):
    """A retrieved passage."""

    class Meta:
        model = Context
        fields = ("position", "chunk_id", "text", "score", "source", "metadata")
        read_only_fields = fields


class VerdictSerializer(serializers.ModelSerializer[Finding]):
    """A part of a score that a person can check: a claim, statement, context, nugget, keyword or flag, with what was
    found about it. ``start`` and ``end`` are offsets into the answer (``approximate`` where found by likeness),
    ``context`` is a position from 0, ``quote_start`` and ``quote_end`` are where ``quote`` stands in that passage."""

    class Meta:
        model = Finding
        fields = (
            *("kind", "position", "text", "verdict", "context", "start", "end", "approximate"),
            *("quote", "quote_start", "quote_end", "reason"),
        )
        read_only_fields = fields


class ScoreSerializer(serializers.ModelSerializer[Score]):
    """A result of one metric by one scorer. ``judge`` is null for rules; ``author`` names an imported judge.

    ``counts`` is true for rules and the primary judge, whose values enter the figures of the run.
    """

    metric = serializers.CharField(source="metric.name", read_only=True)
    metric_version = serializers.IntegerField(source="metric.version", read_only=True)
    judge = serializers.SerializerMethodField()
    is_baseline = serializers.SerializerMethodField()
    rubric = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField()
    counts = serializers.SerializerMethodField()
    verdicts = VerdictSerializer(source="findings", many=True, read_only=True)

    class Meta:
        model = Score
        fields = (
            "id",
            "metric",
            "metric_version",
            "status",
            "value",
            "label",
            "reason",
            "judge",
            "is_baseline",
            "rubric",
            "author",
            "repeat",
            "round",
            "counts",
            "detail",
            "verdicts",
        )
        read_only_fields = fields

    def get_judge(self, score: Score) -> str | None:
        """Name and version."""
        return str(score.judge_version) if score.judge_version else None

    def get_is_baseline(self, score: Score) -> bool:
        """Whether the offline baseline gave it, which is no real judge."""
        return bool(score.judge_version and score.judge_version.is_baseline)

    def get_rubric(self, score: Score) -> str | None:
        """Family, version and language."""
        return str(score.rubric_version) if score.rubric_version else None

    def get_reason(self, score: Score) -> str:
        """The scorer's own explanation, or the sentence that says why there is no value."""
        return score.reason if score.status == Status.SCORED else explain_reason(score.reason)

    def get_counts(self, score: Score) -> bool:
        """Whether the value enters the figures of the run."""
        if score.judge_version_id is None:
            return not score.author
        return (score.judge_version_id, score.rubric_version_id) in self.context["primary"]


class AnswerSerializer(serializers.ModelSerializer[Answer]):
    """An answer. ``contexts`` is null where the system does not retrieve, empty where it found nothing."""

    question_id = serializers.CharField(source="question.external_id", read_only=True)
    question = serializers.CharField(source="question.text", read_only=True)
    category = serializers.CharField(source="question.category", read_only=True)
    answer = serializers.CharField(source="text", read_only=True)
    reason = serializers.SerializerMethodField()
    contexts = serializers.SerializerMethodField()
    scores = ScoreSerializer(source="run_scores", many=True, read_only=True)

    class Meta:
        model = Answer
        fields = (
            "id",
            "question_id",
            "question",
            "category",
            "sample",
            "status",
            "reason",
            "answer",
            "latency_seconds",
            "confidence",
            "retrieved_ids",
            "contexts",
            "metadata",
            "scores",
        )
        read_only_fields = fields

    def get_reason(self, answer: Answer) -> str:
        """Why the system gave no answer; empty where it did."""
        return explain_reason(answer.reason) if answer.reason else ""

    @extend_schema(responses=ContextSerializer(many=True))
    def get_contexts(self, answer: Answer) -> list[dict[str, Any]] | None:
        """The retrieved passages in the order the system used them."""
        return list(ContextSerializer(answer.contexts.all(), many=True).data) if answer.retrieves else None


def _judged(answer: Any) -> bool:
    """Whether a judge's value is among the scores shown, be it an imported one."""
    return any(score.judge_version_id or score.author for score in answer.run_scores)


class RunAnswerList(ListEndpoint):
    """The answers of a run, oldest first."""

    pagination_class = PagesInOrder
    serializer_class = AnswerSerializer
    filterset_class = AnswerFilter
    rows = Answer.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        """For the schema only; a request goes by its run."""
        return Answer.objects.none()

    def get(self, request: Request, pk: int) -> Response:
        """One page. Who still has to rate one of these answers is recorded as having seen the judges' values."""
        run = fetch(Run.objects.all(), request.user, Action.VIEW, pk)
        page = self.paginate_queryset(self.filter_queryset(with_scores(answers_in(run), run))) or []
        values_shown(request.user, [answer.pk for answer in page if _judged(answer)], "api")
        context = {"primary": primary_pairs(run)}
        return self.get_paginated_response(AnswerSerializer(page, many=True, context=context).data)
