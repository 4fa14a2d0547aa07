"""Review queues, their items and assignments, and draws with their sampling probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models import PROTECT, F, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, MetricDefinition, Project, RubricVersion, Run, User
from evaluation.storage.append_only import AppendOnly, Authored, TimestampedModel
from review.models.queue_spec import MAX_NAME_LENGTH, MAX_REVIEWS, SETTINGS, Distribution, Mode, Reveal

# Hidden repeats of an answer in a queue have higher occasions.
FIRST_OCCASION = 1


def column_options(name: str) -> dict[str, Any]:
    """Field options of a setting's column, from :class:`QueueSpec`."""
    spec_setting = SETTINGS[name]
    options: dict[str, Any] = {"verbose_name": spec_setting.column}
    if isinstance(spec_setting.default, models.TextChoices):
        options["choices"] = spec_setting.kind.choices
    return options if spec_setting.default in ("", None) else options | {"default": spec_setting.default}


def within_limits(*names: str) -> Q:
    """Condition that the settings lie within their limits."""
    low = {f"{name}__gte": SETTINGS[name].limits[0] for name in names}
    return Q(**low, **{f"{name}__lte": SETTINGS[name].limits[1] for name in names})


class ReviewQueue(TimestampedModel, Authored):
    """Answers for experts to rate, with the settings of ``queue_spec.QueueSpec``.

    A queue may be a later round of a review that its ``first_round`` planned, for ``looks`` rounds of ``later_size``
    answers each (by default as many as in the first). ``round_number`` is 1 for a first round and for queues outside of
    any plan.

    ``seed`` fixes the order and all random choices. A hidden repeat comes after at least ``repeat_gap`` other items and
    repeats one of the first ``repeat_until``. ``example`` marks ratings made for show."""

    sealed_fields = (
        *("project", "mode", "reveal", "reveal_threshold", "reveal_share", "hide_system", "seed"),
        *("looks", "later_size", "first_round", "round_number"),
    )
    Mode, Reveal, Distribution = Mode, Reveal, Distribution

    class State(models.TextChoices):
        OPEN = "open", _("open")
        CLOSED = "closed", _("closed")

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="queues")
    name = models.CharField(max_length=MAX_NAME_LENGTH, **column_options("name"))
    guideline = models.TextField(blank=True, **column_options("guideline"))
    mode = models.CharField(max_length=10, **column_options("mode"))
    reviews_needed = models.PositiveIntegerField(**column_options("reviews_needed"))
    overlap_share = models.FloatField(**column_options("overlap_share"))
    repeat_share = models.FloatField(**column_options("repeat_share"))
    repeat_gap = models.PositiveIntegerField(_("answers before a hidden repeat"), default=0)
    repeat_until = models.PositiveIntegerField(_("answers to choose repeats from"), default=0)
    distribution = models.CharField(max_length=15, **column_options("distribution"))
    reveal = models.CharField(max_length=15, **column_options("reveal"))
    reveal_threshold = models.FloatField(**column_options("reveal_threshold"))
    reveal_share = models.FloatField(**column_options("reveal_share"))
    hide_system = models.BooleanField(**column_options("hide_system"))
    lease_minutes = models.PositiveIntegerField(**column_options("lease_minutes"))
    adjudicate_from = models.FloatField(**column_options("adjudicate_from"))
    example = models.BooleanField(**column_options("example"))
    deadline = models.DateTimeField(null=True, blank=True, **column_options("deadline"))
    seed = models.PositiveBigIntegerField(default=0, **column_options("seed"))
    looks = models.PositiveIntegerField(**column_options("looks"))
    later_size = models.PositiveIntegerField(null=True, blank=True, **column_options("later_size"))
    first_round = models.ForeignKey(
        "self", verbose_name=_("first round"), on_delete=PROTECT, null=True, editable=False, related_name="later_rounds"
    )
    round_number = models.PositiveIntegerField(_("round"), default=1, editable=False)
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.OPEN)

    class Meta:
        verbose_name = _("review queue")
        verbose_name_plural = _("review queues")
        constraints = [
            models.CheckConstraint(condition=within_limits("reviews_needed"), name="sane_overlap"),
            models.CheckConstraint(
                condition=Q(mode__in=Mode.values, reveal__in=Reveal.values, state__in=["open", "closed"]),
                name="known_rules_of_queue",
            ),
            models.CheckConstraint(
                condition=Q(lease_minutes__gte=SETTINGS["lease_minutes"].limits[0]), name="sane_lease"
            ),
            models.CheckConstraint(condition=within_limits("reveal_share"), name="share_in_range"),
            models.CheckConstraint(
                condition=within_limits("overlap_share", "repeat_share"), name="shares_of_items_in_range"
            ),
            models.CheckConstraint(
                condition=within_limits("looks")
                & (
                    Q(first_round__isnull=True, round_number=1)
                    | Q(first_round__isnull=False, round_number__gt=1, round_number__lte=F("looks"))
                ),
                name="round_of_a_plan",
            ),
            models.UniqueConstraint(fields=["first_round", "round_number"], name="one_queue_per_round"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def latest_round(self) -> ReviewQueue:
        """The last queue of its plan so far. One query, or two in a later round."""
        first = self.first_round or self
        return ReviewQueue.objects.filter(first_round=first).order_by("-round_number").first() or first


class QueueMetric(TimestampedModel):
    """A metric of the queue, with the rubric whose level texts reviewers see."""

    sealed_fields = ("queue", "metric", "rubric_version")

    queue = models.ForeignKey(ReviewQueue, on_delete=PROTECT, related_name="metrics")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, null=True, related_name="+")
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["queue", "position"]
        constraints = [models.UniqueConstraint(fields=["queue", "metric"], name="one_metric_per_queue")]

    def __str__(self) -> str:
        return str(self.metric)


class QueueMember(TimestampedModel):
    """A person who may rate the queue's items. ``served`` counts the items handed out to them."""

    queue = models.ForeignKey(ReviewQueue, on_delete=PROTECT, related_name="members")
    reviewer = models.ForeignKey(User, on_delete=PROTECT, related_name="queue_memberships")
    offset = models.PositiveBigIntegerField(default=0)
    served = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "reviewer"], name="one_membership")]


