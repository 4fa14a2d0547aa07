"""Audit log: a hash chain of events, and seals in it that cover the rows that figures rest on.

A seal is an event with the digest of up to a thousand rows of a table. Texts that may be erased have a digest of their
own, which ``purge`` replaces by another event. ``docs/security.md`` ("Verify the audit log") says which changes
are detected."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

import orjson
from django.apps import apps
from django.db import ProgrammingError, connection, models, transaction
from django.db.models.functions import Cast
from django.utils import timezone

from evaluation.core.canonical import content_hash
from evaluation.models import AuditEvent, User
from evaluation.storage import integrity
from evaluation.storage.append_only import UNFINISHED_LIMIT, AppendOnly, TimestampedModel

GENESIS = "0" * 64
# Arbitrary key of PostgreSQL's advisory lock.
_LOCK = 7_141_200
SEALED, TEXTS_ERASED = "rows.sealed", "texts.erased"
ROWS_PER_SEAL = 1000
#: Rows are sealed an hour after creation, because an open transaction may still commit rows with lower keys.
SEAL_DELAY = timedelta(hours=1)
MAX_SEALS_PER_SWEEP = 50
# Keys of unsupported rows that a seal names.
MAX_UNSUPPORTED = 100


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
    """Yield every detectable change to events, sealed rows and triggers, and rows that contradict others.

    :param expected_head: an earlier :func:`chain_head`, or empty."""
    yield from _broken_events()
    number, _, digest = expected_head.partition(":")
    if (
        expected_head
        and expected_head != f"0:{GENESIS}"
        and not AuditEvent.objects.filter(pk=int(number), hash=digest).exists()
    ):
        yield Flaw("head_missing", expected_head)
    for model in sealed_models():
        table, text_digests = model._meta.db_table, _text_digests(model)
        for seal in _seals(model):
            if not _is_intact(model, seal):
                yield Flaw("rows_differ", f"{table} {seal.detail['after'] + 1}-{seal.object_id}")
            elif _digest_texts(model, seal) != text_digests.get(seal.object_id, seal.detail["texts"]):
                yield Flaw("texts_differ", f"{table} {seal.detail['after'] + 1}-{seal.object_id}")
            yield from (Flaw("row_unsupported", f"{table} {pk}") for pk in seal.detail["unsupported"])
        yield from (Flaw("row_unsupported", f"{table} {pk}") for pk in sorted(model.unsupported(_unsealed(model))))
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
    for model in sealed_models():
        events = 0
        while (max_events is None or events < max_events) and (count := _seal(model, before)):
            rows, events = rows + count, events + 1
    return rows


def unsealed_rows() -> int:
    """Count the rows of sealed tables that no seal covers yet."""
    return sum(_unsealed(model).count() for model in sealed_models())


def seal_old_rows() -> None:
    """Seal rows older than an hour, as soon as one is older than two. Runs periodically."""
    now = timezone.now()
    oldest_unsealed = [_unsealed(model).values_list("created_at", flat=True).first() for model in sealed_models()]
    if any(created_at is not None and created_at < now - 2 * SEAL_DELAY for created_at in oldest_unsealed):
        seal_rows(now - SEAL_DELAY, MAX_SEALS_PER_SWEEP)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Sealed and unsealed rows of a table; ``fields`` are the only ones that its seals cover, empty for all."""

    table: str
    sealed: int
    unsealed: int
    fields: tuple[str, ...]


def coverage() -> tuple[list[Coverage], list[str]]:
    """Return the sealed tables, and the product's other tables, whose rows may change or are chained themselves."""
    models_sealed = sealed_models()
    tables = [
        Coverage(
            table=model._meta.db_table,
            sealed=sum(seal.detail["rows"] for seal in _seals(model)),
            unsealed=_unsealed(model).count(),
            fields=model.sealed_fields,
        )
        for model in models_sealed
    ]
    other_models = [
        model._meta.db_table
        for model in apps.get_models()
        if issubclass(model, TimestampedModel) and model not in {*models_sealed, AuditEvent}
    ]
    return sorted(tables, key=lambda row: row.table), sorted(other_models)


def sealed_models() -> list[type[TimestampedModel]]:
    return [
        model
        for model in apps.get_models()
        if (issubclass(model, AppendOnly) and model.is_digested)
        or (issubclass(model, TimestampedModel) and model.sealed_fields)
    ]


def intact_seals(rows: models.QuerySet[Any]) -> list[AuditEvent]:
    """Seals that cover some of the rows and whose texts are unchanged; for :func:`reseal_texts`."""
    model: type[TimestampedModel] = rows.model
    text_digests = _text_digests(model)
    return [
        seal
        for seal in _seals(model)
        if rows.filter(pk__gt=seal.detail["after"], pk__lte=seal.object_id).exists()
        and _digest_texts(model, seal) == text_digests.get(seal.object_id, seal.detail["texts"])
    ]


