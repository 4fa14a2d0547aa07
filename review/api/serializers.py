"""What the review endpoints answer leads and reviewers, field by field: nothing leaves that is not named here."""

from __future__ import annotations

import math
from typing import Any

from rest_framework import serializers

from review.decisions.cases import Case
from review.models import Draw, Rating, ReviewQueue
from review.models.queue_spec import COLUMNS
from review.queues.draws import strata_of


class HeldShown(serializers.Serializer[Any]):
    """An item in the caller's hands, in a line."""

    id = serializers.IntegerField(source="pk")
    state = serializers.CharField()
    question_id = serializers.CharField(source="item.answer.question.external_id")
    question = serializers.CharField(source="item.answer.question.text")
    lease_until = serializers.DateTimeField()
    submitted_at = serializers.DateTimeField(allow_null=True)


class HolderShown(serializers.Serializer[Any]):
    """Who holds or held an item, for the lead."""

    reviewer = serializers.CharField(source="reviewer.username")
    state = serializers.CharField()
    submitted_at = serializers.DateTimeField(allow_null=True)


class ItemShown(serializers.Serializer[Any]):
    """An item of a queue, for the lead."""

    id = serializers.IntegerField(source="pk")
    state = serializers.CharField()
    question_id = serializers.CharField(source="answer.question.external_id")
    category = serializers.CharField(source="answer.question.category")
    question = serializers.CharField(source="answer.question.text")
    reviewers = HolderShown(source="assignments", many=True)


class OwnProgressShown(serializers.Serializer[Any]):
    """The caller's own part of a queue."""

    items = serializers.IntegerField()
    rated = serializers.IntegerField()
    skipped = serializers.IntegerField()
    flagged = serializers.IntegerField()
    median_seconds = serializers.FloatField(allow_null=True)


class ReviewerProgressShown(serializers.Serializer[Any]):
    """One member's part."""

    reviewer = serializers.CharField(source="reviewer.username")
    rated = serializers.IntegerField()
    open = serializers.IntegerField()
    skipped = serializers.IntegerField()
    flagged = serializers.IntegerField()


class QueueProgressShown(serializers.Serializer[Any]):
    """A queue's progress for its lead."""

    items = serializers.IntegerField()
    open = serializers.IntegerField()
    done = serializers.IntegerField()
    disputed = serializers.IntegerField()
    withdrawn = serializers.IntegerField()
    reached = serializers.IntegerField()
    ratings = serializers.IntegerField()
    ratings_needed = serializers.IntegerField()
    share = serializers.FloatField()
    reviewers = ReviewerProgressShown(many=True)


class ProgressShown(serializers.Serializer[Any]):
    """``own`` for members, ``queue`` for leads; null for the others."""

    own = OwnProgressShown(allow_null=True)
    queue = QueueProgressShown(allow_null=True)


class QueueShown(serializers.ModelSerializer[ReviewQueue]):
    """A queue as its reviewers see it: nothing of runs, strategy or seed."""

    metrics = serializers.SerializerMethodField()

    class Meta:
        model = ReviewQueue
        fields: tuple[str, ...] = (
            *("id", "name", "state", "mode", "guideline", "reviews_needed", "lease_minutes", "deadline", "example"),
            *("created_at", "metrics"),
        )

    def get_metrics(self, queue: ReviewQueue) -> list[str]:
        """The names of the metrics asked for."""
        return [row.metric.name for row in queue.metrics.all()]


class LedQueueShown(QueueShown):
    """A queue as its lead sees it."""

    reviewers = serializers.SerializerMethodField()
    draws = serializers.SerializerMethodField()

    class Meta(QueueShown.Meta):
        fields = tuple(dict.fromkeys([*QueueShown.Meta.fields, *COLUMNS, "reviewers", "draws"]))

    def get_reviewers(self, queue: ReviewQueue) -> list[str]:
        """The members by user name."""
        return [row.reviewer.get_username() for row in queue.members.all()]

    def get_draws(self, queue: ReviewQueue) -> list[int]:
        """The ids of the draws behind the queue."""
        return [draw.pk for draw in queue.draws.all()]


class StratumShown(serializers.Serializer[Any]):
    """A stratum: how many answers it has and how many of them were sampled."""

    name = serializers.CharField()
    size = serializers.IntegerField()
    sampled = serializers.IntegerField()


