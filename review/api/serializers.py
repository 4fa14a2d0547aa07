"""What the review endpoints answer leads and reviewers, field by field: nothing leaves that is not named here."""

# mypy: disable-error-code="assignment"
# The REST framework has attributes named ``label``, ``source``, ``context`` and ``fields``; here they are fields.

import math
from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    ModelSerializer,
    Serializer,
    SerializerMethodField,
)
from rest_framework_dataclasses.serializers import DataclassSerializer

from review.decisions.cases import Case
from review.models import Draw, Rating, ReviewQueue
from review.models.queue_spec import COLUMNS
from review.queues.draws import strata_of
from review.queues.progress import QueueProgress


class HeldShown(Serializer[Any]):
    """An item in the caller's hands, in a line."""

    id = IntegerField(source="pk")
    state = CharField()
    question_id = CharField(source="item.answer.question.external_id")
    question = CharField(source="item.answer.question.text")
    lease_until = DateTimeField()
    submitted_at = DateTimeField(allow_null=True)


class HolderShown(Serializer[Any]):
    """Who holds or held an item, for the lead."""

    reviewer = CharField(source="reviewer.username")
    state = CharField()
    submitted_at = DateTimeField(allow_null=True)


class ItemShown(Serializer[Any]):
    """An item of a queue, for the lead."""

    id = IntegerField(source="pk")
    state = CharField()
    question_id = CharField(source="answer.question.external_id")
    category = CharField(source="answer.question.category")
    question = CharField(source="answer.question.text")
    reviewers = HolderShown(source="assignments", many=True)


class OwnProgressShown(Serializer[Any]):
    """The caller's own part of a queue."""

    items = IntegerField()
    rated = IntegerField()
    skipped = IntegerField()
    flagged = IntegerField()
    median_seconds = FloatField(allow_null=True)


class ReviewerProgressShown(Serializer[Any]):
    """One member's part."""

    reviewer = CharField(source="reviewer.username")
    rated = IntegerField()
    open = IntegerField()
    skipped = IntegerField()
    flagged = IntegerField()


class QueueProgressShown(DataclassSerializer[QueueProgress]):
    """A queue's progress for its lead."""

    share = FloatField()
    reviewers = ReviewerProgressShown(many=True)

    class Meta:
        dataclass = QueueProgress
        ref_name = "QueueProgressShown"
        fields = (
            *("items", "open", "done", "disputed", "withdrawn", "reached", "ratings", "ratings_needed", "share"),
            "reviewers",
        )


class ProgressShown(Serializer[Any]):
    """``own`` for members, ``queue`` for leads; null for the others."""

    own = OwnProgressShown(allow_null=True)
    queue = QueueProgressShown(allow_null=True)


class QueueShown(ModelSerializer[ReviewQueue]):
    """A queue as its reviewers see it: nothing of runs, strategy or seed."""

    metrics = SerializerMethodField()

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

    reviewers = SerializerMethodField()
    draws = SerializerMethodField()

    class Meta(QueueShown.Meta):
        fields = tuple(dict.fromkeys([*QueueShown.Meta.fields, *COLUMNS, "reviewers", "draws"]))

    def get_reviewers(self, queue: ReviewQueue) -> list[str]:
        """The members by user name."""
        return [row.reviewer.get_username() for row in queue.members.all()]

    def get_draws(self, queue: ReviewQueue) -> list[int]:
        """The ids of the draws behind the queue."""
        return [draw.pk for draw in queue.draws.all()]


class StratumShown(Serializer[Any]):
    """A stratum: how many answers it has and how many of them were sampled."""

    name = CharField()
    size = IntegerField()
    sampled = IntegerField()


class DrawShown(Serializer[Draw]):
    """A draw with its strata."""

    id = IntegerField(source="pk")
    run = IntegerField(source="run_id")
    queue = IntegerField(source="queue_id", allow_null=True)
    strategy = CharField()
    params = JSONField()
    seed = IntegerField()
    frame_size = IntegerField()
    planned_after_looking = BooleanField()
    created_at = DateTimeField()
    strata = SerializerMethodField()

    def get_strata(self, draw: Draw) -> list[dict[str, Any]]:
        """The strata by name."""
        return list(StratumShown(strata_of(draw), many=True).data)


class OverrideShown(Serializer[Any]):
    """An override, or the taking back of one."""

    id = IntegerField(source="pk")
    answer = IntegerField(source="answer_id")
    metric = CharField(source="metric.name")
    kind = CharField()
    seq = IntegerField()
    value = FloatField(allow_null=True)
    label = CharField(allow_null=True)
    reason = CharField()
    by = CharField(source="by.username")
    token = IntegerField(source="token_id", allow_null=True)
    created_at = DateTimeField()


class PartRatedShown(Serializer[Any]):
    """A part behind a rating with the expert's verdict."""

    position = IntegerField()
    kind = CharField()
    text = CharField()
    verdict = CharField()
    context = IntegerField(allow_null=True)
    added = BooleanField()


class RatingShown(ModelSerializer[Rating]):
    """A rating; a reviewer gets the own ones alone."""

    question_id = CharField(source="answer.question.external_id")
    metric = CharField(source="metric.name")
    metric_version = IntegerField(source="metric.version")
    reviewer = CharField(source="reviewer.username", default="")
    rubric = CharField(source="rubric_version", allow_null=True, default=None)
    rated_parts = PartRatedShown(many=True, read_only=True)

    class Meta:
        model = Rating
        fields = (
            *("id", "answer", "question_id", "metric", "metric_version", "reviewer", "author", "source", "phase"),
            *("blind", "seq", "value", "label", "cannot_judge", "reason_code", "comment", "rubric", "active_ms"),
            "token",
            "rated_parts",
            "created_at",
        )


class RaisedShown(Serializer[Any]):
    """A flag or an escalation that nobody has ruled on."""

    id = IntegerField(source="pk")
    verb = CharField()
    kind = CharField()
    comment = CharField()


class ApartShown(Serializer[Any]):
    """A metric whose first ratings lie apart. ``levels_apart`` is null where a class or yes/no differs."""

    metric = CharField()
    levels_apart = FloatField(allow_null=True)
    values = ListField(child=JSONField())


class CaseShown(Serializer[Case]):
    """An open case."""

    item = IntegerField(source="item.pk")
    answer = IntegerField(source="item.answer_id")
    queue = IntegerField(source="item.queue_id")
    question_id = CharField(source="item.answer.question.external_id")
    question = CharField(source="item.answer.question.text")
    why = ListField(child=CharField())
    raised = RaisedShown(source="events", many=True)
    apart = SerializerMethodField()

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


class RulingShown(Serializer[Any]):
    """What was made of a flag or an escalation."""

    event = IntegerField(source="event_id")
    upheld = BooleanField()
    reason = CharField()
    by = CharField(source="by.username")
    created_at = DateTimeField()
