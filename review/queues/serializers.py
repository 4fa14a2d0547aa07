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

from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.messages.sentences import explain_refusal
from evaluation.rest.endpoints import StrictSerializer
from evaluation.rest.fields import optional_text, row_id
from evaluation.specs.rest_fields import SettingsSerializer
from evaluation.specs.setting import Setting
from review.models import Draw, ReviewQueue
from review.models.queue_spec import ASKED, COLUMNS, MOST_REVIEWS, SETTINGS
from review.queues.draws import strata_of
from review.queues.progress import QueueProgress
from review.statistics.sampling.member import DrawParams, Strategy


def strategies() -> list[str]:
    """Those of draws, as the OpenAPI document tells them apart from those of searches (``ENUM_NAME_OVERRIDES``)."""
    return list(Strategy)


class DesignBody(SettingsSerializer, StrictSerializer):
    """How answers are chosen. ``fail_below`` and ``share`` belong to ``fails_plus_share``, ``answers`` to
    ``hand_picked``."""

    settings: Iterable[Setting] = [SETTINGS[name] for name in ("strategy", "size", "seed", "fail_below", "share")]

    answers = ListField(child=row_id(), default=list, max_length=10_000)


class DrawBody(DesignBody):
    """A draw over a run, without a queue. ``metric`` is the one whose judge values make the strata."""

    run = row_id()
    metric = optional_text(100)


class QueueBody(DesignBody):
    """A queue over one or several runs. ``reviewers`` are user names. ``overlap_share`` of the items are rated by
    ``reviews_needed`` people, the others by one; ``repeat_share`` of a reviewer's items come again, unmarked."""

    settings = ASKED

    runs = ListField(child=row_id(), min_length=1, max_length=50)
    metrics = ListField(child=CharField(max_length=100), default=list, max_length=50)
    reviewers = ListField(child=CharField(max_length=150), min_length=1, max_length=500)
    people_of_tags = DictField(
        child=ListField(child=CharField(max_length=150), min_length=1, max_length=500),
        default=dict,
        help_text="For by_tag: tag or category -> user names.",
    )
    people_of_answers = DictField(
        child=ListField(child=CharField(max_length=150), min_length=1, max_length=MOST_REVIEWS),
        default=dict,
        help_text="For per_item: id of an answer -> user names.",
    )

    def validate_deadline(self, value: datetime | None) -> datetime | None:
        """A moment that is still to come."""
        if value and value <= timezone.now():
            raise ValidationError(explain_refusal(Refused("deadline_passed")))
        return value

    def validate_people_of_answers(self, value: dict[str, list[str]]) -> dict[str, list[str]]:
        """Ids of answers in front of the names."""
        if wrong := [key[:40] for key in value if whole_number(key) is None]:
            raise ValidationError(explain_refusal(Refused("unknown_keys", keys=wrong)))
        return value


def design_from(body: dict[str, Any]) -> DrawParams:
    """What the strategy is told."""
    return DrawParams(keys=frozenset(body["answers"]), fail_below=body["fail_below"], share=body["share"])


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
