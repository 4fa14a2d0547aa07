"""The audit log: a chain in which every event covers the one before it."""

from collections.abc import Iterator
from typing import Any

from django.db import connection, models, transaction

from evaluation.core.canonical import content_hash
from evaluation.models import AuditEvent, User

GENESIS = "0" * 64
_LOCK = 7_141_200  # an arbitrary number that names this lock among PostgreSQL's advisory locks


def record(actor: User | None, verb: str, subject: models.Model, **detail: Any) -> AuditEvent:
    """Append an event. ``detail`` holds ids, versions and hashes only, never personal text."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        last = AuditEvent.objects.order_by("-id").values_list("hash", flat=True).first() or GENESIS
        event = AuditEvent(
            actor=actor,
            verb=verb,
            object_type=subject._meta.label_lower,
            object_id=str(subject.pk),
            detail=detail,
            prev_hash=last,
        )
        event.hash = _digest(event)
        event.save(force_insert=True)
    return event


def broken_events() -> Iterator[AuditEvent]:
    """Events whose content or predecessor is not what their hash says."""
    last = GENESIS
    for event in AuditEvent.objects.order_by("id").iterator():
        if event.prev_hash != last or event.hash != _digest(event):
            yield event
        last = event.hash


def _digest(event: AuditEvent) -> str:
    return content_hash(
        [
            event.prev_hash,
            event.created_at.isoformat(timespec="microseconds"),
            event.actor_id,
            event.verb,
            event.object_type,
            event.object_id,
            event.detail,
        ]
    )