def reseal_texts(seals: Iterable[AuditEvent], by: User | None) -> None:
    """Append the digests of the texts that an erasure has left."""
    for seal in seals:
        model = apps.get_model(seal.object_type)
        record(by, TEXTS_ERASED, model(pk=seal.object_id), texts=_digest_texts(model, seal))


def _seal(model: type[TimestampedModel], before: datetime | None) -> int:
    after = _last_sealed_key(model)
    oldest_rows = _unsealed(model).values_list("pk", "created_at")[:ROWS_PER_SEAL]
    keys = [pk for pk, _ in takewhile(lambda row: before is None or row[1] < before, oldest_rows)]
    # A set that is still being imported will be sealed as a whole, and what follows it after it.
    if keys and model.unfinished and (importing := _importing(model).filter(pk__gt=after, pk__lt=keys[-1]).first()):
        keys = [pk for pk in keys if pk < importing.pk]
    if not keys:
        return 0
    columns = _sealed_columns(model)
    detail = {
        "after": after,
        "rows": len(keys),
        "columns": columns,
        "digest": _digest_rows(model, columns, after, keys[-1]),
        "texts": _digest_rows(model, _text_columns(model), after, keys[-1]),
        "unsupported": sorted(model.unsupported(_unsealed(model).filter(pk__lte=keys[-1])))[:MAX_UNSUPPORTED],
    }
    # Events of other people wait for the lock, so nothing is read under it but the last key.
    with transaction.atomic():
        _lock_chain()
        if _last_sealed_key(model) == after:
            record(None, SEALED, apps.get_model(model._meta.label)(pk=keys[-1]), **detail)
    return len(keys)


def _seals(model: type[TimestampedModel]) -> models.QuerySet[AuditEvent]:
    return AuditEvent.objects.filter(verb=SEALED, object_type=model._meta.label_lower).order_by("id")


def _text_digests(model: type[TimestampedModel]) -> dict[str, str]:
    """Digests of the texts that erasures have left, by the last key of the seal."""
    events = AuditEvent.objects.filter(verb=TEXTS_ERASED, object_type=model._meta.label_lower).order_by("id")
    return {event.object_id: event.detail["texts"] for event in events}


def _last_sealed_key(model: type[TimestampedModel]) -> int:
    key = Cast("object_id", models.BigIntegerField())
    return _seals(model).aggregate(last=models.Max(key))["last"] or 0


def _sealable(model: type[TimestampedModel]) -> models.QuerySet[Any]:
    rows = model._base_manager.order_by("pk")
    if model.unfinished:
        rows = rows.filter(**{model.unfinished: False})
    return rows.exclude(**model.purged_rows) if model.purged_rows else rows


def _importing(model: type[TimestampedModel]) -> models.QuerySet[Any]:
    """Rows of unfinished sets whose import may still be completed."""
    rows = model._base_manager.filter(**{model.unfinished: True}, created_at__gte=timezone.now() - 2 * UNFINISHED_LIMIT)
    return rows.order_by("pk")


def _unsealed(model: type[TimestampedModel]) -> models.QuerySet[Any]:
    return _sealable(model).filter(pk__gt=_last_sealed_key(model))


def _sealed_columns(model: type[TimestampedModel]) -> list[str]:
    fields = model._meta.concrete_fields
    if issubclass(model, AppendOnly):
        return [field.attname for field in fields if field.name not in model.erasable]
    return [field.attname for field in fields if field.name in {"id", "created_at", *model.sealed_fields}]


def _text_columns(model: type[TimestampedModel]) -> list[str]:
    return ["id", *model.erasable] if issubclass(model, AppendOnly) and model.erasable else []


def _is_intact(model: type[TimestampedModel], seal: AuditEvent) -> bool:
    detail = seal.detail
    digest = _digest_rows(model, detail["columns"], detail["after"], int(seal.object_id))
    return bool(digest == detail["digest"])


def _digest_texts(model: type[TimestampedModel], seal: AuditEvent) -> str:
    return _digest_rows(model, _text_columns(model), seal.detail["after"], int(seal.object_id))


def _digest_rows(model: type[TimestampedModel], columns: Sequence[str], after: int, last: int) -> str:
    """SHA-256 of the rows as the database's driver returns them, in the order of their keys; empty without columns.

    Values are not converted to those of model fields, which takes four times as long."""
    if not columns:
        return ""
    rows = _sealable(model).filter(pk__gt=after, pk__lte=last).values_list(*columns)
    with connection.cursor() as cursor:
        cursor.execute(*rows.query.sql_with_params())
        return hashlib.sha256(orjson.dumps(cursor.fetchall(), default=_plain_text)).hexdigest()


def _plain_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes | memoryview) else str(value)


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