class ReviewItem(TimestampedModel):
    """An answer in a queue. The judge of ``run`` is shown after the rating.

    ``shuffle_key`` is random: each reviewer walks the ring of keys from an own offset, so that the order reveals
    nothing. ``metric_ids`` holds the keys of the metrics to rate where the queue's metrics rotate; empty means all.
    ``occasion`` is 1 for the first item of an answer and higher for hidden repeats. ``reserved`` items are served only
    to people with a reservation."""

    sealed_fields = ("queue", "answer", "run", "occasion", "metric_ids")

    class State(models.TextChoices):
        OPEN = "open", _("open")
        DONE = "done", _("done")
        WITHDRAWN = "withdrawn", _("withdrawn")
        DISPUTED = "disputed", _("in dispute")

    queue = models.ForeignKey(ReviewQueue, on_delete=PROTECT, related_name="items")
    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="items")
    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="items")
    occasion = models.PositiveIntegerField(default=FIRST_OCCASION)
    reviews_needed = models.PositiveIntegerField(default=1)
    reserved = models.BooleanField(default=False)
    metric_ids = models.JSONField(default=list)
    shuffle_key = models.PositiveBigIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "answer", "occasion"], name="one_item_per_occasion"),
            models.CheckConstraint(condition=within_limits("reviews_needed"), name="sane_overlap_of_item"),
            models.CheckConstraint(
                condition=Q(occasion=FIRST_OCCASION) | Q(occasion__gt=FIRST_OCCASION, reviews_needed=1, reserved=True),
                name="repeat_is_for_one_person",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["open", "done", "withdrawn", "disputed"]), name="known_state_of_item"
            ),
        ]
        indexes = [
            models.Index(fields=["queue", "state", "shuffle_key"], name="next_items"),
            models.Index(fields=["queue", "occasion", "reserved"], name="items_set_apart"),
        ]


