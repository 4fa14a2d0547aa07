"""How bodies of requests are read: bounded, strict, and files to the letter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser, JSONParser, MultiPartParser

ENVELOPE = 64 * 1024  # what a multipart body adds to its file
LARGEST_JSON = 1024 * 1024  # of bodies that are no files


class TooLarge(APIException):
    """413 for a body beyond the limit, before it is read."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(_("The body is larger than %(limit)s bytes.") % {"limit": limit})


class LengthRequired(APIException):
    """411 for a body without an announced length: none of it would be read."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_code = "length_required"
    default_detail = _lazy("Send the body with a Content-Length, not in chunks.")


@dataclass(frozen=True, slots=True)
class Body:
    """The file of a request. ``named`` is false where it is the body itself, whose name was made up."""

    file_name: str
    content: bytes
    named: bool = True


def _limited(context: Mapping[str, Any] | None, limit: int) -> None:
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
        _limited(parser_context, LARGEST_JSON)
        try:
            text = stream.read().decode("utf-8")
            value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repetition)
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except RecursionError:
            raise ParseError(_("The JSON is nested too deep.")) from None
        except ValueError as error:
            raise ParseError(_("This is no valid JSON: %(detail)s") % {"detail": str(error)[:200]}) from None
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
        _limited(parser_context, settings.CONCORD_UPLOAD_BYTES + ENVELOPE)
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
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    }

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        """The bytes as they came.

        :raises TooLarge: beyond the limit.
        """
        _limited(parser_context, settings.CONCORD_UPLOAD_BYTES)
        ending = self.ENDINGS.get((media_type or "").partition(";")[0].strip().lower(), "")
        return Body(f"body.{ending}" if ending else "body", stream.read(), named=False)
