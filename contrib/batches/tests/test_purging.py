"""Purging of unsent calls keeps the lines of batches."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from contrib.batches.models import BatchLine, JudgeBatch
from evaluation.accounts import erasure
from evaluation.models import Attempt, Endpoint, Reply
from tests.factories import make_draft_run, make_units

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_attempt_with_a_batch_line_is_kept() -> None:
    run, now = make_draft_run(), timezone.now()
    attempts = [Attempt.objects.create(unit=unit, number=1, fence=1, round=0) for unit in make_units(run, 2)]
    for attempt in attempts:
        Reply.objects.create(attempt=attempt, outcome="not_sent", cost=0, created_at=now - timedelta(days=3))
    endpoint = Endpoint.objects.create(name="local", base_url="https://judge.example/v1")
    batch = JudgeBatch.objects.create(run=run, endpoint=endpoint, model="m")
    BatchLine.objects.create(batch=batch, attempt=attempts[1], digest="h")
    assert erasure.purge_unsent(now - timedelta(days=1), by=None) == 1
    assert list(Attempt.objects.all()) == attempts[1:]
