"""Review queues, their items, who holds which item, and the draws: which answers were taken, with which probability."""

from typing import Any

from django.db import models
from django.db.models import PROTECT, F, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, MetricDefinition, Project, RubricVersion, Run, User
from evaluation.storage.append_only import AppendOnly, Authored, Row
from review.models.queue_spec import LONGEST_NAME, MOST_REVIEWS, SETTINGS, Distribution, Mode, Reveal

FIRST_OCCASION = 1  # of an answer in a queue; hidden repeats have higher ones


def column(name: str) -> dict[str, Any]:
    """What :class:`QueueSpec` says of a setting, for its column."""
    one = SETTINGS[name]
    said: dict[str, Any] = {"verbose_name": one.column}
    if isinstance(one.default, models.TextChoices):
        said["choices"] = one.kind.choices
    return said if one.default in ("", None) else said | {"default": one.default}


def in_range(*names: str) -> Q:
    """That settings lie in their ranges."""
    low = {f"{name}__gte": SETTINGS[name].limits[0] for name in names}
    return Q(**low, **{f"{name}__lte": SETTINGS[name].limits[1] for name in names})


class ReviewQueue(Row, Authored):
    """Answers waiting for experts, and the rules under which they rate, as ``queue_spec.QueueSpec`` tells.

    ``seed`` fixes the order, and what is left to chance. A hidden repeat comes after at least ``repeat_gap`` others and
    is chosen among the first ``repeat_until``. ``example`` marks ratings made for show.
    """

    Mode, Reveal, Distribution = Mode, Reveal, Distribution

    class State(models.TextChoices):
        OPEN = "open", _("open")
        CLOSED = "closed", _("closed")

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="queues")
    name = models.CharField(max_length=LONGEST_NAME, **column("name"))
    guideline = models.TextField(blank=True, **column("guideline"))
    mode = models.CharField(max_length=10, **column("mode"))
    reviews_needed = models.PositiveIntegerField(**column("reviews_needed"))
    overlap_share = models.FloatField(**column("overlap_share"))
    repeat_share = models.FloatField(**column("repeat_share"))
    repeat_gap = models.PositiveIntegerField(_("answers before a hidden repeat"), default=0)
    repeat_until = models.PositiveIntegerField(_("answers among which repeats are chosen"), default=0)
    distribution = models.CharField(max_length=15, **column("distribution"))
    reveal = models.CharField(max_length=15, **column("reveal"))
    reveal_threshold = models.FloatField(**column("reveal_threshold"))
    reveal_share = models.FloatField(**column("reveal_share"))
    hide_system = models.BooleanField(**column("hide_system"))
    lease_minutes = models.PositiveIntegerField(**column("lease_minutes"))
    adjudicate_from = models.FloatField(**column("adjudicate_from"))
    example = models.BooleanField(**column("example"))
    deadline = models.DateTimeField(null=True, blank=True, **column("deadline"))
    seed = models.PositiveBigIntegerField(default=0, **column("seed"))
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.OPEN)

    class Meta:
        verbose_name = _("review queue")
        verbose_name_plural = _("review queues")
        constraints = [
            models.CheckConstraint(condition=in_range("reviews_needed"), name="sane_overlap"),
            models.CheckConstraint(
                condition=Q(mode__in=Mode.values, reveal__in=Reveal.values, state__in=["open", "closed"]),
                name="known_rules_of_queue",
            ),
            models.CheckConstraint(
                condition=Q(lease_minutes__gte=SETTINGS["lease_minutes"].limits[0]), name="sane_lease"
            ),
            models.CheckConstraint(condition=in_range("reveal_share"), name="share_in_range"),
            models.CheckConstraint(
                condition=in_range("overlap_share", "repeat_share"), name="shares_of_items_in_range"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class QueueMetric(Row):
    """A metric that the queue asks for, with the rubric whose level texts the reviewers see."""

    queue = models.ForeignKey(ReviewQueue, on_delete=PROTECT, related_name="metrics")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, null=True, related_name="+")
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["queue", "position"]
        constraints = [models.UniqueConstraint(fields=["queue", "metric"], name="one_metric_per_queue")]

    def __str__(self) -> str:
        return str(self.metric)


class QueueMember(Row):
    """A person who may rate the queue's items. ``served`` counts what they were handed out."""

    queue = models.ForeignKey(ReviewQueue, on_delete=PROTECT, related_name="members")
    reviewer = models.ForeignKey(User, on_delete=PROTECT, related_name="queue_memberships")
    offset = models.PositiveBigIntegerField(default=0)
    served = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "reviewer"], name="one_membership")]


