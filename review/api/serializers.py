"""What the review endpoints answer, field by field: nothing leaves that is not named here."""

from __future__ import annotations

import math
from typing import Any

from rest_framework import serializers

from evaluation.core.samples import Status
from evaluation.wording.messages import explain_reason
from review.api.shown_parts import ClaimShown, OfferedPartShown, PartGivenShown, PartRatedShown, VerdictShown
from review.models import Rating, ReviewQueue
from review.ratings.reveals import JudgeSaid


class GivenShown(serializers.Serializer[Any]):
    """What was given for one metric."""

    value = serializers.FloatField(allow_null=True)
    label = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # a field, not the caption of one
    cannot_judge = serializers.BooleanField()
    comment = serializers.CharField()
    reason_code = serializers.CharField()
    parts = PartGivenShown(many=True)


class LevelShown(serializers.Serializer[Any]):
    """An anchored level."""

    value = serializers.FloatField()
    text = serializers.CharField()


class MetricShown(serializers.Serializer[Any]):
    """A metric as it is asked for, with its scale and its rubric's question and levels."""

    name = serializers.CharField()
    title = serializers.CharField()
    review_form = serializers.CharField()
    kind = serializers.CharField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    labels = serializers.ListField(child=serializers.CharField())
    question = serializers.CharField()
    levels = LevelShown(many=True)
    language = serializers.CharField()
    verdicts = VerdictShown(many=True)
    parts = OfferedPartShown(many=True)
    adds = serializers.BooleanField()


class PassageShown(serializers.Serializer[Any]):
    """A retrieved passage, without its score."""

    number = serializers.IntegerField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field, not where one is read
    text = serializers.CharField()
    link = serializers.CharField()


class JudgeSaidShown(serializers.Serializer[Any]):
    """What the judge said about one metric beside the reviewer's first rating. ``levels_apart`` is null where a class
    or yes/no differs, which has no steps."""

    metric = serializers.CharField(source="metric.name")
    status = serializers.SerializerMethodField()
    value = serializers.FloatField(source="said.value", allow_null=True, default=None)
    label = serializers.CharField(source="said.label", allow_null=True, default=None)  # type: ignore[assignment]  # a field, not the caption of one
    reason = serializers.SerializerMethodField()
    judge = serializers.CharField(source="said.by", default="")
    baseline = serializers.BooleanField(source="said.baseline", default=False)
    rubric = serializers.CharField(source="said.rubric", default="")
    own_value = serializers.FloatField(source="own.value", allow_null=True, default=None)
    own_label = serializers.CharField(source="own.label", allow_null=True, default=None)
    differs = serializers.SerializerMethodField()
    levels_apart = serializers.SerializerMethodField()
    parts = serializers.SerializerMethodField()

    def get_parts(self, one: JudgeSaid) -> list[dict[str, str]]:
        """The judge's verdicts on the parts of a metric that is rated by them."""
        return [{"text": text, "verdict": verdict} for text, verdict in one.parts]

    def get_status(self, one: JudgeSaid) -> str:
        """``scored``, ``failed``, ``not_applicable``, or ``none`` where the judge was not asked."""
        return one.said.status if one.said else "none"

    def get_reason(self, one: JudgeSaid) -> str:
        """The judge's explanation, or why there is no value."""
        if one.said is None:
            return ""
        return one.said.reason if one.said.status == Status.SCORED else explain_reason(one.said.reason)

    def get_differs(self, one: JudgeSaid) -> bool:
        """Whether the two differ at all."""
        return one.distance > 0

    def get_levels_apart(self, one: JudgeSaid) -> float | None:
        """How many levels lie between the two."""
        return one.distance if math.isfinite(one.distance) else None


class CardShown(serializers.Serializer[Any]):
    """An item in its reviewer's hands. ``judge`` is null while hidden, ``system`` empty."""

    id = serializers.IntegerField()
    state = serializers.CharField()
    lease_until = serializers.DateTimeField()
    queue = serializers.IntegerField(source="queue_id")
    queue_name = serializers.CharField()
    guideline = serializers.CharField()
    mode = serializers.CharField()
    question_id = serializers.CharField()
    category = serializers.CharField()
    history = serializers.ListField(child=serializers.CharField())
    question = serializers.CharField()
    references = serializers.ListField(child=serializers.CharField())
    answer = serializers.CharField()
    contexts = PassageShown(many=True, allow_null=True)
    metrics = MetricShown(many=True)
    draft = serializers.JSONField()
    given = serializers.DictField(child=GivenShown())
    final = serializers.DictField(child=GivenShown())
    stale = serializers.BooleanField()
    system = serializers.CharField()
    judge = JudgeSaidShown(many=True, allow_null=True)
    claims = ClaimShown(many=True)
    suggestion = serializers.CharField()


class SubmittedShown(serializers.Serializer[Any]):
    """A rating that is in; ``reveal`` says that the judge is to be shown now."""

    id = serializers.IntegerField(source="assignment.pk")
    state = serializers.CharField(source="assignment.state")
    reveal = serializers.BooleanField()
    item_done = serializers.BooleanField()
    repeated = serializers.BooleanField()
    stale = serializers.BooleanField()


class FinalisedShown(serializers.Serializer[Any]):
    """What stands after the reveal."""

    id = serializers.IntegerField(source="assignment.pk")
    state = serializers.CharField(source="assignment.state")
    changed = serializers.ListField(child=serializers.CharField())
    repeated = serializers.BooleanField()


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
        fields = (
            *QueueShown.Meta.fields,
            *(
                "reveal",
                "reveal_threshold",
                "reveal_share",
                "adjudicate_from",
                "hide_system",
                "seed",
                "reviewers",
                "draws",
            ),
            *("distribution", "overlap_share", "repeat_share"),
        )

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


class DrawShown(serializers.Serializer[Any]):
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

    def get_strata(self, draw: Any) -> list[dict[str, Any]]:
        """The strata by name."""
        return [dict(StratumShown(one).data) for one in self.context["strata"].get(draw.pk, [])]


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
