"""An answer of a run as REST shows it: with its contexts, scores and what stands behind each score."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from evaluation.core.samples import Status
from evaluation.models import Answer, Context, Finding, Score
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


def has_judged(answer: Any) -> bool:
    """Whether a judge's value is among the scores shown, be it an imported one."""
    return any(score.judge_version_id or score.author for score in answer.run_scores)