class ReviewItem(Row):
    """An answer in a queue. ``run`` is the run whose judge is shown after the rating. ``shuffle_key`` is random:
    a reviewer walks the ring of keys from an offset of their own, so that order tells nothing. ``asks``: keys of the
    metrics it is rated by where the queue asks for its metrics in turn; empty: by all of them.

    ``occasion`` is 1 for the first time an answer stands in the queue and higher for hidden repeats. ``reserved``:
    only people with a reservation are served it.
    """

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
    asks = models.JSONField(default=list)
    shuffle_key = models.PositiveBigIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "answer", "occasion"], name="one_item_per_occasion"),
            models.CheckConstraint(condition=in_range("reviews_needed"), name="sane_overlap_of_item"),
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


class Reservation(Row):
    """A person an item is kept for; ``after`` is how many items they are handed out first."""

    item = models.ForeignKey(ReviewItem, on_delete=models.CASCADE, related_name="reservations")
    reviewer = models.ForeignKey(User, on_delete=PROTECT, related_name="reservations")
    after = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "reviewer"], name="one_reservation_per_reviewer")]
        indexes = [models.Index(fields=["reviewer", "after"], name="reservations_of_reviewer")]


class Reminder(Row):
    """A mail about a queue's deadline: one for each person, deadline and number of hours before it. ``problem`` says
    why it could not be sent."""

    class State(models.TextChoices):
        SENDING = "sending", _("being sent")
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


class Assignment(Row):
    """An item in one reviewer's hands. ``slot`` counts the reviewers of the item from 1; the unique constraint on
    live slots is what keeps two people from colliding. ``fence`` counts its leases. ``queue`` is the item's, said here
    again because a person's own part of a queue is looked up with every item. What needs a look at other rows, such as
    how many assignments an item may have, is kept by :mod:`review.models.guards`."""

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
            models.CheckConstraint(condition=Q(slot__gte=1, slot__lte=MOST_REVIEWS), name="slot_in_range"),
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


class Draft(Row):
    """What a reviewer has entered and not yet submitted."""

    deleted_with = "assignment__reviewer"

    assignment = models.OneToOneField(Assignment, on_delete=PROTECT, related_name="draft")
    payload = models.JSONField(default=dict)
    saved_at = models.DateTimeField(auto_now=True)


class ItemEvent(AppendOnly):
    """What a reviewer did with an item other than rating it."""

    erasable = ("comment",)
    written_by = "assignment__reviewer"

    assignment = models.ForeignKey(Assignment, on_delete=PROTECT, related_name="events")
    verb = models.CharField(max_length=20)
    kind = models.CharField(max_length=30, blank=True)
    comment = models.TextField(blank=True)


class EventRuling(AppendOnly):
    """What a lead made of a flag or an escalation: upheld or dismissed, and why. The highest ``seq`` counts.

    An upheld flag of a bad question or reference takes the answer out of all means.
    """

    erasable = ("reason",)
    written_by = "by"

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
    """A sample for review. ``run`` is the run whose judge scores steer it; ``params`` and ``seed`` repeat it.
    ``metric``: the only one it is a sample for, where a queue asks for its metrics in turn; else it is for them all."""

    queue = models.ForeignKey(
        ReviewQueue, verbose_name=_("review queue"), on_delete=PROTECT, null=True, related_name="draws"
    )
    run = models.ForeignKey(Run, verbose_name=_("run"), on_delete=PROTECT, related_name="draws")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, null=True, related_name="+")
    strategy = models.CharField(_("strategy"), max_length=20)
    params = models.JSONField(_("parameters"), default=dict)
    seed = models.PositiveBigIntegerField(_("seed"))
    frame_size = models.PositiveIntegerField(_("answers to draw from"))
    planned_after_looking = models.BooleanField(_("planned after a first look"), default=False)

    class Meta:
        verbose_name = _("draw")
        verbose_name_plural = _("draws")

    def __str__(self) -> str:
        return f"{self.strategy} {self.run_id}"


class FrameMember(AppendOnly):
    """An answer that the draw could have taken. ``probability`` is null for hand-picked answers only."""

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
