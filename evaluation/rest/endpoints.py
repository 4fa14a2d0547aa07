"""What all endpoints share: strict query parameters, strict bodies, files (as the field ``file`` of a form, or as the
body itself with the options in the address), answers written by the serializer that is declared, lists of what the
caller may see."""

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
from rest_framework.serializers import ChoiceField, FileField, Serializer
from rest_framework.utils.serializer_helpers import ReturnDict, ReturnList
from rest_framework.viewsets import ViewSetMixin

from evaluation.accounts.access import fetch, projects_with, visible
from evaluation.core.roles import Action
from evaluation.formats.reading import ENCODINGS
from evaluation.models import Project, User
from evaluation.rest.idempotency import KEY, once
from evaluation.rest.requests import (
    ENVELOPE,
    Body,
    FileBody,
    FormWithFile,
    LengthRequired,
    Pages,
    StrictJSON,
    TooLarge,
    limited,
)

Method = Callable[..., Any]
Kind = type[Serializer[Any]]


class StrictSerializer(Serializer[Any]):
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
        if KEY in request.headers and request.method == "POST":
            limited({"request": request}, settings.CONCORD_UPLOAD_BYTES + ENVELOPE)
            post = getattr(self, "post", self.http_method_not_allowed)
            vars(self)["post"] = update_wrapper(partial(once, post), post)  # as a ViewSet sets its methods
        if request.query_params and (unknown := sorted(set(request.query_params) - self._known())):
            raise ValidationError({name: [_("This parameter is not known here.")] for name in unknown})

    def _known(self) -> set[str]:
        """The parameters of the method that answers: its own, and for pages of a list the filters and the cursor."""
        method = getattr(self, str(self.request.method).lower(), None)
        declared = getattr(method, "query", None)
        known = {*self.query, *(_shared(declared).fields if declared else ())}
        if self.request.method != "GET" or not getattr(method, "paged", not getattr(self, "detail", False)):
            return known
        filters: type[FilterSet] | None = getattr(self, "filterset_class", None)
        known |= set(filters.base_filters) if filters else set()
        return known | ({"cursor", "page_size"} if self.pagination_class else set())

    def body(self) -> Any:
        """The validated body of the request, by what the method declares, else by the view's serializer.

        :raises ValidationError: for anything it does not accept.
        """
        if self.request.data is None:
            raise ValidationError({"non_field_errors": ["No data provided"]})  # as the REST framework words it
        method = getattr(self, str(self.request.method).lower())
        kind: Any = getattr(method, "body", None) or self.get_serializer_class()
        return _shared(kind).run_validation(self.request.data)

    def page(self, rows: QuerySet[Any], kind: Kind) -> Response:
        """One page of the rows."""
        return self.get_paginated_response(
            written(kind, self.paginate_queryset(self.filter_queryset(rows)) or [], many=True)
        )

    def asked(self, given: Mapping[str, Any] | None = None) -> Any:
        """The validated parameters of the address, or what is ``given`` in their place, by the ``query`` that the
        method declares.

        :raises ValidationError: naming what does not fit.
        """
        method = getattr(self, str(self.request.method).lower())
        return _shared(method.query).run_validation(self.request.query_params if given is None else given)


@cache
def _shared(kind: Any) -> Serializer[Any]:
    """One for all requests, of which it keeps nothing: making a serializer copies every field below it."""
    made: Serializer[Any] = kind()
    return made


def written_by(
    *kinds: Kind,
    status: int = 200,
    others: Mapping[int, Any] | None = None,
    many: bool = False,
    paged: bool = False,
    body: Any = None,
    query: type[StrictSerializer] | None = None,
) -> Callable[[Method], Method]:
    """Declare what a method reads and answers, for the schema and for the answer itself.

    The method returns the thing, or a ``Response`` around it where the status is another, and the first of the
    ``kinds`` of serializers writes it; where another one has to, the method hands over its ``data``. Of a method that
    answers in pages (``paged``) the rows are taken. ``None`` becomes 204, as without any kind. ``others`` tells the
    schema of further statuses. ``body`` is what :meth:`Endpoint.body` reads, ``query`` what :meth:`Endpoint.asked`
    does.
    """
    responses = {status: _declared(kinds, many or paged)} if kinds else {204: None}
    responses |= {one: _declared(more) if isinstance(more, tuple) else more for one, more in (others or {}).items()}
    schema: dict[str, Any] = {"responses": responses}
    if query:
        schema["parameters"] = [query]
    if body:
        schema["request"] = body

    def decorate(method: Method) -> Method:
        @wraps(method)
        def answered(self: Endpoint, request: Request, *args: Any, **kwargs: Any) -> Response:
            found = method(self, request, *args, **kwargs)
            if found is None or not kinds:
                return Response(status=204)
            if paged:
                return found if isinstance(found, Response) else self.page(found, kinds[0])
            response = found if isinstance(found, Response) else Response(found, status=status)
            response.data = written(kinds[0], response.data, many=many)
            return response

        vars(answered).update(kinds=kinds, body=body, query=query, paged=paged)
        return extend_schema(**schema)(answered)

    return decorate


def verb(
    find: Callable[[Any, int], Any],
    *kinds: Kind,
    body: type[StrictSerializer] | None = StrictSerializer,
    **declared: Any,
) -> Callable[[Method], Method]:
    """A POST on one thing. ``find`` fetches it for the caller, who may do this; then the body is read, which without
    fields has to be empty and with ``None`` is left alone. The method is given the thing and, where it has fields,
    the body; :func:`written_by` says what becomes of what it returns."""
    fields = body not in (None, StrictSerializer)

    def decorate(method: Method) -> Method:
        @wraps(method)
        def done(self: Endpoint, request: Request, pk: int) -> Any:
            one = find(request.user, pk)
            read = self.body() if body else None
            return method(self, one, read) if fields else method(self, one)

        options: dict[str, Any] = {
            "serializer_class": body or StrictSerializer,
            "pagination_class": None,
            "filterset_class": None,
        }
        routed = action(detail=True, methods=["post"], url_path=method.__name__.replace("_", "-"), **options)(done)
        return written_by(*kinds, body=body, **declared)(routed)

    return decorate


