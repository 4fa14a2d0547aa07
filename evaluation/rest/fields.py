"""Fields and actions shared by REST modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.serializers import CharField, IntegerField

from evaluation.accounts.access import MAX_ID
from evaluation.rest.endpoints import Method, StrictSerializer

# Replaced by the common response (`errors.describe_errors`).
RATE_LIMIT_RESPONSE = OpenApiResponse()
# Above every limit that has a message of its own.
MAX_TEXT_LENGTH = 100_000
DAY_MILLISECONDS = 86_400_000


def optional_text(max_length: int = MAX_TEXT_LENGTH) -> CharField:
    return CharField(default="", allow_blank=True, max_length=max_length)


def id_field(**options: Any) -> IntegerField:
    return IntegerField(min_value=1, max_value=MAX_ID, **options)


def label_field() -> Any:
    """Field for a class label or null; not a typed attribute, because DRF uses ``label`` for a field's caption."""
    return CharField(allow_null=True, default=None, max_length=200)


def rate_limited_view(
    query: type[StrictSerializer],
    responses: Mapping[Any, Any],
    *,
    detail: bool = True,
    schema_parameters: list[Any] | None = None,
) -> Callable[[Method], Method]:
    """Declare a rate-limited GET below one object or, without ``detail``, below the list; no serializer writes the
    response.

    :meth:`StrictAPIView.validated_query` reads the ``query``; ``schema_parameters`` replaces it in the schema."""

    def decorate(method: Method) -> Method:
        routed = action(detail=detail, pagination_class=None)(method)
        vars(routed).update(query=query)
        return extend_schema(
            parameters=[query] if schema_parameters is None else schema_parameters,
            responses={**responses, 429: RATE_LIMIT_RESPONSE},
        )(routed)

    return decorate
