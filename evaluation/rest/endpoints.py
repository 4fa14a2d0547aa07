"""Base views of the REST API: strict query parameters and bodies, uploads, declared serializers, lists by permission.

A file is uploaded in the form field ``file``, or as the body with the options in the query string."""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial, update_wrapper, wraps
from typing import Any, ClassVar

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend, FilterSet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema, extend_schema_field
from rest_framework.decorators import action
from rest_framework.exceptions import NotAuthenticated, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ChoiceField, FileField, IntegerField, ListField, Serializer
from rest_framework.utils.serializer_helpers import ReturnDict, ReturnList
from rest_framework.viewsets import ViewSetMixin

from evaluation.accounts.access import fetch, projects_with, visible
from evaluation.core.roles import Action
from evaluation.formats.reading import ENCODINGS
from evaluation.models import Project, User
from evaluation.rest.idempotency import IDEMPOTENCY_HEADER, run_once
from evaluation.rest.requests import (
    MULTIPART_OVERHEAD,
    FileBody,
    FormWithFile,
    LengthRequired,
    Pages,
    StrictJSON,
    TooLarge,
    UploadedBody,
    check_length,
)

Method = Callable[..., Any]
SerializerClass = type[Serializer[Any]]


class StrictSerializer(Serializer[Any]):
    """Serializer that refuses unknown fields, so that a mistyped option is not ignored, and values that are no integers
    although Django REST framework converts them: ``5.0``, ``true`` and digits of other scripts."""

    def to_internal_value(self, data: Any) -> Any:
        """Validate the data.

        :raises ValidationError: for each unknown field, and each field of integers with another value."""
        if not isinstance(data, Mapping):
            return super().to_internal_value(data)
        if unknown := sorted(set(data) - set(self.fields)):
            raise ValidationError({str(name): [_("Unknown field.")] for name in unknown})
        if inexact := [name for name, field in self.fields.items() if not _is_exact(field, data.get(name))]:
            raise ValidationError({name: [IntegerField.default_error_messages["invalid"]] for name in inexact})
        return super().to_internal_value(data)


_INTEGER = re.compile(r"-?[0-9]+|")


def _is_exact(field: Any, value: Any) -> bool:
    if isinstance(field, ListField) and isinstance(value, list):
        return all(_is_exact(field.child, element) for element in value)
    if not isinstance(field, IntegerField) or value is None:
        return True
    return bool(_INTEGER.fullmatch(value)) if isinstance(value, str) else type(value) is int


