"""Whose turn it is at a comparison: one process at a time, by a lease that ends with the process that holds it."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from review.models import PairJudging

HEARTBEAT_SHARE = 3  # the lease is prolonged when a third of its time has passed


@dataclass
class Turn:
    """A turn at a comparison. Times are the database's, as those of all leases."""

    judging: PairJudging
    _token: uuid.UUID = field(default_factory=uuid.uuid4)
    _prolonged_at: float = float("-inf")

    def begin(self) -> bool:
        """Take the turn; false while somebody else has it."""
        free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
        return self._lease(Q(pk=self.judging.pk) & free)

    def holds(self) -> bool:
        """Whether the turn is still ours; prolongs it in time."""
        if time.monotonic() - self._prolonged_at < settings.CONCORD_LEASE_SECONDS / HEARTBEAT_SHARE:
            return PairJudging.objects.filter(pk=self.judging.pk, lease_token=self._token).exists()
        return self._lease(Q(pk=self.judging.pk, lease_token=self._token))

    def end(self) -> None:
        """Hand the turn over."""
        PairJudging.objects.filter(pk=self.judging.pk, lease_token=self._token).update(
            lease_token=None, lease_until=None
        )

    def _lease(self, where: Q) -> bool:
        until = Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS)
        taken = PairJudging.objects.filter(where).update(lease_token=self._token, lease_until=until)
        self._prolonged_at = time.monotonic()
        return bool(taken)