class Reservation(TimestampedModel):
    """A person for whom an item is reserved, after ``after`` other items."""

    item = models.ForeignKey(ReviewItem, on_delete=models.CASCADE, related_name="reservations")
    reviewer = models.ForeignKey(User, on_delete=PROTECT, related_name="reservations")
    after = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "reviewer"], name="one_reservation_per_reviewer")]
        indexes = [models.Index(fields=["reviewer", "after"], name="reservations_of_reviewer")]


class Reminder(TimestampedModel):
    """A reminder of a queue's deadline: one per person, deadline and number of hours before it. ``problem`` says why
    sending failed."""

    class State(models.TextChoices):
        SENDING = "sending", _("sending")
        SENT = "sent", _("sent")
        FAILED = "failed", _("failed")

    queue = models.ForeignKey(ReviewQueue, on_delete=PROTECT, related_name="reminders")
    reviewer = models.ForeignKey(User, on_delete=PROTECT, related_name="reminders")
    deadline = models.DateTimeField()
    hours = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.SENDING)
    tries = models.PositiveIntegerField(default=1)
    problem = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "reviewer", "deadline", "hours"], name="one_reminder_each")
        ]


class Assignment(TimestampedModel):
    """An item in the hands of one reviewer.

    ``slot`` counts the reviewers of the item from 1; a unique constraint on live slots keeps two people from colliding.
    ``fence`` counts its leases. ``queue`` duplicates the item's queue, because a person's progress is read with every
    item. :mod:`review.models.guards` checks rules across rows, such as the number of assignments of an item."""

    sealed_fields = ("item", "queue", "reviewer")

    class State(models.TextChoices):
        LEASED = "leased", _("open")
        SUBMITTED = "submitted", _("rated")
        REVEALED = "revealed", _("judge shown")
        FINISHED = "finished", _("finished")
        SKIPPED = "skipped", _("skipped")
        FLAGGED = "flagged", _("flagged")
        EXPIRED = "expired", _("expired")

    item = models.ForeignKey(ReviewItem, on_delete=PROTECT, related_name="assignments")
    queue = models.ForeignKey(ReviewQueue, on_delete=PROTECT, related_name="assignments", db_index=False)
    reviewer = models.ForeignKey(User, on_delete=PROTECT, related_name="assignments")
    slot = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.LEASED)
    lease_until = models.DateTimeField()
    fence = models.PositiveIntegerField(default=1)
    opened_at = models.DateTimeField(null=True)
    submitted_at = models.DateTimeField(null=True)
    revealed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "reviewer"], name="one_assignment_per_reviewer"),
            models.UniqueConstraint(
                fields=["item", "slot"],
                condition=~Q(state__in=["skipped", "expired", "flagged"]),
                name="one_reviewer_per_slot",
            ),
            models.CheckConstraint(condition=Q(slot__gte=1, slot__lte=MAX_REVIEWS), name="slot_in_range"),
            models.CheckConstraint(
                condition=Q(revealed_at__isnull=True)
                | Q(submitted_at__isnull=False, revealed_at__gte=F("submitted_at")),
                name="blind_before_reveal",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["submitted", "revealed", "finished"], submitted_at__isnull=False)
                | Q(state__in=["leased", "skipped", "flagged", "expired"], submitted_at__isnull=True),
                name="rated_when_submitted",
            ),
            models.CheckConstraint(
                condition=Q(state="revealed", revealed_at__isnull=False)
                | Q(state="finished")
                | (~Q(state__in=["revealed", "finished"]) & Q(revealed_at__isnull=True)),
                name="revealed_when_shown",
            ),
            models.CheckConstraint(condition=Q(fence__gte=1), name="fence_counts_from_one"),
        ]
        indexes = [
            models.Index(fields=["reviewer", "queue", "state"], name="own_in_queue_by_state"),
            models.Index(fields=["reviewer", "queue", "submitted_at"], name="own_in_queue_by_time"),
        ]