def part(
    *kinds: Kind, pages: type[Pages] | None = None, filters: type[FilterSet] | None = None, **declared: Any
) -> Callable[[Method], Method]:
    """A GET of what belongs to one thing, by the method's name below its address; with ``pages`` in pages of the rows,
    which ``filters`` narrow. :func:`written_by` says what becomes of what the method returns."""
    options: dict[str, Any] = {"serializer_class": kinds[0], "pagination_class": pages, "filterset_class": filters}

    def decorate(method: Method) -> Method:
        routed = action(detail=True, url_path=method.__name__.replace("_", "-"), **options)(method)
        return written_by(*kinds, paged=pages is not None, **declared)(routed)

    return decorate


def _declared(kinds: tuple[Kind, ...], many: bool = False) -> Any:
    """What the schema says of an answer that one of the kinds writes."""
    if len(kinds) == 1:
        return kinds[0](many=many)
    name = "Or".join(kind.__name__.removesuffix("Serializer") for kind in kinds)
    return PolymorphicProxySerializer(name, serializers=list(kinds), resource_type_field_name=None, many=many)


def written(kind: Any, found: Any, *, many: bool = False) -> Any:
    """The thing, or ``many`` things, as the serializer writes them; it is given no context."""
    if isinstance(found, (ReturnDict, ReturnList)):  # by another serializer
        return found
    write = _shared(kind).to_representation
    return [write(one) for one in found] if many else write(found)


class ViewSet(ViewSetMixin, Endpoint):
    """Verbs on things that an address names by their id."""

    lookup_value_converter = "int"
    serializer_class: Any = StrictSerializer
    filterset_class: Any = None


class RowsViewSet(ListModelMixin, ViewSet):
    """Rows of the projects in which the caller may look at things: a list in cursor pages, and each by its id.

    ``rows`` are all rows with what the serializer needs; a caller without any role gets an empty list.
    """

    pagination_class = Pages
    filter_backends = (DjangoFilterBackend,)
    rows: ClassVar[QuerySet[Any]]
    path: ClassVar[str] = ""

    def get_queryset(self) -> QuerySet[Any]:
        """What the caller may see."""
        return visible(self.rows.all(), self.request.user, Action.VIEW, path=self.path)

    def get_object(self) -> Any:
        """The row of the address."""
        return fetch(self.rows.all(), self.request.user, Action.VIEW, self.kwargs["pk"], path=self.path)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page."""
        return super().list(request)

    def retrieve(self, request: Request, pk: int) -> Response:
        """The version."""
        kind: Any = type(self).serializer_class  # not that of a verb which looks at the thing, too
        return Response(kind(self.get_object(), context=self.get_serializer_context()).data)


def person(request: Request) -> User:
    """Who is asking; the permission classes let nobody else through.

    :raises NotAuthenticated: where they were switched off.
    """
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


#: What the schema says of a body that is the file itself.
FILE_BODY = {"application/json": OpenApiTypes.OBJECT, "text/csv": OpenApiTypes.BINARY}


@extend_schema_field(OpenApiTypes.BINARY)  # without it the schema says that the address of a file is sent
class FileOfRows(FileField):
    """The file of a form."""


class TextOptions(StrictSerializer):
    """How the text of a file is written."""

    encoding = ChoiceField(
        choices=sorted(ENCODINGS), default="", allow_blank=True, help_text="of a text that is not in UTF-8"
    )


class UploadEndpoint(Endpoint):
    """An endpoint that takes a file; what its method declares as the ``query`` may also stand beside it in the form."""

    parser_classes = (FormWithFile, FileBody)  # type: ignore[assignment]

    def upload(self) -> tuple[Body, Any]:
        """The file, and the validated options.

        :raises ValidationError: without a file, or for an option that is unknown or wrong.
        :raises TooLarge: beyond the limit of uploads.
        :raises InvalidFile: for a text that is not in the encoding that was named.
        """
        data = self.request.data
        given: dict[str, Any] = self.request.query_params.dict()
        if isinstance(data, Body):
            body = data
        else:
            body = _form_file(self.request)
            given |= {name: value for name, value in _plain(data).items() if name != "file"}
        options = self.asked(given)
        return body.in_encoding(options.get("encoding", "")), options


def _plain(data: Any) -> Mapping[str, Any]:
    plain: Mapping[str, Any] = data.dict() if hasattr(data, "dict") else data
    return plain


def _form_file(request: Request) -> Body:
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or len(request.FILES) != 1:
        raise ValidationError({"file": [_("Exactly one file is expected, in the field “file”.")]})
    if (file.size or 0) > settings.CONCORD_UPLOAD_BYTES:
        raise TooLarge(settings.CONCORD_UPLOAD_BYTES)
    return Body(file.name or "file", file.read())


def project_for(user: User, pk: int | None) -> Project:
    """The project something is imported into: the named one, else the only one the caller may import into.

    :raises Http404: for a project the caller has no role in.
    :raises PermissionDenied: where the role does not allow it.
    :raises ValidationError: when none is named and there is not exactly one.
    """
    if pk is not None:
        return fetch(Project.objects.all(), user, Action.EVALUATE, pk)
    mine = list(projects_with(user, Action.EVALUATE)[:2])
    if len(mine) != 1:
        raise ValidationError({"project": [_("Name the project by its id.")]})
    return mine[0]
