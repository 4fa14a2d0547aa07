"""REST requests: tokens (hashed, scoped, expiring), bodies (bounded, strict; files verbatim) and list pages."""

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
    UnsupportedMediaType,
    ValidationError,
)
from rest_framework.pagination import CursorPagination
from rest_framework.parsers import BaseParser, JSONParser, MultiPartParser
from rest_framework.request import Request, is_form_media_type

from evaluation.accounts.login import TOKEN
from evaluation.formats.reading import recode
from evaluation.messages.explanations import translate_parser_message
from evaluation.models import ApiToken, User

INVALID_TOKEN = "unknown, revoked or expired token"


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer …``. A ``read`` token permits safe methods only; every token expires."""

    keyword = "Bearer"

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token's owner, or ``None`` without a token.

        :raises AuthenticationFailed: for an unknown, expired or revoked token.
        :raises PermissionDenied: for a write with a read token."""
        parts = get_authorization_header(request).split()
        if len(parts) != 2 or parts[0].lower() != b"bearer":
            return None
        digest = hashlib.sha256(parts[1]).hexdigest()
        row = TOKEN.first(sha256=digest)
        if row is None:
            raise AuthenticationFailed(INVALID_TOKEN)
        token, token.user = row
        if token.revoked_at is not None or token.expires_at <= timezone.now() or not token.user.is_active:
            raise AuthenticationFailed(INVALID_TOKEN)
        if token.scope == "read" and request.method not in {"GET", "HEAD", "OPTIONS"}:
            raise PermissionDenied("this token is read-only")
        user = token.user
        user.token_id, user.token_project_id = token.pk, token.project_id
        user.is_own_token = token.made_by_id == user.pk
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Return a scheme, so that DRF responds with 401 instead of 403 if the token is missing."""
        return self.keyword


# Maximum size that a multipart body adds to its file.
MULTIPART_OVERHEAD = 64 * 1024
# Limit for bodies that are not files.
MAX_JSON_BYTES = 1024 * 1024


class TooLarge(APIException):
    """Status 413 before a too large body is read; for files the message names the setting of the limit."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self, limit: int) -> None:
        message = _("The body is larger than %(limit)s bytes.") % {"limit": limit}
        if limit > MAX_JSON_BYTES or limit - settings.CONCORD_UPLOAD_BYTES in {0, MULTIPART_OVERHEAD}:
            name = {"name": "CONCORD_UPLOAD_BYTES"}
            message += " " + _("Set by the site operator (%(name)s).") % name
            message += " " + _("Upload larger files on the page, or use a command for any size.")
        super().__init__(message)


class LengthRequired(APIException):
    """Status 411 for a body without Content-Length, which would be read as empty."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_code = "length_required"
    default_detail = _lazy("Send the body with a Content-Length, not in chunks.")


@dataclass(frozen=True, slots=True)
class UploadedBody:
    """File of a request.

    ``has_name`` is false if the body is the file, which then has a made-up name. ``original`` is the file as sent, if
    ``content`` was re-encoded as UTF-8."""

    file_name: str
    content: bytes
    has_name: bool = True
    original: bytes = b""

    def recode_from(self, encoding: str) -> "UploadedBody":
        """Return the file decoded from the encoding, which may be empty.

        :raises InvalidFile: if it is not in that encoding."""
        return replace(self, content=recode(self.content, encoding, self.file_name), original=self.content)


def check_length(context: Mapping[str, Any] | None, limit: int) -> None:
    """Check the announced length; servers cut a body at that length.

    :raises TooLarge: above the limit."""
    length = str((context or {})["request"].META.get("CONTENT_LENGTH") or 0)
    if not length.isdigit() or int(length) > limit:
        raise TooLarge(limit)


class StrictJSON(JSONParser):
    """JSON in UTF-8 without duplicate keys, NaN and lone surrogates, at most 1 MiB."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Parse the body.

        :raises ParseError: for invalid JSON.
        :raises TooLarge: above the limit."""
        check_length(parser_context, MAX_JSON_BYTES)
        try:
            text = stream.read().decode("utf-8")
            value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicate_keys)
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except RecursionError:
            raise ParseError(_("The JSON is nested too deeply.")) from None
        except ValueError as error:
            raise ParseError(
                _("This isn't valid JSON: %(detail)s") % {"detail": translate_parser_message(str(error)[:200])}
            ) from None
        return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key appears twice")
    return value


class FormWithFile(MultiPartParser):
    """``multipart/form-data`` up to the upload limit."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Parse fields and files.

        :raises TooLarge: above the limit, before reading."""
        check_length(parser_context, settings.CONCORD_UPLOAD_BYTES + MULTIPART_OVERHEAD)
        return super().parse(stream, media_type, parser_context)


class FileBody(BaseParser):
    """Body of any type but a form, taken as the file itself. Its made-up name only helps if the content is
    ambiguous."""

    media_type = "*/*"
    EXTENSIONS = {
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
        """Return the raw bytes as a file.

        :raises UnsupportedMediaType: for a form, in whose fields the CSRF check of a session looks for its token.
        :raises TooLarge: above the limit."""
        if is_form_media_type(media_type or ""):
            raise UnsupportedMediaType(media_type or "")
        check_length(parser_context, settings.CONCORD_UPLOAD_BYTES)
        extension = self.EXTENSIONS.get((media_type or "").partition(";")[0].strip().lower(), "")
        return UploadedBody(f"body.{extension}" if extension else "body", stream.read(), has_name=False)


MAX_PAGE_SIZE = 500


class Pages(CursorPagination):
    """Cursor pages, newest first, at constant cost per page."""

    page_size = 50
    page_size_query_param = "page_size"
    page_size_query_description = "Results per page, 1 to 500."
    max_page_size = MAX_PAGE_SIZE
    ordering = "-id"

    def get_page_size(self, request: Request) -> int | None:
        """Return the requested page size, by default 50.

        :raises ValidationError: for anything but a whole number from 1 to 500."""
        page_size = request.query_params.get("page_size")
        if page_size is None:
            return self.page_size
        if not (page_size.isascii() and page_size.isdigit() and 1 <= int(page_size[:9]) <= MAX_PAGE_SIZE):
            raise ValidationError({"page_size": [_("Must be a whole number from 1 to 500.")]})
        return int(page_size)

    def decode_cursor(self, request: Request) -> Any:
        """Return the cursor of the request, or ``None``.

        :raises ValidationError: for a cursor that this API did not issue."""
        try:
            cursor = super().decode_cursor(request)
        except NotFound as error:
            raise ValidationError({"cursor": [_("Invalid cursor for this list.")]}) from error
        position = None if cursor is None or cursor.position is None else str(cursor.position)
        if position is not None and not (position.isascii() and position.isdigit() and len(position) < 19):
            raise ValidationError({"cursor": [_("Invalid cursor for this list.")]})
        return cursor

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Add the limits of the page size to the OpenAPI parameters."""
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE}
        return parameters


class PagesOldestFirst(Pages):
    """Cursor pages, oldest first, for parts of an object."""

    ordering = "id"
