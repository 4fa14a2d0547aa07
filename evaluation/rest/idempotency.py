"""Requests that are safe to repeat (``Idempotency-Key``)."""

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

from evaluation.models import RepeatableRequest, User

KEY = "Idempotency-Key"
KEPT = timedelta(days=1)
LONGEST_KEY = 200


class KeyReused(APIException):
    """422 for a key that stood on another request."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_code = "key_reused"
    default_detail = gettext_lazy("This Idempotency-Key was sent with another request within a day. Make a new one.")


def once(method: Callable[..., Response], request: Request, *args: Any, **kwargs: Any) -> Response:
    """What the method answers; of a request with a key that the person sent within a day, what it answered then.

    What is done and the answer are stored in one transaction: a killed process leaves neither, and of two requests at
    the same moment the second waits for the first. Refusals are not kept.

    :raises KeyReused: for a key that stood on another address, body or project of the token.
    :raises ValidationError: for a key that is empty or too long.
    """
    key = request.headers[KEY]
    if not 0 < len(key) <= LONGEST_KEY:
        raise ValidationError({KEY: [_("A text of 1 to 200 characters.")]})
    person = request.user
    if not isinstance(person, User):
        raise NotAuthenticated
    mine = RepeatableRequest.objects.filter(person=person)
    asked = _digest(request.get_full_path(), str(person.token_project_id), request.body)
    with transaction.atomic():
        mine.filter(created_at__lt=timezone.now() - KEPT).delete()
        new = RepeatableRequest(person=person, key=_digest(key), asked=asked)
        RepeatableRequest.objects.bulk_create([new], ignore_conflicts=True)
        row = mine.get(key=new.key)
        if row.status is not None:
            if row.asked != asked:
                raise KeyReused
            return Response(row.answer, status=row.status, headers={"Idempotency-Replayed": "true"})
        response = method(request, *args, **kwargs)
        row.status = response.status_code
        row.answer = None if response.data is None else orjson.loads(_rendered(response.data))
        row.save(update_fields=["status", "answer"])
    return response


def _rendered(data: Any) -> bytes:
    rendered: bytes = JSONRenderer().render(data)
    return rendered


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256(settings.SECRET_KEY.encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8) + data)
    return digest.hexdigest()
