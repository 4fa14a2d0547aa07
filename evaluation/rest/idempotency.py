"""Idempotent POST requests with an ``Idempotency-Key`` header."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import status
from rest_framework.exceptions import APIException, NotAuthenticated, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.core.errors import DomainError
from evaluation.models import IdempotencyKey, RoleGrant, User

IDEMPOTENCY_HEADER = "Idempotency-Key"
RETENTION = timedelta(days=1)
MAX_KEY_LENGTH = 200


class KeyReused(APIException):
    """Status 409 for a key that was used for another request."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "key_reused"
    default_detail = gettext_lazy(
        "This Idempotency-Key was used for another request in the last day, or your roles have changed since. Use a "
        "new key."
    )


def run_once(method: Callable[..., Response], request: Request, *args: Any, **kwargs: Any) -> Response:
    """Run the method, or return the stored response if the user sent the key within a day.

    The effect and the response are stored in one transaction: a killed process leaves neither, and of two concurrent
    requests the second waits for the first. Refusals are not stored; what the method keeps of a refused request, such
    as a draft, stays.

    :raises KeyReused: for a key used with another address, body, project of the token or other roles, because the
        stored response may show more than the person may see now.
    :raises ValidationError: for a key that is empty or too long, and where responses are not JSON."""
    key = request.headers[IDEMPOTENCY_HEADER]
    if not 0 < len(key) <= MAX_KEY_LENGTH:
        raise ValidationError({IDEMPOTENCY_HEADER: [_("Must be 1 to 200 characters.")]})
    person = request.user
    if not isinstance(person, User):
        raise NotAuthenticated
    user_requests = IdempotencyKey.objects.filter(person=person)
    request_digest = _digest(request.get_full_path(), _rights(person), request.body)
    with transaction.atomic():
        user_requests.filter(created_at__lt=timezone.now() - RETENTION).delete()
        new_row = IdempotencyKey(person=person, key=_digest(key), request_hash=request_digest)
        IdempotencyKey.objects.bulk_create([new_row], ignore_conflicts=True)
        row = user_requests.get(key=new_row.key)
        if row.status is not None:
            if row.request_hash != request_digest:
                raise KeyReused
            return Response(row.answer, status=row.status, headers={"Idempotency-Replayed": "true"})
        try:
            response = method(request, *args, **kwargs)
        except (DomainError, APIException) as error:
            row.delete()
            refusal = error
        else:
            if not isinstance(response, Response):
                raise ValidationError({IDEMPOTENCY_HEADER: [_("Not supported at this address.")]})
            _store_response(row, response)
            return response
    raise refusal


def _rights(person: User) -> str:
    roles = RoleGrant.objects.filter(user=person).order_by("project", "role").values_list("project", "role")
    return str((person.token_project_id, person.is_superuser, list(roles)))


def _store_response(row: IdempotencyKey, response: Response) -> None:
    row.status = response.status_code
    row.answer = None if response.data is None else orjson.loads(_render(response.data))
    row.save(update_fields=["status", "answer"])


def purge_expired() -> int:
    """Delete stored responses older than a day, of every user; returns how many."""
    return IdempotencyKey.objects.filter(created_at__lt=timezone.now() - RETENTION).delete()[0]


def _render(data: Any) -> bytes:
    rendered: bytes = JSONRenderer().render(data)
    return rendered


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256(settings.SECRET_KEY.encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8) + data)
    return digest.hexdigest()
