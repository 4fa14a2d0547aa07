"""Webhooks of a project, and their messages with the outcome of each."""

import uuid

from django.db import models
from django.db.models import CASCADE, PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Project, User
from evaluation.storage.append_only import TimestampedModel


class Event(models.TextChoices):
    """Kind of event; the value is the ``type`` of the message."""

    RUN_FINISHED = "run.finished", _("Run finished")
    GATE_FAILED = "gate.failed", _("Gate not passed")
    QUEUE_FINISHED = "queue.finished", _("Review queue finished")
    REVIEW_OVERDUE = "review.overdue", _("Review overdue")
    JUDGE_DRIFTED = "judge.drifted", _("Judge drifted")
    TEST = "test", _("Test message")


class Webhook(TimestampedModel):
    """An address that gets a project's ``events``. The secret is sealed for the origin of ``url``, which never
    changes."""

    project = models.ForeignKey(Project, on_delete=PROTECT, related_name="webhooks")
    created_by = models.ForeignKey(User, on_delete=PROTECT, related_name="+")
    url = models.CharField(max_length=2000)
    sealed_secret = models.TextField()
    events = models.JSONField(default=list)
    is_active = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.url.partition("?")[0]


class Delivery(TimestampedModel):
    """A message about one event, sent at least once with the same ``message_id`` and ``body``.

        waiting -> delivered
           |
           +-----> failed -> waiting (sent again by a lead)

    ``subject`` identifies the object of the event. ``status`` and ``problem`` are those of the last attempt."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        DELIVERED = "delivered", _("delivered")
        FAILED = "failed", _("failed")

    webhook = models.ForeignKey(Webhook, on_delete=CASCADE, related_name="deliveries")
    message_id = models.UUIDField(default=uuid.uuid4, unique=True)
    event = models.CharField(max_length=20, choices=Event.choices)
    subject = models.CharField(max_length=200)
    body = models.TextField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True)
    problem = models.CharField(max_length=100, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["webhook", "event", "subject"], name="one_message_per_event"),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "delivered", "failed"]), name="known_state_of_delivery"
            ),
        ]
        indexes = [models.Index(fields=["webhook", "state", "next_at"], name="waiting_deliveries")]

    def __str__(self) -> str:
        return f"{self.event} {self.subject}"
