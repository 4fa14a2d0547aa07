"""Calls of a run that are handed to a provider together, as a file."""

import uuid

from django.db import models
from django.db.models import PROTECT, Q

from evaluation.models import Attempt, BatchState, Endpoint, Run
from evaluation.storage.append_only import AppendOnly, Row


class JudgeBatch(Row):
    """Calls of a run to one model that are handed to the provider together, as a file.

        made -> uploaded -> creating -> sent -> ended
           |        |           |         |
           +--------+--dropped--+        lost

    ``mark`` is chosen here and given to the provider, so that a batch whose id was lost on the way is found again.
    ``dropped`` was never created, so nothing was paid; of a ``lost`` one nobody knows. ``status``, ``done`` and
    ``failed`` are what the provider told last. ``busy_until`` is a lease: one worker at a time sees to a batch, not
    before ``next_at``; ``looks`` counts these turns.
    """

    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="batches")
    endpoint = models.ForeignKey(Endpoint, on_delete=PROTECT, related_name="+")
    model = models.CharField(max_length=200)
    mark = models.UUIDField(default=uuid.uuid4, unique=True)
    state = models.CharField(max_length=10, choices=BatchState.choices, default=BatchState.MADE)
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
    cancel_asked = models.BooleanField(default=False)
    looks = models.PositiveIntegerField(default=0)
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
    """An attempt that is made by a batch. Where an identical request stands in a file already this one does not
    (``in_file``): its unit waits for the other's reply."""

    batch = models.ForeignKey(JudgeBatch, on_delete=PROTECT, related_name="requests")
    attempt = models.OneToOneField(Attempt, on_delete=PROTECT, related_name="line")
    digest = models.CharField(max_length=64, db_index=True)
    in_file = models.BooleanField(default=True)

    @property
    def custom_id(self) -> str:
        """The line's name in the files."""
        return f"attempt-{self.attempt_id}"
