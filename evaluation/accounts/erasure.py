"""Deletion of personal texts, old replies, unsent calls and unfinished imports from append-only tables.

Figures, hashes and a tombstone in the audit log stay. Seals get new digests of the texts that are left, unless the
texts were changed before, so ``verify_audit`` finds nothing that it would not have found. The database's role must own
its tables, because their triggers are removed within the transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.models import (
    Answer,
    AnswerSet,
    ApiToken,
    AuditEvent,
    Context,
    ImportBatch,
    Question,
    QuestionSet,
    RoleGrant,
    User,
)
from evaluation.models.work import ImportWork, ReplyRow
from evaluation.storage import append_only
from evaluation.storage.append_only import AppendOnly

# Replaces a text, because many columns may not be empty.
ERASED = "[erased]"
PERSON_ERASED = "person.erased"
REPLIES_PURGED = "replies.purged"
UNSENT_PURGED = "attempts.purged"
UNFINISHED_PURGED = "import.purged"


def erase_person(person: User, *, by: User | None) -> dict[str, int]:
    """Erase a person's name and texts.

    The account becomes ``erased-ID`` and cannot log in; comments, reasons and proposed answers become ``[erased]``;
    drafts are deleted. Ratings and decisions stay as figures.

    :returns: changed rows by table; the tombstone holds the same counts.
    :raises DomainError: ``last_superuser`` for the only superuser of the site."""
    other_superusers = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=person.pk)
    if person.is_superuser and person.is_active and not other_superusers.exists():
        raise DomainError("last_superuser")
    seals: list[AuditEvent] = []
    with transaction.atomic():
        with _without_triggers():
            rows = _erase_texts(person, seals)
        audit.reseal_texts(seals, by)
        rows = {name: count for name, count in rows.items() if count}
        _anonymize(person)
        audit.record(by, PERSON_ERASED, person, rows=rows)
    return rows


def _erase_texts(person: User, seals: list[AuditEvent]) -> dict[str, int]:
    """Erase the texts, add the seals that cover them, and return the number of changed rows by table."""
    rows: dict[str, int] = {}
    for model in apps.get_models():
        if issubclass(model, AppendOnly) and model.author_path:
            person_rows = model._base_manager.filter(**{model.author_path: person}, **model.erasure_filter)
            seals += audit.intact_seals(person_rows)
            for column in model.erasable:
                texts = person_rows.exclude(**{f"{column}__in": ["", ERASED]})
                rows[model._meta.db_table] = _update_in_batches(texts, **{column: ERASED})
        elif path := getattr(model, "deleted_with", ""):
            rows[model._meta.db_table] = model._base_manager.filter(**{path: person}).delete()[0]
    return rows


def purge_replies(before: datetime, *, by: User | None) -> int:
    """Empty the texts of judges' replies older than ``before``; returns how many.

    Outcome, hash of the request, tokens and cost stay. The tombstone of each table holds the SHA-256 of the texts in
    the order of their keys."""
    tombstones: list[tuple[models.Model, dict[str, str | int]]] = []
    seals: list[AuditEvent] = []
    with transaction.atomic():
        with _without_triggers():
            for model in apps.get_models():
                if issubclass(model, ReplyRow):
                    replies = model._base_manager.filter(created_at__lt=before).exclude(raw="")
                    seals += audit.intact_seals(replies)
                    tombstones += _purge_texts(replies)
        audit.reseal_texts(seals, by)
        for last, facts in tombstones:
            audit.record(by, REPLIES_PURGED, last, before=before.isoformat(), **facts)
    return sum(int(facts["rows"]) for _, facts in tombstones)


def _purge_texts(replies: models.QuerySet[Any]) -> Iterator[tuple[models.Model, dict[str, str | int]]]:
    digest, last = hashlib.sha256(), None
    for last in replies.order_by("pk").iterator():
        digest.update(last.raw.encode())
    if last is not None:
        yield last, {"rows": _update_in_batches(replies, raw=""), "sha256": digest.hexdigest()}


def purge_unsent(before: datetime, *, by: User | None) -> int:
    """Delete attempts older than ``before`` that were never sent, with their replies; returns how many.

    They cost nothing and no figure counts them. Attempts in batches are kept."""
    tombstones: list[tuple[models.Model, int]] = []
    with transaction.atomic():
        with _without_triggers():
            for model in apps.get_models():
                if issubclass(model, ReplyRow):
                    replies = model._base_manager.filter(outcome="not_sent", created_at__lt=before)
                    reply_model: Any = model
                    tombstones += _delete_unsent(replies, reply_model._meta.get_field("attempt").related_model)
        for last, count in tombstones:
            audit.record(by, UNSENT_PURGED, last, rows=count)
    return sum(count for _, count in tombstones)


def _delete_unsent(replies: models.QuerySet[Any], attempts: Any) -> Iterator[tuple[models.Model, int]]:
    for relation in attempts._meta.related_objects:
        if relation.related_model is not replies.model:
            replies = replies.exclude(attempt__in=relation.related_model._base_manager.values(relation.field.attname))
    keys = list(replies.order_by("attempt").values_list("attempt", flat=True))
    for start in range(0, len(keys), 500):
        batch = keys[start : start + 500]
        replies.model._base_manager.filter(attempt__in=batch).delete()
        attempts._base_manager.filter(pk__in=batch).delete()
    if keys:
        yield attempts(pk=keys[-1]), len(keys)


def purge_unfinished(before: datetime, *, by: User | None) -> int:
    """Delete the questions and answers of imports that were begun before ``before`` and cancelled or interrupted;
    returns how many rows. No figure counts them. Imports that a worker will continue are kept.

    Each batch is a transaction of its own, so that other writers do not wait."""
    importing = ImportWork.objects.filter(batch__state=ImportBatch.State.IMPORTING)
    total = 0
    for field, sets, rows_of_set in _UNFINISHED:
        continuing = importing.exclude(**{field: None}).values(field)
        for abandoned in sets.filter(is_unfinished=True, created_at__lt=before).exclude(pk__in=continuing):
            count = sum(_delete_in_batches(rows.filter(**{path: abandoned})) for rows, path in rows_of_set)
            with transaction.atomic():
                audit.record(by, UNFINISHED_PURGED, abandoned, rows=count)
                ImportWork.objects.filter(**{field: abandoned}).update(**{field: None})
                abandoned.delete()
            total += count
    return total


# Field of ``ImportWork``, its sets, and the rows of a set with the path to it.
_UNFINISHED: tuple[tuple[str, models.Manager[Any], tuple[tuple[models.Manager[Any], str], ...]], ...] = (
    ("question_set", QuestionSet.all_objects, ((Question.objects, "question_set"),)),
    (
        "answer_set",
        AnswerSet.all_objects,
        ((Context.objects, "answer__answer_set"), (Answer.objects, "answer_set")),
    ),
)


def _delete_in_batches(rows: models.QuerySet[Any]) -> int:
    keys = list(rows.order_by().values_list("pk", flat=True))
    for start in range(0, len(keys), 2000):
        with transaction.atomic(), _without_triggers():
            rows.model._base_manager.filter(pk__in=keys[start : start + 2000]).delete()
    return len(keys)


@contextmanager
def _without_triggers() -> Iterator[None]:
    """Remove the append-only triggers within a transaction.

    Insert nothing inside: PostgreSQL creates no trigger on a table with pending deferred checks."""
    append_only.uninstall()
    yield
    append_only.install()


def _update_in_batches(rows: models.QuerySet[Any], **values: str) -> int:
    keys = list(rows.order_by().values_list("pk", flat=True))
    return sum(
        rows.model._base_manager.filter(pk__in=keys[start : start + 500]).update(**values)
        for start in range(0, len(keys), 500)
    )


def _anonymize(person: User) -> None:
    name = f"erased-{person.pk}"
    while User.objects.filter(username=name).exclude(pk=person.pk).exists():
        name += "-"
    # Entries of the back office name rows by their text, which is a person's name, or begins with it for a role.
    entries = {
        User: Q(object_id=str(person.pk)),
        RoleGrant: Q(object_repr__startswith=f"{person.username}: "),
        ApiToken: Q(object_id__in=[str(pk) for pk in person.tokens.values_list("pk", flat=True)]),
    }
    for model, condition in entries.items():
        rows = LogEntry.objects.filter(condition, content_type=ContentType.objects.get_for_model(model))
        rows.update(object_repr=name, change_message="")
    person.username, person.first_name, person.last_name, person.email = name, "", "", ""
    person.language = person.time_zone = ""
    person.keymap = {}
    person.is_active = person.is_staff = person.is_superuser = False
    person.last_login = None
    person.set_unusable_password()
    person.save()
    person.grants.all().delete()
    # Identities and authenticators of allauth, if it is installed.
    for relation in User._meta.related_objects:
        if relation.related_model._meta.app_config.name.startswith("allauth."):
            relation.related_model._base_manager.filter(**{relation.field.name: person}).delete()
    ApiToken.objects.filter(user=person, revoked_at=None).update(revoked_at=timezone.now())
    ApiToken.objects.filter(user=person).update(name=ERASED)
