"""Queues, draws and progress in REST."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    DictField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    ModelSerializer,
    Serializer,
    SerializerMethodField,
    ValidationError,
)
from rest_framework_dataclasses.serializers import DataclassSerializer

from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.messages.explanations import explain_refusal
from evaluation.rest.endpoints import StrictSerializer
from evaluation.rest.fields import id_field, optional_text
from evaluation.specs.rest_fields import SettingsSerializer
from evaluation.specs.setting import Setting
from review.models import Draw, ReviewQueue
from review.models.queue_spec import COLUMNS, CONFIGURABLE_SETTINGS, MAX_REVIEWS, SETTINGS
from review.queues.draws import draw_strata
from review.queues.progress import QueueProgress
from review.statistics.sampling.member import DrawParams, Strategy


def strategies() -> list[str]:
    """List the strategies of draws. The OpenAPI document names this enum apart from that of searches
    (``ENUM_NAME_OVERRIDES``)."""
    return list(Strategy)


class DesignBody(SettingsSerializer, StrictSerializer):
    """Choice of answers. ``fail_below`` and ``share`` belong to ``fails_plus_share``, ``answers`` to
    ``hand_picked``."""

    settings: Iterable[Setting] = [SETTINGS[name] for name in ("strategy", "size", "seed", "fail_below", "share")]

    answers = ListField(child=id_field(), default=list, max_length=10_000)


class DrawBody(DesignBody):
    """A draw from a run, without a queue. The judge's values of ``metric`` form the strata."""

    run = id_field()
    metric = optional_text(100)


class QueueBody(DesignBody):
    """A queue over one or several runs. ``reviewers`` are user names. ``reviews_needed`` people rate ``overlap_share``
    of the items; one person rates each of the others. ``repeat_share`` of a reviewer's items are shown a second
    time, unmarked."""

    settings = CONFIGURABLE_SETTINGS

    runs = ListField(child=id_field(), min_length=1, max_length=50)
    metrics = ListField(child=CharField(max_length=100), default=list, max_length=50)
    reviewers = ListField(child=CharField(max_length=150), min_length=1, max_length=500)
    people_of_tags = DictField(
        child=ListField(child=CharField(max_length=150), min_length=1, max_length=500),
        default=dict,
        help_text="For by_tag: tag or category -> user names.",
    )
    people_of_answers = DictField(
        child=ListField(child=CharField(max_length=150), min_length=1, max_length=MAX_REVIEWS),
        default=dict,
        help_text="For per_item: id of an answer -> user names.",
    )

    def validate_deadline(self, value: datetime | None) -> datetime | None:
        """Reject a deadline that has passed."""
        if value and value <= timezone.now():
            raise ValidationError(explain_refusal(DomainError("deadline_passed")))
        return value

    def validate_people_of_answers(self, value: dict[str, list[str]]) -> dict[str, list[str]]:
        """Reject keys that are not answer ids."""
        if invalid_keys := [key[:40] for key in value if parse_int(key) is None]:
            raise ValidationError(explain_refusal(DomainError("unknown_keys", keys=invalid_keys)))
        return value


def draw_params_from(body: dict[str, Any]) -> DrawParams:
    return DrawParams(keys=frozenset(body["answers"]), fail_below=body["fail_below"], share=body["share"])


class OwnProgressShown(Serializer[Any]):
    """The caller's own progress in a queue."""

    items = IntegerField()
    rated = IntegerField()
    skipped = IntegerField()
    flagged = IntegerField()
    median_seconds = FloatField(allow_null=True)


class ReviewerProgressShown(Serializer[Any]):
    """A reviewer's progress."""

    reviewer = CharField(source="reviewer.username")
    rated = IntegerField()
    open = IntegerField()
    skipped = IntegerField()
    flagged = IntegerField()


class QueueProgressShown(DataclassSerializer[QueueProgress]):
    """A queue's progress, for its leads."""

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
    """``own`` is set for members, ``queue`` for leads; otherwise null."""

    own = OwnProgressShown(allow_null=True)
    queue = QueueProgressShown(allow_null=True)


class QueueShown(ModelSerializer[ReviewQueue]):
    """A queue for its reviewers: without runs, strategy and seed."""

    metrics = SerializerMethodField()

    class Meta:
        model = ReviewQueue
        fields: tuple[str, ...] = (
            *("id", "name", "state", "mode", "guideline", "reviews_needed", "lease_minutes", "deadline", "example"),
            *("created_at", "metrics"),
        )

    def get_metrics(self, queue: ReviewQueue) -> list[str]:
        return [row.metric.name for row in queue.metrics.all()]


class LedQueueShown(QueueShown):
    """A queue for its leads."""

    reviewers = SerializerMethodField()
    draws = SerializerMethodField()

    class Meta(QueueShown.Meta):
        fields = tuple(
            dict.fromkeys([*QueueShown.Meta.fields, *COLUMNS, "first_round", "round_number", "reviewers", "draws"])
        )

    def get_reviewers(self, queue: ReviewQueue) -> list[str]:
        return [row.reviewer.get_username() for row in queue.members.all()]

    def get_draws(self, queue: ReviewQueue) -> list[int]:
        return [draw.pk for draw in queue.draws.all()]


class StratumShown(Serializer[Any]):
    """A stratum: its number of answers, and how many of them were sampled."""

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
        return list(StratumShown(draw_strata(draw), many=True).data)
