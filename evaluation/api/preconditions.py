"""What makes a request safe to repeat (``Idempotency-Key``) and what has it act on nothing that changed meanwhile
(``ETag``, ``If-None-Match``, ``If-Match``)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import models, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import parse_etags, quote_etag
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


class Changed(APIException):
    """412 for a thing that is no longer as the caller saw it."""

    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_code = "changed_meanwhile"
    default_detail = gettext_lazy("It is no longer as If-Match has it. Read it again and decide anew.")


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


def tag(data: Any) -> str:
    """The ETag of an answer."""
    return quote_etag(hashlib.sha256(_rendered(data)).hexdigest()[:32])


def tagged(request: HttpRequest, response: Response) -> Response:
    """The answer with its ETag, or 304 where the caller has it already."""
    response["ETag"] = tag(response.data)
    same: Any = get_conditional_response(request, etag=response["ETag"], response=response)
    return response if same is response else Response(status=304, headers={"ETag": response["ETag"]})


def as_seen(request: Request, one: models.Model, current: Callable[[], Any]) -> None:
    """Within the transaction that acts: lock the thing and look whether it is as ``If-Match`` has it.

    :raises Changed: where it is not.
    """
    type(one)._default_manager.select_for_update().filter(pk=one.pk).order_by().values_list("pk").first()
    tags = parse_etags(request.headers["If-Match"])
    if tags != ["*"] and tag(current()) not in tags:
        raise Changed


def _rendered(data: Any) -> bytes:
    rendered: bytes = JSONRenderer().render(data)
    return rendered


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256(settings.SECRET_KEY.encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8) + data)
    return digest.hexdigest()
