"""Calls of a run that are sent to a provider as one file."""

import uuid

from django.db import models
from django.db.models import PROTECT, Q

from evaluation.models import Attempt, BatchState, Endpoint, Run
from evaluation.storage.append_only import AppendOnly, TimestampedModel


class JudgeBatch(TimestampedModel):
    """Calls of a run to one model, sent to the provider as one file.

        made -> uploaded -> creating -> sent -> ended
           |        |           |         |
           +--------+--dropped--+        lost

    ``mark`` is chosen here and passed to the provider, so that a batch whose id was lost can be found. A ``dropped``
    batch was never created and cost nothing; the cost of a ``lost`` one is unknown. ``status``, ``done`` and ``failed``
    are the provider's last report. ``busy_until`` is a lease: one worker at a time advances a batch, not before
    ``next_at``. ``poll_count`` counts the polls."""

    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="batches")
    endpoint = models.ForeignKey(Endpoint, on_delete=PROTECT, related_name="+")
    model = models.CharField(max_length=200)
    mark = models.UUIDField(default=uuid.uuid4, unique=True)
    state = models.CharField(max_length=10, choices=BatchState.choices, default=BatchState.PREPARING)
    reason = models.CharField(max_length=100, blank=True)
    file_id = models.CharField(max_length=200, blank=True)
    file_sha256 = models.CharField(max_length=64, blank=True)
    provider_id = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=20, blank=True)
    lines = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    poll_count = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    busy_until = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "judge batches"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["made", "uploaded", "creating", "sent", "ended", "dropped", "lost"]),
                name="known_batch_state",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["sent", "ended"]) | ~Q(provider_id=""), name="sent_batch_has_its_id"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["dropped", "lost"]) | ~Q(reason=""), name="unsent_batch_says_why"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.provider_id or self.mark}"


class BatchLine(AppendOnly):
    """An attempt made by a batch. With ``in_file`` false, an identical request is already in a file, and its unit waits
    for that reply."""

    batch = models.ForeignKey(JudgeBatch, on_delete=PROTECT, related_name="requests")
    attempt = models.OneToOneField(Attempt, on_delete=PROTECT, related_name="line")
    digest = models.CharField(max_length=64, db_index=True)
    in_file = models.BooleanField(default=True)

    @property
    def custom_id(self) -> str:
        """Id of the line in the provider's files."""
        return f"attempt-{self.attempt_id}"
