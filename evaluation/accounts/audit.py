"""Audit log: a hash chain of events, and seals in it that cover scores, ratings and decisions.

``docs/operations.md`` ("Has anything been changed?") says which changes it can detect."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.apps import apps
from django.db import ProgrammingError, connection, models, transaction
from django.utils import timezone

from evaluation.core.canonical import content_hash
from evaluation.models import AuditEvent, User
from evaluation.storage import integrity
from evaluation.storage.append_only import AppendOnly

GENESIS = "0" * 64
# Arbitrary key of PostgreSQL's advisory lock.
_LOCK = 7_141_200
SEALED = "rows.sealed"
ROWS_PER_SEAL = 1000
#: Rows are sealed an hour after creation, because an open transaction may still commit rows with lower keys.
SEAL_DELAY = timedelta(hours=1)
MAX_SEALS_PER_SWEEP = 50


@dataclass(frozen=True, slots=True)
class Flaw:
    """An integrity problem: ``code`` (worded in ``evaluation/messages/reasons.py``) and the affected object."""

    code: str
    subject: str


def record(actor: User | None, verb: str, subject: models.Model, **detail: Any) -> AuditEvent:
    """Append an event. ``detail`` holds ids, versions and hashes only, never personal text."""
    with transaction.atomic():
        _lock_chain()
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


def chain_head() -> str:
    """Return the newest event as ``NUMBER:HASH``; stored elsewhere, it lets :func:`flaws` detect a truncated log."""
    last = AuditEvent.objects.order_by("-id").first()
    return f"{last.pk}:{last.hash}" if last else f"0:{GENESIS}"


def flaws(expected_head: str = "") -> Iterator[Flaw]:
    """Yield every detectable change to events, sealed rows and triggers.

    :param expected_head: an earlier :func:`chain_head`, or empty."""
    yield from _broken_events()
    number, _, digest = expected_head.partition(":")
    if (
        expected_head
        and expected_head != f"0:{GENESIS}"
        and not AuditEvent.objects.filter(pk=int(number), hash=digest).exists()
    ):
        yield Flaw("head_missing", expected_head)
    for event in AuditEvent.objects.filter(verb=SEALED).order_by("id").iterator():
        model = apps.get_model(event.object_type)
        after, last = int(event.detail["after"]), int(event.object_id)
        if _digest_of_rows(model, event.detail["columns"], after, last) != event.detail["digest"]:
            yield Flaw("rows_differ", f"{model._meta.db_table} {after + 1}-{last}")
    try:
        yield from (Flaw(f"trigger_{change}", name) for name, change in integrity.altered_triggers().items())
    # The database's role does not own the tables.
    except ProgrammingError as error:
        yield Flaw("triggers_unchecked", str(error).splitlines()[0])


def seal_rows(before: datetime | None = None, max_events: int | None = None) -> int:
    """Append digests of unsealed rows, a thousand rows an event; returns the number of rows.

    :param before: leaves out rows created from then on and all rows after the first of them; ``None`` seals all.
    :param max_events: limit for one table; ``None`` for no limit."""
    rows = 0
    for model in _sealed_models():
        events = 0
        while (max_events is None or events < max_events) and (count := _seal(model, before)):
            rows, events = rows + count, events + 1
    return rows


def unsealed_rows() -> int:
    """Count the rows of sealed tables that no seal covers yet."""
    return sum(_unsealed(model).count() for model in _sealed_models())


def seal_old_rows() -> None:
    """Seal rows older than an hour, as soon as one is older than two. Runs periodically."""
    now = timezone.now()
    oldest_unsealed = [_unsealed(model).values_list("created_at", flat=True).first() for model in _sealed_models()]
    if any(created_at is not None and created_at < now - 2 * SEAL_DELAY for created_at in oldest_unsealed):
        seal_rows(now - SEAL_DELAY, MAX_SEALS_PER_SWEEP)


def _sealed_models() -> list[type[AppendOnly]]:
    return [model for model in apps.get_models() if issubclass(model, AppendOnly) and model.is_digested]


def _seal(model: type[AppendOnly], before: datetime | None) -> int:
    with transaction.atomic():
        _lock_chain()
        after, rows = _last_sealed_key(model), _unsealed(model)
        first_young_key = rows.filter(created_at__gte=before).values_list("pk", flat=True).first() if before else None
        keys = list(
            (rows if first_young_key is None else rows.filter(pk__lt=first_young_key)).values_list("pk", flat=True)[
                :ROWS_PER_SEAL
            ]
        )
        if keys:
            columns = [field.attname for field in model._meta.concrete_fields if field.name not in model.erasable]
            digest = _digest_of_rows(model, columns, after, keys[-1])
            last = model._base_manager.get(pk=keys[-1])
            record(None, SEALED, last, after=after, rows=len(keys), columns=columns, digest=digest)
    return len(keys)


def _last_sealed_key(model: type[AppendOnly]) -> int:
    events = AuditEvent.objects.filter(verb=SEALED, object_type=model._meta.label_lower).order_by("-id")
    return int(events.values_list("object_id", flat=True).first() or 0)


def _unsealed(model: type[AppendOnly]) -> models.QuerySet[Any]:
    return model._base_manager.filter(pk__gt=_last_sealed_key(model)).order_by("pk")


def _digest_of_rows(model: type[models.Model], columns: list[str], after: int, last: int) -> str:
    rows = model._base_manager.filter(pk__gt=after, pk__lte=last).order_by("pk").values_list(*columns)
    digest = hashlib.sha256()
    for row in rows.iterator():
        digest.update(orjson.dumps(row, default=str, option=orjson.OPT_SORT_KEYS))
    return digest.hexdigest()


def _broken_events() -> Iterator[Flaw]:
    last = GENESIS
    for event in AuditEvent.objects.order_by("id").iterator():
        if event.prev_hash != last:
            yield Flaw("event_missing", str(event.pk))
        if event.hash != _digest(event):
            yield Flaw("event_changed", str(event.pk))
        last = event.hash


def _lock_chain() -> None:
    """Lock the chain, so that two events never have the same predecessor."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


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