class StrictAPIView(GenericAPIView[Any]):
    """View that refuses undeclared query parameters.

    ``query`` names parameters besides those of filters and pagination."""

    parser_classes = (StrictJSON,)
    filter_backends: Any = ()
    pagination_class: Any = None
    query: ClassVar[tuple[str, ...]] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then check the parameters.

        :raises ValidationError: for each unknown parameter.
        :raises LengthRequired: for a chunked body, which Django would read as empty."""
        super().initial(request, *args, **kwargs)
        if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
            raise LengthRequired
        if IDEMPOTENCY_HEADER in request.headers and request.method == "POST":
            check_length({"request": request}, settings.CONCORD_UPLOAD_BYTES + MULTIPART_OVERHEAD)
            post = getattr(self, "post", self.http_method_not_allowed)
            # A ViewSet sets its methods this way.
            vars(self)["post"] = update_wrapper(partial(run_once, post), post)
        if request.query_params and (unknown := sorted(set(request.query_params) - self._known_parameters())):
            raise ValidationError({name: [_("Unknown parameter.")] for name in unknown})

    def _known_parameters(self) -> set[str]:
        """Parameters of the current method: its own, and for paged lists those of filters and cursor."""
        method = getattr(self, str(self.request.method).lower(), None)
        declared = getattr(method, "query", None)
        known = {*self.query, *(_shared_serializer(declared).fields if declared else ())}
        if self.request.method != "GET" or not getattr(method, "paged", not getattr(self, "detail", False)):
            return known
        filters: type[FilterSet] | None = getattr(self, "filterset_class", None)
        known |= set(filters.base_filters) if filters else set()
        return known | ({"cursor", "page_size"} if self.pagination_class else set())

    def body(self) -> Any:
        """Validated body of the request, by the method's declared serializer, else the view's.

        :raises ValidationError: for invalid data."""
        if self.request.data is None:
            # The message of Django REST framework.
            raise ValidationError({"non_field_errors": ["No data provided"]})
        method = getattr(self, str(self.request.method).lower())
        kind: Any = getattr(method, "body", None) or self.get_serializer_class()
        return _shared_serializer(kind).run_validation(self.request.data)

    def page(self, rows: QuerySet[Any], kind: SerializerClass) -> Response:
        return self.get_paginated_response(
            serialize(kind, self.paginate_queryset(self.filter_queryset(rows)) or [], many=True)
        )

    def validated_query(self, data: Mapping[str, Any] | None = None) -> Any:
        """Validated query parameters, or ``data`` instead, by the method's declared ``query``.

        :raises ValidationError: for invalid parameters."""
        method = getattr(self, str(self.request.method).lower())
        return _shared_serializer(method.query).run_validation(self.request.query_params if data is None else data)


@cache
def _shared_serializer(kind: Any) -> Serializer[Any]:
    """Serializer shared by all requests, of which it keeps no state; creating one copies every field."""
    serializer: Serializer[Any] = kind()
    return serializer


def responds_with(
    *kinds: SerializerClass,
    status: int = 200,
    other_responses: Mapping[int, Any] | None = None,
    many: bool = False,
    paged: bool = False,
    body: Any = None,
    query: type[StrictSerializer] | None = None,
) -> Callable[[Method], Method]:
    """Declare the request and response of a method, for the schema and for the response itself.

    The method returns an object, or a ``Response`` around it for another status; the first of ``kinds`` serializes it.
    To use another serializer, the method returns its ``data``. With ``paged`` the method returns a queryset. ``None``
    becomes status 204, as does any result without ``kinds``. ``other_responses``: further statuses for the schema.
    ``body`` is read by :meth:`StrictAPIView.body`, ``query`` by :meth:`StrictAPIView.validated_query`."""
    responses = {status: _response_schema(kinds, many or paged)} if kinds else {204: None}
    responses |= {
        code: _response_schema(other) if isinstance(other, tuple) else other
        for code, other in (other_responses or {}).items()
    }
    schema: dict[str, Any] = {"responses": responses}
    if query:
        schema["parameters"] = [query]
    if body:
        schema["request"] = body

    def decorate(method: Method) -> Method:
        @wraps(method)
        def respond(self: StrictAPIView, request: Request, *args: Any, **kwargs: Any) -> Response:
            result = method(self, request, *args, **kwargs)
            if result is None or not kinds:
                return Response(status=204)
            if paged:
                return result if isinstance(result, Response) else self.page(result, kinds[0])
            response = result if isinstance(result, Response) else Response(result, status=status)
            response.data = serialize(kinds[0], response.data, many=many)
            return response

        vars(respond).update(kinds=kinds, body=body, query=query, paged=paged)
        return extend_schema(**schema)(respond)

    return decorate


def detail_action(
    fetch_object: Callable[[Any, int], Any],
    *kinds: SerializerClass,
    body: type[StrictSerializer] | None = StrictSerializer,
    **declared: Any,
) -> Callable[[Method], Method]:
    """Declare a POST action on one object.

    ``fetch_object`` fetches it if the caller may perform the action. A ``body`` without fields must be empty; ``None``
    ignores the body. The method receives the object and, if there are fields, the body. Its result is handled by
    :func:`responds_with`."""
    has_fields = body not in (None, StrictSerializer)

    def decorate(method: Method) -> Method:
        @wraps(method)
        def handle(self: StrictAPIView, request: Request, pk: int) -> Any:
            obj = fetch_object(request.user, pk)
            data = self.body() if body else None
            return method(self, obj, data) if has_fields else method(self, obj)

        options: dict[str, Any] = {
            "serializer_class": body or StrictSerializer,
            "pagination_class": None,
            "filterset_class": None,
        }
        routed = action(detail=True, methods=["post"], url_path=method.__name__.replace("_", "-"), **options)(handle)
        return responds_with(*kinds, body=body, **declared)(routed)

    return decorate


def detail_view(
    *kinds: SerializerClass, pages: type[Pages] | None = None, filters: type[FilterSet] | None = None, **declared: Any
) -> Callable[[Method], Method]:
    """Declare a GET below one object, under the method's name.

    ``pages`` paginates the rows, ``filters`` filters them. The result is handled by :func:`responds_with`."""
    options: dict[str, Any] = {"serializer_class": kinds[0], "pagination_class": pages, "filterset_class": filters}

    def decorate(method: Method) -> Method:
        routed = action(detail=True, url_path=method.__name__.replace("_", "-"), **options)(method)
        return responds_with(*kinds, paged=pages is not None, **declared)(routed)

    return decorate


def _response_schema(kinds: tuple[SerializerClass, ...], many: bool = False) -> Any:
    """Schema of a response by one of the serializers."""
    if len(kinds) == 1:
        return kinds[0](many=many)
    name = "Or".join(kind.__name__.removesuffix("Serializer") for kind in kinds)
    return PolymorphicProxySerializer(name, serializers=list(kinds), resource_type_field_name=None, many=many)


def serialize(kind: Any, value: Any, *, many: bool = False) -> Any:
    """Serialize an object, or ``many`` objects, without context."""
    # Already serialized.
    if isinstance(value, (ReturnDict, ReturnList)):
        return value
    write = _shared_serializer(kind).to_representation
    return [write(element) for element in value] if many else write(value)


class ViewSet(ViewSetMixin, StrictAPIView):
    """Endpoints for objects with a numeric id."""

    lookup_value_converter = "int"
    serializer_class: Any = StrictSerializer
    filterset_class: Any = None


class RowsViewSet(ListModelMixin, ViewSet):
    """Rows of the caller's projects: a list in cursor pages, and each row by id.

    ``rows`` are all rows with related data; a caller whose role does not permit ``needs`` gets an empty list."""

    pagination_class = Pages
    filter_backends = (DjangoFilterBackend,)
    rows: ClassVar[QuerySet[Any]]
    path: ClassVar[str] = ""
    needs: ClassVar[Action] = Action.VIEW

    def get_queryset(self) -> QuerySet[Any]:
        return visible(self.rows.all(), self.request.user, self.needs, path=self.path)

    def get_object(self) -> Any:
        return fetch(self.rows.all(), self.request.user, self.needs, self.kwargs["pk"], path=self.path)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Page of the rows."""
        return super().list(request)

    def retrieve(self, request: Request, pk: int) -> Response:
        """Row with this id."""
        # An action's serializer may differ.
        kind: Any = type(self).serializer_class
        return Response(kind(self.get_object(), context=self.get_serializer_context()).data)


