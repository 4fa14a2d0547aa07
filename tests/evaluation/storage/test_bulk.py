"""Bulk inserts below the ORM store the same values and obey the same constraints."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from evaluation.models import Attempt, Reply, Score, WorkUnit
from evaluation.storage.statements import insert_values
from tests.factories import make_draft_run, make_units

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
ATTEMPT = ("unit_id", "fence", "round", "number", "created_at")
REPLY = (
    *("attempt_id", "created_at", "outcome", "http_status", "model_returned", "request_hash", "tokens_in"),
    *("tokens_out", "tokens_cached", "tokens_reasoning", "cost", "elapsed_seconds", "raw"),
)


@pytest.fixture
def unit() -> WorkUnit:
    return make_units(make_draft_run(), 1)[0]


def test_dates_decimals_texts_and_nulls_survive_insertion(unit: WorkUnit) -> None:
    now = timezone.now()
    insert_values(Attempt, ATTEMPT, [(unit.pk, 1, 0, 1, now)])
    attempt = Attempt.objects.get()
    raw = 'tab\t new\n line \\N "quoted" 한국어 \\'
    cost = Decimal("0.00012345")
    row = (attempt.pk, now, "ok", 200, "m", "h" * 64, 900, None, 0, None, cost, 0.25, raw)
    insert_values(Reply, REPLY, [row])
    reply = Reply.objects.get()
    assert (attempt.created_at, reply.created_at, reply.cost, reply.raw) == (now, now, cost, raw)
    assert (reply.tokens_out, reply.tokens_reasoning, reply.elapsed_seconds) == (None, None, 0.25)


def test_many_rows_or_none_can_be_inserted(unit: WorkUnit) -> None:
    insert_values(Attempt, ATTEMPT, [])
    insert_values(Attempt, ATTEMPT, [(unit.pk, 1, 0, number, timezone.now()) for number in range(1, 501)])
    assert Attempt.objects.count() == 500


def test_constraint_violation_rejects_all_rows(unit: WorkUnit) -> None:
    now = timezone.now()
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_values(Attempt, ATTEMPT, [(unit.pk, 1, 0, 1, now), (unit.pk, 1, 0, 1, now)])
    assert not Attempt.objects.exists()


def test_field_without_a_column_is_refused(unit: WorkUnit) -> None:
    with pytest.raises(TypeError, match="not a column"):
        insert_values(Score, ("findings",), [(1,)])
