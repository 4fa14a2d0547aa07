"""The one maintenance door of append-only tables: what ``purge`` takes away, and what is kept for how long. Figures,
hashes and a tombstone in the audit log stay; sealed columns are not touched, so ``verify_audit`` finds nothing.

The database's role has to own its tables, since triggers are away within the transaction.
"""

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
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.models import ApiToken, User
from evaluation.models.work import ReplyRow
from evaluation.storage import append_only
from evaluation.storage.append_only import AppendOnly

ERASED = "[erased]"  # in place of a text; many may not be empty
PERSON_ERASED = "person.erased"
REPLIES_PURGED = "replies.purged"
UNSENT_PURGED = "attempts.purged"


def erase(person: User, *, by: User | None) -> dict[str, int]:
    """Take a person's name and what they wrote out of the database: their account becomes ``erased-ID`` that cannot log
    in, comments, reasons and proposed answers become ``[erased]``, drafts go. Ratings and decisions stay as figures.

    :returns: rows by table; the tombstone holds the same.
    :raises Refused: ``last_superuser``, whom the site needs.
    """
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=person.pk)
    if person.is_superuser and person.is_active and not others.exists():
        raise Refused("last_superuser")
    with transaction.atomic():
        with _door():
            rows = _erase_texts(person)
        rows = {name: count for name, count in rows.items() if count}
        _make_nobody(person)
        audit.record(by, PERSON_ERASED, person, rows=rows)
    return rows


def _erase_texts(person: User) -> dict[str, int]:
    rows: dict[str, int] = {}
    for model in apps.get_models():
        if issubclass(model, AppendOnly) and model.written_by:
            theirs = model._base_manager.filter(**{model.written_by: person}, **model.erased_where)
            for column in model.erasable:
                texts = theirs.exclude(**{f"{column}__in": ["", ERASED]})
                rows[model._meta.db_table] = _rewrite(texts, **{column: ERASED})
        elif path := getattr(model, "deleted_with", ""):
            rows[model._meta.db_table] = model._base_manager.filter(**{path: person}).delete()[0]
    return rows


def purge_replies(before: datetime, *, by: User | None) -> int:
    """Empty the texts of replies of judges from before that moment; how many. Outcome, hash of the request, tokens and
    cost stay, and the tombstone of each table holds the SHA-256 of the texts in the order of their keys."""
    stones: list[tuple[models.Model, dict[str, str | int]]] = []
    with transaction.atomic():
        with _door():
            for model in apps.get_models():
                if issubclass(model, ReplyRow):
                    stones += _purge_texts(model._base_manager.filter(created_at__lt=before).exclude(raw=""))
        for last, told in stones:
            audit.record(by, REPLIES_PURGED, last, before=before.isoformat(), **told)
    return sum(int(told["rows"]) for _, told in stones)


def _purge_texts(old: models.QuerySet[Any]) -> Iterator[tuple[models.Model, dict[str, str | int]]]:
    digest, last = hashlib.sha256(), None
    for last in old.order_by("pk").iterator():
        digest.update(last.raw.encode())
    if last is not None:
        yield last, {"rows": _rewrite(old, raw=""), "sha256": digest.hexdigest()}


def purge_unsent(before: datetime, *, by: User | None) -> int:
    """Take attempts of before that moment out that were never sent, with the replies that say so; how many. No call was
    made, nothing was paid and no figure counts them. Lines of batches keep theirs."""
    stones: list[tuple[models.Model, int]] = []
    with transaction.atomic():
        with _door():
            for model in apps.get_models():
                if issubclass(model, ReplyRow):
                    replies = model._base_manager.filter(outcome="not_sent", created_at__lt=before)
                    about: Any = model
                    stones += _take_out(replies, about._meta.get_field("attempt").related_model)
        for last, count in stones:
            audit.record(by, UNSENT_PURGED, last, rows=count)
    return sum(count for _, count in stones)


def _take_out(replies: models.QuerySet[Any], attempts: Any) -> Iterator[tuple[models.Model, int]]:
    for other in attempts._meta.related_objects:
        if other.related_model is not replies.model:
            replies = replies.exclude(attempt__in=other.related_model._base_manager.values(other.field.attname))
    keys = list(replies.order_by("attempt").values_list("attempt", flat=True))
    for start in range(0, len(keys), 500):
        some = keys[start : start + 500]
        replies.model._base_manager.filter(attempt__in=some).delete()
        attempts._base_manager.filter(pk__in=some).delete()
    if keys:
        yield attempts(pk=keys[-1]), len(keys)


@contextmanager
def _door() -> Iterator[None]:
    """Within a transaction, which is taken back as a whole where anything fails: no triggers. Nothing is inserted
    inside, because PostgreSQL makes no trigger on a table with checks that are left for the end."""
    append_only.uninstall()
    yield
    append_only.install()


def _rewrite(rows: models.QuerySet[Any], **values: str) -> int:
    keys = list(rows.order_by().values_list("pk", flat=True))
    return sum(
        rows.model._base_manager.filter(pk__in=keys[start : start + 500]).update(**values)
        for start in range(0, len(keys), 500)
    )


def _make_nobody(person: User) -> None:
    name = f"erased-{person.pk}"
    person.username, person.first_name, person.last_name, person.email = name, "", "", ""
    person.language = person.time_zone = ""
    person.keymap = {}
    person.is_active = person.is_staff = person.is_superuser = False
    person.last_login = None
    person.set_unusable_password()
    person.save()
    person.grants.all().delete()
    for relation in User._meta.related_objects:  # other ways to log in, where the site has them
        if relation.related_model._meta.app_config.name.startswith("allauth."):
            relation.related_model._base_manager.filter(**{relation.field.name: person}).delete()
    ApiToken.objects.filter(user=person, revoked_at=None).update(revoked_at=timezone.now())
    ApiToken.objects.filter(user=person).update(name=ERASED)
    kind = ContentType.objects.get_for_model(User)
    LogEntry.objects.filter(content_type=kind, object_id=str(person.pk)).update(object_repr=name, change_message="")
