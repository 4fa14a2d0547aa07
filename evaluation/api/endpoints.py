"""What all endpoints share: strict query parameters, strict bodies, lists of what the caller may see."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend, FilterSet
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from evaluation.accounts.access import visible
from evaluation.api.pages import Pages
from evaluation.api.parsers import LengthRequired, StrictJSON
from evaluation.core.roles import Action
from evaluation.models import User


class StrictSerializer(serializers.Serializer[Any]):
    """A body in which every field must be known: a mistyped option is refused, never ignored."""

    def to_internal_value(self, data: Any) -> Any:
        """The validated values.

        :raises ValidationError: naming each unknown field.
        """
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):
            raise ValidationError({str(name): [_("This field is not known here.")] for name in unknown})
        return super().to_internal_value(data)


class Endpoint(GenericAPIView[Any]):
    """A view that refuses query parameters nobody declared.

    ``query`` names those a view reads beside its filters and pages.
    """

    parser_classes = (StrictJSON,)
    filter_backends: Any = ()
    pagination_class: Any = None
    query: ClassVar[tuple[str, ...]] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then look at the parameters.

        :raises ValidationError: naming each unknown parameter.
        :raises LengthRequired: for a body sent in chunks, which would be taken for an empty one.
        """
        super().initial(request, *args, **kwargs)
        if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
            raise LengthRequired
        known = set(self.query) if request.method != "GET" else {*self.query, *self._filters(), *self._paging()}
        if unknown := sorted(set(request.query_params) - known):
            raise ValidationError({name: [_("This parameter is not known here.")] for name in unknown})

    def _filters(self) -> tuple[str, ...]:
        filters: type[FilterSet] | None = getattr(self, "filterset_class", None)
        return tuple(filters.base_filters) if filters else ()

    def _paging(self) -> tuple[str, ...]:
        return ("cursor", "page_size") if self.pagination_class else ()

    def body(self) -> Any:
        """The validated body of the request, by the view's serializer.

        :raises ValidationError: for anything it does not accept.
        """
        if self.request.data is None:
            raise ValidationError({"non_field_errors": ["No data provided"]})  # as the REST framework words it
        kind: Any = self.get_serializer_class()
        return _reader(kind).run_validation(self.request.data)


@cache
def _reader(kind: Any) -> BaseSerializer[Any]:
    """One for all requests, of which it keeps nothing: making a serializer copies every field below it."""
    made: BaseSerializer[Any] = kind()
    return made


class ListEndpoint(ListModelMixin, Endpoint):
    """A list of rows of the projects in which the caller may look at things, in cursor pages.

    ``rows`` are all rows with what the serializer needs; a caller without any role gets an empty list.
    """

    pagination_class = Pages
    filter_backends = (DjangoFilterBackend,)
    rows: ClassVar[QuerySet[Any]]
    path: ClassVar[str] = ""

    def get_queryset(self) -> QuerySet[Any]:
        """What the caller may see."""
        return visible(self.rows.all(), self.request.user, Action.VIEW, path=self.path)

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page."""
        return self.list(request)


def person(request: Request) -> User:
    """Who is asking; the permission classes let nobody else through.

    :raises NotAuthenticated: where they were switched off.
    """
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user