class DrawShown(serializers.Serializer[Draw]):
    """A draw with its strata."""

    id = serializers.IntegerField(source="pk")
    run = serializers.IntegerField(source="run_id")
    queue = serializers.IntegerField(source="queue_id", allow_null=True)
    strategy = serializers.CharField()
    params = serializers.JSONField()
    seed = serializers.IntegerField()
    frame_size = serializers.IntegerField()
    planned_after_looking = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    strata = serializers.SerializerMethodField()

    def get_strata(self, draw: Draw) -> list[dict[str, Any]]:
        """The strata by name."""
        return list(StratumShown(strata_of(draw), many=True).data)


class OverrideShown(serializers.Serializer[Any]):
    """An override, or the taking back of one."""

    id = serializers.IntegerField(source="pk")
    answer = serializers.IntegerField(source="answer_id")
    metric = serializers.CharField(source="metric.name")
    kind = serializers.CharField()
    seq = serializers.IntegerField()
    value = serializers.FloatField(allow_null=True)
    label = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # a field, not the caption of one
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username")
    created_at = serializers.DateTimeField()


class PartRatedShown(serializers.Serializer[Any]):
    """A part behind a rating with the expert's verdict."""

    position = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField()
    verdict = serializers.CharField()
    context = serializers.IntegerField(allow_null=True)  # type: ignore[assignment]  # a field, not the serializer's own
    added = serializers.BooleanField()


class RatingShown(serializers.ModelSerializer[Rating]):
    """A rating; a reviewer gets the own ones alone."""

    question_id = serializers.CharField(source="answer.question.external_id")
    metric = serializers.CharField(source="metric.name")
    metric_version = serializers.IntegerField(source="metric.version")
    reviewer = serializers.CharField(source="reviewer.username", default="")
    rubric = serializers.CharField(source="rubric_version", allow_null=True, default=None)
    rated_parts = PartRatedShown(many=True, read_only=True)

    class Meta:
        model = Rating
        fields = (
            *("id", "answer", "question_id", "metric", "metric_version", "reviewer", "author", "source", "phase"),
            *("blind", "seq", "value", "label", "cannot_judge", "reason_code", "comment", "rubric", "active_ms"),
            "rated_parts",
            "created_at",
        )


class RaisedShown(serializers.Serializer[Any]):
    """A flag or an escalation that nobody has ruled on."""

    id = serializers.IntegerField(source="pk")
    verb = serializers.CharField()
    kind = serializers.CharField()
    comment = serializers.CharField()


class ApartShown(serializers.Serializer[Any]):
    """A metric whose first ratings lie apart. ``levels_apart`` is null where a class or yes/no differs."""

    metric = serializers.CharField()
    levels_apart = serializers.FloatField(allow_null=True)
    values = serializers.ListField(child=serializers.JSONField())


class CaseShown(serializers.Serializer[Case]):
    """An open case."""

    item = serializers.IntegerField(source="item.pk")
    answer = serializers.IntegerField(source="item.answer_id")
    queue = serializers.IntegerField(source="item.queue_id")
    question_id = serializers.CharField(source="item.answer.question.external_id")
    question = serializers.CharField(source="item.answer.question.text")
    why = serializers.ListField(child=serializers.CharField())
    raised = RaisedShown(source="events", many=True)
    apart = serializers.SerializerMethodField()

    def get_apart(self, case: Case) -> list[dict[str, Any]]:
        """The metrics in dispute with the values that were given, in no telling order."""
        found = []
        for metric_id, levels in case.apart.items():
            rows = [row for row in case.ratings if row.metric_id == metric_id and not row.cannot_judge]
            values = sorted((row.label if row.value is None else row.value for row in rows), key=str)
            shown = {
                "metric": rows[0].metric.name,
                "levels_apart": levels if math.isfinite(levels) else None,
                "values": values,
            }
            found.append(dict(ApartShown(shown).data))
        return found


class RulingShown(serializers.Serializer[Any]):
    """What was made of a flag or an escalation."""

    event = serializers.IntegerField(source="event_id")
    upheld = serializers.BooleanField()
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username")
    created_at = serializers.DateTimeField()
