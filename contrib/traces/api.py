"""REST: ``otlp/v1/traces`` for OpenTelemetry exporters; ``traces/`` for pending traces and their import."""

import zlib
from typing import Any, NotRequired

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
from typing_extensions import TypedDict

from contrib.traces.importing import QUIET_SECONDS, Sampling, import_received, pending_traces, store_received
from contrib.traces.otlp import PERSONAL, protobuf_response
from evaluation.rest.endpoints import StrictAPIView, StrictSerializer, ViewSet, project_for, request_user, responds_with
from evaluation.rest.requests import FileBody, TooLarge, UploadedBody
from evaluation.rest.typed import TypedResponse
from evaluation.runs.answer_files import score_by_rules
from evaluation.runs.api import ANSWER_SETS, ImportedAnswersSerializer
from evaluation.runs.serializers import RunState

PROTOBUF = "application/x-protobuf"
# Time limit of rule metrics within a request.
RULES_SECONDS = 10.0


class ProjectQuery(StrictSerializer):
    """The project."""

    project = IntegerField(required=False, min_value=1, help_text="id of the project; required if there are several")


class ImportSerializer(ProjectQuery):
    """Traces to import as a version of a question set with its answers."""

    system = CharField(max_length=200, help_text="`service.name` of the system that sent them")
    questions = CharField(default="", max_length=200, help_text="name of the question set; default: `SYSTEM traces`")
    rate = FloatField(default=1.0, min_value=0, max_value=1, help_text="share of the traces that no rule selects")
    rules = ListField(
        child=CharField(max_length=500),
        default=list,
        max_length=20,
        help_text="JMESPath over a trace; traces for which one is true are all imported",
    )
    mask = ListField(
        child=CharField(max_length=100),
        default=list,
        max_length=20,
        help_text=f"masked in addition to secrets: {', '.join(PERSONAL)}, or a pattern (#: digit, *: rest of a word)",
    )
    quiet_seconds = FloatField(
        default=QUIET_SECONDS,
        min_value=0,
        max_value=86_400,
        help_text="seconds after its last span at which a trace is complete",
    )


class WaitingSerializer(Serializer[Any]):
    """Pending traces of a system; deleted after a day."""

    system = CharField()
    traces = IntegerField()
    first = DateTimeField()
    last = DateTimeField()


class TraceViewSet(ViewSet):
    """Traces that systems sent."""

    @responds_with(WaitingSerializer, many=True, query=ProjectQuery)
    def list(self, request: Request) -> list[dict[str, Any]]:
        """Pending traces, by system."""
        return pending_traces(project_for(request_user(request), self.validated_query().get("project")))

    @responds_with(ImportedAnswersSerializer, status=201, body=ImportSerializer)
    def create(self, request: Request) -> Response:
        """Import the complete traces of a system: 201 with their answer set and its run; 409 without any."""
        body = self.body()
        imported = import_received(
            project_for(request_user(request), body.get("project")),
            body["system"],
            name=body["questions"],
            sampling=Sampling(body["rate"], tuple(body["rules"]), tuple(body["mask"])),
            quiet_seconds=body["quiet_seconds"],
            by=request_user(request),
        )
        run = score_by_rules(imported.answers.run, seconds=RULES_SECONDS)
        answer_set = ANSWER_SETS.get(pk=run.answer_set_id)
        result = {"answer_set": answer_set, "run": RunState.of(run, request), "imported": imported.answers}
        return Response(result, status=201)


class RejectedSpans(TypedDict):
    rejectedSpans: str


class OtlpResponse(TypedDict):
    """Response of OTLP; empty if no span was rejected."""

    partialSuccess: NotRequired[RejectedSpans]


class OtlpView(StrictAPIView):
    """OTLP over HTTP, as JSON or protobuf, optionally gzipped. The project is that of the token, or in the query."""

    parser_classes = (FileBody,)  # type: ignore[assignment]
    query = ("project",)

    @extend_schema(
        parameters=[ProjectQuery],
        request={"application/json": OpenApiTypes.OBJECT, PROTOBUF: OpenApiTypes.BINARY},
        responses={200: TypedResponse(OtlpResponse)},
    )
    def post(self, request: Request) -> HttpResponse:
        """Store the traces until they are imported. As OTLP specifies, the response reports the number of rejected
        spans."""
        query = ProjectQuery().run_validation(request.query_params.dict())
        rejected = store_received(
            project_for(request_user(request), query.get("project")), _decompress(request), request_user(request)
        )
        if request.content_type == PROTOBUF:
            return HttpResponse(protobuf_response(rejected), content_type=PROTOBUF)
        return Response({"partialSuccess": {"rejectedSpans": str(rejected)}} if rejected else {})


def _decompress(request: Request) -> bytes:
    """Return the decompressed body.

    :raises ParseError: for invalid gzip.
    :raises TooLarge: beyond the size limit of uploads, without decompressing the whole body."""
    content = request.data.content if isinstance(request.data, UploadedBody) else b""
    if request.headers.get("Content-Encoding", "identity") in {"", "identity"}:
        return content
    limit = settings.CONCORD_UPLOAD_BYTES
    decompressor = zlib.decompressobj(wbits=31)
    try:
        decompressed = decompressor.decompress(content, limit + 1)
    except zlib.error as error:
        raise ParseError(_("The body isn't gzip.")) from error
    if len(decompressed) > limit:
        raise TooLarge(limit)
    if not decompressor.eof:
        raise ParseError(_("The body isn't gzip."))
    return decompressed


router = SimpleRouter(use_regex_path=False)
router.register("traces", TraceViewSet, "api-trace")
urlpatterns: list[URLPattern | URLResolver] = [
    path("otlp/v1/traces", OtlpView.as_view(), name="api-otlp-traces"),
    *router.urls,
]
