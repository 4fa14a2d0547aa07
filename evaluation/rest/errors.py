"""REST errors: our own become clear 4xx answers, everything else stays DRF's; what the OpenAPI document is told of them
and of tokens."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.exceptions import APIException, ErrorDetail
from rest_framework.response import Response
from rest_framework.serializers import CharField, DictField, IntegerField, ListField, Serializer
from rest_framework.views import exception_handler

from evaluation.core.errors import InvalidFile, Later, Refused, TooOften, UnknownName
from evaluation.messages.sentences import explain, explain_refusal


class SentenceField(CharField):
    """A problem or remark in a sentence in the caller's language."""

    def to_representation(self, value: Any) -> str:
        """The sentence."""
        return explain(value)


class ProblemSerializer(Serializer[Any]):
    """A problem or remark about a file."""

    code = CharField()
    file = CharField(allow_blank=True)
    line = IntegerField(allow_null=True)
    field = CharField(allow_blank=True)
    params = DictField()
    more_lines = ListField(child=IntegerField(), help_text="other lines with the same problem in the same column")
    message = SentenceField(source="*")


PROBLEM = "application/problem+json"


def problem(status: int, said: Any) -> dict[str, Any]:
    """What is said as a problem of RFC 9457: ``type`` and ``title`` by the status, for what is known by nothing closer;
    ``code``, ``problems`` and the fields that were refused stand beside them, the fields in ``errors`` as well, because
    one of them may be called like a member."""
    members = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    if not isinstance(said, dict):
        return members | {"errors": {"non_field_errors": said}}
    if set(said) <= {"detail", "code", "problems", "known"} and "detail" in said:
        return said | members
    return {**said, **members, "errors": said}


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an error as a problem of RFC 9457; ``None`` for what is none of ours."""
    response = _answer(error, context)
    if response is not None:
        response.data = problem(response.status_code, response.data)
        response.content_type = PROBLEM
    return response


def _answer(error: Exception, context: dict[str, Any]) -> Response | None:
    """400 with every problem for a refused file, 409 for an impossible action, 429 for one taken too often, 503 for
    what a worker is at, 400 for an unknown name."""
    if isinstance(error, InvalidFile):
        problems = ProblemSerializer(error.problems, many=True).data
        return Response({"detail": "invalid_file", "problems": problems}, status=400)
    if isinstance(error, Later):
        body = {"detail": explain_refusal(error), "code": error.code}
        status = 429 if isinstance(error, TooOften) else 503
        return Response(body, status=status, headers={"Retry-After": str(error.seconds)})
    if isinstance(error, Refused):
        return Response({"detail": explain_refusal(error), "code": error.code}, status=409)
    if isinstance(error, UnknownName):
        return Response({"detail": str(error), "known": error.known}, status=400)
    response = exception_handler(error, context)
    if response is not None and isinstance(error, APIException) and isinstance(error.detail, ErrorDetail):
        response.data["code"] = error.detail.code
    return response


@csrf_exempt
def unknown(request: HttpRequest, rest: str = "") -> JsonResponse:
    """404 with a hint. There is nothing to protect here, so programs without a CSRF token get it too."""
    said = {"detail": _("There is nothing here. Addresses end with a slash.")}
    return JsonResponse(problem(404, said), status=404, content_type=PROBLEM)


ERRORS = {
    "400": "A parameter, a field or a file is refused; the body says which and why.",
    "401": "No token, or one that is unknown, expired or revoked.",
    "403": "The role or the token does not allow it.",
    "404": "There is no such thing, or none the caller may know of.",
    "503": "A worker is at it (figures_in_making), or the database cannot be used for now; the body holds a code, "
    "Retry-After the seconds to wait.",
}
WRITING_ERRORS = {
    "422": "The Idempotency-Key stood on another request.",
    "409": "The present state does not allow it; the body holds a code and a sentence.",
    "413": "The body is larger than allowed.",
    "415": "Bodies of this type are not read here.",
}


CONDITIONS = [
    {
        "in": "header",
        "name": "Idempotency-Key",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200},
        "description": "The same key twice within a day is one request: the second is given the first one's answer.",
    }
]


class BearerToken(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How a token is sent."""

    target_class = "evaluation.rest.requests.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """The scheme as OpenAPI names it."""
        return {"type": "http", "scheme": "bearer"}


def describe_errors(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add the answers that every endpoint may give to the schema (a postprocessing hook of drf-spectacular)."""
    members = {"type": "string"}, {"type": "string"}, {"type": "integer"}
    shape = {"type": "object", "properties": dict(zip(("type", "title", "status"), members, strict=True))}
    content: dict[str, Any] = {PROBLEM: {"schema": shape | {"required": ["type", "title", "status"]}}}
    for operations in result.get("paths", {}).values():
        for method, operation in operations.items():
            possible = ERRORS if method == "get" else ERRORS | WRITING_ERRORS
            if method == "post":
                operation.setdefault("parameters", []).extend(CONDITIONS)
            for status, description in possible.items():
                operation["responses"].setdefault(status, {"description": description, "content": content})
    for one in result.get("components", {}).get("schemas", {}).values():
        if "oneOf" in one and "discriminator" not in one:  # what a lead sees holds all that a member does
            one["anyOf"] = one.pop("oneOf")
    return result