class Draft(TimestampedModel):
    """Entered values of a reviewer before the submit."""

    deleted_with = "assignment__reviewer"

    assignment = models.OneToOneField(Assignment, on_delete=PROTECT, related_name="draft")
    payload = models.JSONField(default=dict)
    saved_at = models.DateTimeField(auto_now=True)


class ItemEvent(AppendOnly):
    """Action of a reviewer on an item other than a rating."""

    erasable = ("comment",)
    author_path = "assignment__reviewer"

    assignment = models.ForeignKey(Assignment, on_delete=PROTECT, related_name="events")
    verb = models.CharField(max_length=20)
    kind = models.CharField(max_length=30, blank=True)
    comment = models.TextField(blank=True)


class EventRuling(AppendOnly):
    """A lead's ruling on a flag or an escalation: upheld or dismissed, with a reason. The highest ``seq`` counts.

    An upheld flag of a bad question or reference excludes the answer from all means."""

    erasable = ("reason",)
    author_path = "by"

    event = models.ForeignKey(ItemEvent, on_delete=PROTECT, related_name="rulings")
    seq = models.PositiveIntegerField()
    upheld = models.BooleanField()
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["event", "seq"], name="one_ruling_per_turn"),
            models.CheckConstraint(condition=~Q(reason=""), name="ruling_says_why"),
        ]


class Draw(AppendOnly, Authored):
    """A sample for review. Judge scores of ``run`` form its strata; ``params`` and ``seed`` reproduce it. ``metric`` is
    set where the queue's metrics rotate and limits the sample to that metric.

    With a ``baseline`` it is a sample of questions whose answers differ between the two runs. The frame holds the
    answers of both, and the sample serves their difference alone."""

    queue = models.ForeignKey(
        ReviewQueue, verbose_name=_("review queue"), on_delete=PROTECT, null=True, related_name="draws"
    )
    run = models.ForeignKey(Run, verbose_name=_("run"), on_delete=PROTECT, related_name="draws")
    baseline = models.ForeignKey(Run, on_delete=PROTECT, null=True, related_name="+")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, null=True, related_name="+")
    strategy = models.CharField(_("strategy"), max_length=20)
    params = models.JSONField(_("parameters"), default=dict)
    seed = models.PositiveBigIntegerField(_("seed"))
    frame_size = models.PositiveIntegerField(_("answers to sample from"))
    planned_after_looking = models.BooleanField(_("planned after an interim check"), default=False)

    class Meta:
        verbose_name = _("sample")
        verbose_name_plural = _("samples")

    def __str__(self) -> str:
        return f"{self.strategy} {self.run_id}"


class FrameMember(AppendOnly):
    """An answer in the frame of a draw. ``probability`` is null only for hand-picked samples."""

    draw = models.ForeignKey(Draw, on_delete=PROTECT, related_name="frame")
    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="+")
    stratum = models.CharField(max_length=300, blank=True)
    probability = models.FloatField(null=True)
    sampled = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["draw", "answer"], name="one_frame_member"),
            models.CheckConstraint(
                condition=Q(probability__isnull=True) | Q(probability__gt=0, probability__lte=1),
                name="probability_in_range",
            ),
        ]
        indexes = [models.Index(fields=["draw", "stratum"], name="frame_by_stratum")]

    @classmethod
    def unsupported(cls, rows: models.QuerySet[Any]) -> Iterable[int]:
        """First members of frames whose size differs from that of the draw."""
        frames = cls._base_manager.filter(draw__in=rows.values("draw")).order_by().values("draw", "draw__frame_size")
        sizes = frames.annotate(size=models.Count("pk"), first=models.Min("pk"))
        return [frame["first"] for frame in sizes if frame["size"] != frame["draw__frame_size"]]
