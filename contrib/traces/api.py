"""``otlp/v1/traces``: where OpenTelemetry's exporters send traces; ``traces/``: what waits of them, and its import."""

import zlib
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.serializers import CharField, DateTimeField, FloatField, IntegerField, ListField, Serializer

from contrib.traces.importing import QUIET_SECONDS, Sampling, import_received, receive, waiting
from contrib.traces.otlp import PERSONAL, protobuf_answer
from evaluation.rest.endpoints import Endpoint, StrictSerializer, ViewSet, person, project_for, written_by
from evaluation.rest.requests import Body, FileBody, TooLarge
from evaluation.runs.answer_files import score_by_rules
from evaluation.runs.api import ANSWER_SETS, ImportedAnswersSerializer
from evaluation.runs.serializers import RunState

PROTOBUF = "application/x-protobuf"
AT_ONCE_SECONDS = 10.0  # what rules may take within a request


class ProjectQuery(StrictSerializer):
    """Which project."""

    project = IntegerField(required=False, min_value=1, help_text="needed with several projects")


class ImportSerializer(ProjectQuery):
    """Which traces become a version of a question set and its answers."""

    system = CharField(max_length=200, help_text="the `service.name` of those who sent them")
    questions = CharField(default="", max_length=200, help_text="name of the question set; else `SYSTEM traces`")
    rate = FloatField(default=1.0, min_value=0, max_value=1, help_text="share of the traces that no rule takes")
    rules = ListField(
        child=CharField(max_length=500),
        default=list,
        max_length=20,
        help_text="JMESPath over a trace; those for which one finds something true are all taken",
    )
    mask = ListField(
        child=CharField(max_length=100),
        default=list,
        max_length=20,
        help_text=f"masked beside secrets: {', '.join(PERSONAL)}, or a pattern (# a digit, * the rest of a word)",
    )
    quiet_seconds = FloatField(
        default=QUIET_SECONDS, min_value=0, max_value=86_400, help_text="after its last span a trace is whole"
    )


class WaitingSerializer(Serializer[Any]):
    """The traces of a system that wait for their import; after a day they are gone."""

    system = CharField()
    traces = IntegerField()
    first = DateTimeField()
    last = DateTimeField()


class TraceViewSet(ViewSet):
    """Traces that systems sent."""

    @written_by(WaitingSerializer, many=True, query=ProjectQuery)
    def list(self, request: Request) -> list[dict[str, Any]]:
        """What waits, by system."""
        return waiting(project_for(person(request), self.asked().get("project")))

    @written_by(ImportedAnswersSerializer, status=201, body=ImportSerializer)
    def create(self, request: Request) -> Response:
        """Import the traces of a system that are whole: 201 with their answer set and its run; 409 where there are
        none."""
        body = self.body()
        done = import_received(
            project_for(person(request), body.get("project")),
            body["system"],
            name=body["questions"],
            sampling=Sampling(body["rate"], tuple(body["rules"]), tuple(body["mask"])),
            quiet_seconds=body["quiet_seconds"],
            by=person(request),
        )
        run = score_by_rules(done.answers.run, seconds=AT_ONCE_SECONDS)
        answer_set = ANSWER_SETS.get(pk=run.answer_set_id)
        found = {"answer_set": answer_set, "run": RunState.of(run, request), "imported": done.answers}
        return Response(found, status=201)


class OtlpView(Endpoint):
    """OTLP over HTTP, in JSON or protobuf, also compressed by gzip: the project is that of the token, or named in the
    address."""

    parser_classes = (FileBody,)  # type: ignore[assignment]
    query = ("project",)

    @extend_schema(
        parameters=[ProjectQuery],
        request={"application/json": OpenApiTypes.OBJECT, PROTOBUF: OpenApiTypes.BINARY},
        responses={200: OpenApiTypes.OBJECT},
    )
    def post(self, request: Request) -> HttpResponse:
        """Keep the traces until they are imported. As OTLP has it, the answer tells how many spans were of no use."""
        named = ProjectQuery().run_validation(request.query_params.dict())
        lost = receive(project_for(person(request), named.get("project")), _plain(request), person(request))
        if request.content_type == PROTOBUF:
            return HttpResponse(protobuf_answer(lost), content_type=PROTOBUF)
        return Response({"partialSuccess": {"rejectedSpans": str(lost)}} if lost else {})


def _plain(request: Request) -> bytes:
    """The body, unpacked.

    :raises ParseError: for what is no gzip though it says so.
    :raises TooLarge: beyond the limit of uploads, before it is unpacked as a whole.
    """
    content = request.data.content if isinstance(request.data, Body) else b""
    if request.headers.get("Content-Encoding", "identity") in {"", "identity"}:
        return content
    limit = settings.CONCORD_UPLOAD_BYTES
    unpacking = zlib.decompressobj(wbits=31)
    try:
        plain = unpacking.decompress(content, limit + 1)
    except zlib.error as error:
        raise ParseError(_("The body is no gzip.")) from error
    if len(plain) > limit:
        raise TooLarge(limit)
    return plain


router = SimpleRouter(use_regex_path=False)
router.register("traces", TraceViewSet, "api-trace")
urlpatterns: list[URLPattern | URLResolver] = [
    path("otlp/v1/traces", OtlpView.as_view(), name="api-otlp-traces"),
    *router.urls,
]
