"""The audit log: a chain in which every event covers the one before it, and seals among them that cover scores, ratings
and decisions. What it can and cannot show: ``docs/operations.md``, "Has anything been changed?"."""

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
_LOCK = 7_141_200  # an arbitrary number that names this lock among PostgreSQL's advisory locks
SEALED = "rows.sealed"
ROWS_A_SEAL = 1000
#: Younger rows are left for later: a transaction that is still open may bring rows with lower keys.
SETTLED = timedelta(hours=1)
SEALS_A_SWEEP = 50


@dataclass(frozen=True, slots=True)
class Flaw:
    """What should not be: ``code`` (its sentence stands in ``evaluation/messages/reasons.py``) and what it is about."""

    code: str
    about: str


def record(actor: User | None, verb: str, subject: models.Model, **detail: Any) -> AuditEvent:
    """Append an event. ``detail`` holds ids, versions and hashes only, never personal text."""
    with transaction.atomic():
        _wait_for_turn()
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


def head() -> str:
    """The newest event as ``NUMBER:HASH``, to be kept elsewhere: :func:`flaws` then sees a tail that was cut off."""
    last = AuditEvent.objects.order_by("-id").first()
    return f"{last.pk}:{last.hash}" if last else f"0:{GENESIS}"


def flaws(kept: str = "") -> Iterator[Flaw]:
    """All that was changed behind the product's back, as far as the database can tell: events, sealed rows, triggers.

    :param kept: a :func:`head` of earlier, or nothing.
    """
    yield from _broken_events()
    number, _, digest = kept.partition(":")
    if kept and kept != f"0:{GENESIS}" and not AuditEvent.objects.filter(pk=int(number), hash=digest).exists():
        yield Flaw("head_missing", kept)
    for event in AuditEvent.objects.filter(verb=SEALED).order_by("id").iterator():
        model = apps.get_model(event.object_type)
        after, last = int(event.detail["after"]), int(event.object_id)
        if _digest_of_rows(model, event.detail["columns"], after, last) != event.detail["digest"]:
            yield Flaw("rows_differ", f"{model._meta.db_table} {after + 1}-{last}")
    try:
        yield from (Flaw(f"trigger_{what}", name) for name, what in integrity.altered().items())
    except ProgrammingError as error:  # the database's role is not the owner of the tables
        yield Flaw("triggers_unchecked", str(error).splitlines()[0])


def seal(before: datetime | None = None, at_most: int | None = None) -> int:
    """Append digests of the rows of sealed tables that have none, a thousand to an event; how many rows that were.

    :param before: rows made from then on are left out, as are all after the first of them; nothing: none is.
    :param at_most: events for one table; nothing: any number.
    """
    rows = 0
    for model in _tables():
        made = 0
        while (at_most is None or made < at_most) and (count := _seal(model, before)):
            rows, made = rows + count, made + 1
    return rows


def unsealed_rows() -> int:
    """Rows of sealed tables that no seal covers yet."""
    return sum(_unsealed(model).count() for model in _tables())


def seal_settled() -> None:
    """The background's part: seal what is older than an hour, once anything has waited for two."""
    now = timezone.now()
    oldest = [_unsealed(model).values_list("created_at", flat=True).first() for model in _tables()]
    if any(one is not None and one < now - 2 * SETTLED for one in oldest):
        seal(now - SETTLED, SEALS_A_SWEEP)


def _tables() -> list[type[AppendOnly]]:
    return [model for model in apps.get_models() if issubclass(model, AppendOnly) and model.in_seals]


def _seal(model: type[AppendOnly], before: datetime | None) -> int:
    with transaction.atomic():
        _wait_for_turn()
        after, rows = _sealed_to(model), _unsealed(model)
        young = rows.filter(created_at__gte=before).values_list("pk", flat=True).first() if before else None
        keys = list((rows if young is None else rows.filter(pk__lt=young)).values_list("pk", flat=True)[:ROWS_A_SEAL])
        if keys:
            columns = [one.attname for one in model._meta.concrete_fields if one.name not in model.erasable]
            digest = _digest_of_rows(model, columns, after, keys[-1])
            last = model._base_manager.get(pk=keys[-1])
            record(None, SEALED, last, after=after, rows=len(keys), columns=columns, digest=digest)
    return len(keys)


def _sealed_to(model: type[AppendOnly]) -> int:
    events = AuditEvent.objects.filter(verb=SEALED, object_type=model._meta.label_lower).order_by("-id")
    return int(events.values_list("object_id", flat=True).first() or 0)


def _unsealed(model: type[AppendOnly]) -> models.QuerySet[Any]:
    return model._base_manager.filter(pk__gt=_sealed_to(model)).order_by("pk")


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


def _wait_for_turn() -> None:
    """So that no two events follow the same one."""
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