def request_user(request: Request) -> User:
    """Authenticated user of a request.

    :raises NotAuthenticated: if permission classes are disabled."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


#: Schema of a body that is the file itself.
FILE_BODY = {"application/json": OpenApiTypes.OBJECT, "text/csv": OpenApiTypes.BINARY}


# Otherwise the schema declares a URL.
@extend_schema_field(OpenApiTypes.BINARY)
class FormFileField(FileField):
    pass


class TextOptions(StrictSerializer):
    """Encoding options of an uploaded text."""

    encoding = ChoiceField(
        choices=sorted(ENCODINGS), default="", allow_blank=True, help_text="encoding of a text that is not in UTF-8"
    )


class UploadEndpoint(StrictAPIView):
    """Endpoint for file uploads; its declared ``query`` parameters may also be form fields."""

    parser_classes = (FormWithFile, FileBody)  # type: ignore[assignment]

    def upload(self) -> tuple[UploadedBody, Any]:
        """Return the file and the validated options.

        :raises ValidationError: for a missing file and for invalid options.
        :raises TooLarge: above the upload limit.
        :raises InvalidFile: if the text is not in the named encoding."""
        data = self.request.data
        parameters: dict[str, Any] = self.request.query_params.dict()
        if isinstance(data, UploadedBody):
            body = data
        else:
            body = _form_file(self.request)
            parameters |= {name: value for name, value in _as_mapping(data).items() if name != "file"}
        options = self.validated_query(parameters)
        return body.recode_from(options.get("encoding", "")), options


def _as_mapping(data: Any) -> Mapping[str, Any]:
    mapping: Mapping[str, Any] = data.dict() if hasattr(data, "dict") else data
    return mapping


def _form_file(request: Request) -> UploadedBody:
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or len(request.FILES) != 1:
        raise ValidationError({"file": [_("Send exactly one file in the field “file”.")]})
    if (file.size or 0) > settings.CONCORD_UPLOAD_BYTES:
        raise TooLarge(settings.CONCORD_UPLOAD_BYTES)
    return UploadedBody(file.name or "file", file.read())


def project_for(user: User, pk: int | None) -> Project:
    """Project of an import: the named one, else the only one the caller may import into.

    :raises Http404: if the caller has no role in the project.
    :raises PermissionDenied: if the role does not permit it.
    :raises ValidationError: if none is named and there is not exactly one."""
    if pk is not None:
        return fetch(Project.objects.all(), user, Action.EVALUATE, pk)
    projects = list(projects_with(user, Action.EVALUATE)[:2])
    if len(projects) != 1:
        raise ValidationError({"project": [_("Give the project's ID.")]})
    return projects[0]
