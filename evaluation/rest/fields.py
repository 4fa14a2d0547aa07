"""Fields of request bodies that several REST modules share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.serializers import CharField, IntegerField

from evaluation.accounts.access import LARGEST_ID
from evaluation.rest.endpoints import Method, StrictSerializer

TOO_OFTEN = OpenApiResponse(description="Too many within an hour; `Retry-After` says in how many seconds to try again.")
LONGEST_TEXT = 100_000  # beyond every limit that is explained in a sentence
A_DAY_IN_MS = 86_400_000


def optional_text(longest: int = LONGEST_TEXT) -> CharField:
    """A text that may be empty or left out."""
    return CharField(default="", allow_blank=True, max_length=longest)


def row_id(**more: Any) -> IntegerField:
    """A primary key."""
    return IntegerField(min_value=1, max_value=LARGEST_ID, **more)


def a_label() -> Any:
    """A class or nothing; in no type, because ``label`` is the caption of a field to the REST framework."""
    return CharField(allow_null=True, default=None, max_length=200)


def limited(
    query: type[StrictSerializer],
    responses: Mapping[Any, Any] = MappingProxyType({200: OpenApiTypes.OBJECT}),
    *,
    detail: bool = True,
    shown: list[Any] | None = None,
) -> Callable[[Method], Method]:
    """A GET below one thing or, without ``detail``, all of them, which one may ask for only so often and whose answer
    no serializer writes. :meth:`Endpoint.asked` reads the ``query``; the schema tells of it as ``shown``, if that is
    something else."""

    def decorate(method: Method) -> Method:
        routed = action(detail=detail, pagination_class=None)(method)
        vars(routed).update(query=query)
        return extend_schema(parameters=shown or [query], responses={**responses, 429: TOO_OFTEN})(routed)

    return decorate
