"""How requests come in: tokens (hashed, scoped, expiring), bodies (bounded, strict, files to the letter), and pages of
lists."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import IO, Any, NoReturn

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from rest_framework import status
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    NotFound,
    ParseError,
    PermissionDenied,
    ValidationError,
)
from rest_framework.pagination import CursorPagination
from rest_framework.parsers import BaseParser, JSONParser, MultiPartParser
from rest_framework.request import Request

from evaluation.accounts.logging_in import TOKEN
from evaluation.formats.reading import recoded
from evaluation.messages.sentences import in_words
from evaluation.models import ApiToken, User

REFUSED = "unknown, revoked or expired token"


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer …``. A ``read`` token may only use safe methods; every token ends with its date."""

    keyword = "Bearer"

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """The token's owner; ``None`` where the request carries no token.

        :raises AuthenticationFailed: for an unknown, expired or revoked token.
        :raises PermissionDenied: for a write with a read token.
        """
        parts = get_authorization_header(request).split()
        if len(parts) != 2 or parts[0].lower() != b"bearer":
            return None
        digest = hashlib.sha256(parts[1]).hexdigest()
        row = TOKEN.first(sha256=digest)
        if row is None:
            raise AuthenticationFailed(REFUSED)
        token, token.user = row
        if token.revoked_at is not None or token.expires_at <= timezone.now() or not token.user.is_active:
            raise AuthenticationFailed(REFUSED)
        if token.scope == "read" and request.method not in {"GET", "HEAD", "OPTIONS"}:
            raise PermissionDenied("this token may only read")
        user = token.user
        user.token_id, user.token_project_id = token.pk, token.project_id
        user.is_themselves = token.made_by_id == user.pk
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Makes DRF answer 401 instead of 403 to a missing token."""
        return self.keyword


ENVELOPE = 64 * 1024  # what a multipart body adds to its file
LARGEST_JSON = 1024 * 1024  # of bodies that are no files


class TooLarge(APIException):
    """413 for a body beyond the limit, before it is read; for files the setting that raises it is named."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self, limit: int) -> None:
        said = _("The body is larger than %(limit)s bytes.") % {"limit": limit}
        if limit > LARGEST_JSON or limit - settings.CONCORD_UPLOAD_BYTES in {0, ENVELOPE}:
            name = {"name": "CONCORD_UPLOAD_BYTES"}
            said += " " + _("Whoever runs the site sets this by %(name)s.") % name
            said += " " + _("Large files of answers are taken by the page, and by a command of any size.")
        super().__init__(said)


class LengthRequired(APIException):
    """411 for a body without an announced length: none of it would be read."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_code = "length_required"
    default_detail = _lazy("Send the body with a Content-Length, not in chunks.")


@dataclass(frozen=True, slots=True)
class Body:
    """The file of a request. ``named`` is false where it is the body itself, whose name was made up. ``sent`` is the
    content as it came, where ``content`` is the same text in UTF-8."""

    file_name: str
    content: bytes
    named: bool = True
    sent: bytes = b""

    def in_encoding(self, encoding: str) -> "Body":
        """The file when it is in the encoding, which may be empty.

        :raises InvalidFile: where it is not.
        """
        return replace(self, content=recoded(self.content, encoding, self.file_name), sent=self.content)


def limited(context: Mapping[str, Any] | None, limit: int) -> None:
    """:raises TooLarge: when the announced length exceeds the limit; servers cut a body at its announced length."""
    length = str((context or {})["request"].META.get("CONTENT_LENGTH") or 0)
    if not length.isdigit() or int(length) > limit:
        raise TooLarge(limit)


class StrictJSON(JSONParser):
    """JSON without repeated keys, NaN and half characters, in UTF-8, of at most one megabyte."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        """The value.

        :raises ParseError: for anything else.
        :raises TooLarge: beyond the limit.
        """
        limited(parser_context, LARGEST_JSON)
        try:
            text = stream.read().decode("utf-8")
            value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repetition)
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except RecursionError:
            raise ParseError(_("The JSON is nested too deep.")) from None
        except ValueError as error:
            raise ParseError(_("This is no valid JSON: %(detail)s") % {"detail": in_words(str(error)[:200])}) from None
        return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


class FormWithFile(MultiPartParser):
    """``multipart/form-data`` whose file may be as large as an upload may be."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Fields and files.

        :raises TooLarge: beyond the limit, before anything is read.
        """
        limited(parser_context, settings.CONCORD_UPLOAD_BYTES + ENVELOPE)
        return super().parse(stream, media_type, parser_context)


class FileBody(BaseParser):
    """A body of any other type is the file itself; its name only says what the content is when that cannot tell."""

    media_type = "*/*"
    ENDINGS = {
        "application/json": "json",
        "application/x-ndjson": "jsonl",
        "application/jsonl": "jsonl",
        "application/yaml": "yaml",
        "application/x-yaml": "yaml",
        "text/yaml": "yaml",
        "text/csv": "csv",
        "text/plain": "txt",
        "text/markdown": "md",
        "text/html": "html",
        "application/pdf": "pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.apache.parquet": "parquet",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    }

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        """The bytes as they came.

        :raises TooLarge: beyond the limit.
        """
        limited(parser_context, settings.CONCORD_UPLOAD_BYTES)
        ending = self.ENDINGS.get((media_type or "").partition(";")[0].strip().lower(), "")
        return Body(f"body.{ending}" if ending else "body", stream.read(), named=False)


MOST = 500


class Pages(CursorPagination):
    """Cursor pages, newest first: constant cost however far one reads."""

    page_size = 50
    page_size_query_param = "page_size"
    page_size_query_description = "Results per page, 1 to 500."
    max_page_size = MOST
    ordering = "-id"

    def get_page_size(self, request: Request) -> int | None:
        """The size asked for, 50 without one.

        :raises ValidationError: for anything but a whole number from 1 to 500.
        """
        asked = request.query_params.get("page_size")
        if asked is None:
            return self.page_size
        if not (asked.isascii() and asked.isdigit() and 1 <= int(asked[:9]) <= MOST):
            raise ValidationError({"page_size": [_("A whole number from 1 to 500.")]})
        return int(asked)

    def decode_cursor(self, request: Request) -> Any:
        """The cursor of the request, ``None`` without one.

        :raises ValidationError: for one that this API did not give out.
        """
        try:
            cursor = super().decode_cursor(request)
        except NotFound as error:
            raise ValidationError({"cursor": [_("Not a cursor of this list.")]}) from error
        position = None if cursor is None or cursor.position is None else str(cursor.position)
        if position is not None and not (position.isascii() and position.isdigit() and len(position) < 19):
            raise ValidationError({"cursor": [_("Not a cursor of this list.")]})
        return cursor

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """The parameters as OpenAPI has them, with the limits of the page size."""
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] = {"type": "integer", "minimum": 1, "maximum": MOST}
        return parameters


class PagesInOrder(Pages):
    """Cursor pages, oldest first: for the parts of one thing."""

    ordering = "id"
