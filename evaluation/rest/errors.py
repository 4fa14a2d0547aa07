"""Error responses of the REST API, and their OpenAPI description. Domain errors become 4xx or 503; DRF handles all
others."""

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

from evaluation.core.errors import DomainError, InvalidFile, NotReady, RateLimited, UnknownName
from evaluation.messages.explanations import explain, explain_refusal


class SentenceField(CharField):
    """Message of a problem or remark in the caller's language."""

    def to_representation(self, value: Any) -> str:
        return explain(value)


class ProblemSerializer(Serializer[Any]):
    """Problem or remark about a file."""

    code = CharField()
    file = CharField(allow_blank=True)
    line = IntegerField(allow_null=True)
    field = CharField(allow_blank=True)
    params = DictField()
    more_lines = ListField(child=IntegerField(), help_text="other lines with the same problem in the same column")
    message = SentenceField(source="*")


PROBLEM_CONTENT_TYPE = "application/problem+json"


def problem_body(status: int, detail: Any) -> dict[str, Any]:
    """RFC 9457 problem with ``type``, ``title`` and ``status``.

    ``code``, ``problems`` and invalid fields are members of the body. Invalid fields are repeated in ``errors``,
    because a field may have the name of another member."""
    members = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    if not isinstance(detail, dict):
        return members | {"errors": {"non_field_errors": detail}}
    if set(detail) <= {"detail", "code", "problems", "known"} and "detail" in detail:
        return detail | members
    return {**detail, **members, "errors": detail}


def handle_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    """Response to an error as an RFC 9457 problem; ``None`` for unhandled errors."""
    response = _error_response(error, context)
    if response is not None:
        response.data = problem_body(response.status_code, response.data)
        response.content_type = PROBLEM_CONTENT_TYPE
    return response


def _error_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return 400 for a refused file or unknown name, 409 for a refused action, 429 for rate limits, 503 for pending
    results."""
    if isinstance(error, InvalidFile):
        problems = ProblemSerializer(error.problems, many=True).data
        return Response({"detail": "invalid_file", "problems": problems}, status=400)
    if isinstance(error, NotReady):
        body = {"detail": explain_refusal(error), "code": error.code}
        status = 429 if isinstance(error, RateLimited) else 503
        return Response(body, status=status, headers={"Retry-After": str(error.seconds)})
    if isinstance(error, DomainError):
        return Response({"detail": explain_refusal(error), "code": error.code}, status=409)
    if isinstance(error, UnknownName):
        return Response({"detail": str(error), "known": error.known}, status=400)
    response = exception_handler(error, context)
    if response is not None and isinstance(error, APIException) and isinstance(error.detail, ErrorDetail):
        response.data["code"] = error.detail.code
    return response


@csrf_exempt
def unknown_address(request: HttpRequest, subpath: str = "") -> JsonResponse:
    """Return 404 with a hint. Exempt from CSRF checks, so that a POST without a token gets the hint too."""
    body = {"detail": _("Address not found. Addresses end with a slash.")}
    return JsonResponse(problem_body(404, body), status=404, content_type=PROBLEM_CONTENT_TYPE)


ERRORS = {
    400: "A parameter, field or file is invalid. The body names it and the reason.",
    401: "The token is missing, unknown, expired or revoked.",
    403: "The role or the token does not allow it.",
    404: "The object does not exist, or the caller may not see it.",
    503: "Figures are being computed (figures_in_making), or the database is unavailable. The body holds a code, "
    "`Retry-After` the seconds to wait.",
}
WRITING_ERRORS = {
    409: "The object's state or an earlier request with the same key does not allow it. The body holds a code.",
    413: "The body is larger than allowed.",
    415: "This content type is not supported here.",
}
RATE_LIMIT_ERRORS = {429: "Too many requests within an hour; `Retry-After` holds the seconds to wait."}

IDEMPOTENCY_PARAMETER = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    "description": "A request repeated with the same key within a day gets the response to the first one.",
}
PROBLEM_SCHEMA = {
    "type": "object",
    "description": "RFC 9457 problem. Invalid fields are also members under their own names.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"description": "sentence on what is wrong"},
        "code": {"description": "stable code of the reason"},
        "errors": {"type": "object", "additionalProperties": {}, "description": "messages by parameter or field"},
        "problems": {"description": "problems of a refused file: a list of `Problem`"},
        "known": {"description": "existing names, if a name is unknown"},
    },
    "required": ["type", "title", "status"],
}


class BearerToken(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Token authentication for the OpenAPI schema."""

    target_class = "evaluation.rest.requests.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def describe_errors(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add the common error responses to the schema, once as components (postprocessing hook of drf-spectacular)."""
    components = result.setdefault("components", {})
    content = {PROBLEM_CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}}
    components.setdefault("schemas", {})["Error"] = PROBLEM_SCHEMA
    components["parameters"] = {"IdempotencyKey": IDEMPOTENCY_PARAMETER}
    components["responses"] = {
        f"Error{status}": {"description": description, "content": content}
        for status, description in (ERRORS | WRITING_ERRORS | RATE_LIMIT_ERRORS).items()
    }
    for path in result.get("paths", {}).values():
        for method, operation in path.items():
            statuses = list(ERRORS if method == "get" else ERRORS | WRITING_ERRORS)
            if method == "post":
                operation.setdefault("parameters", []).append({"$ref": "#/components/parameters/IdempotencyKey"})
            # Endpoints with a rate limit declare its status.
            if "429" in operation["responses"]:
                statuses.append(429)
            operation["responses"] |= {
                str(status): {"$ref": f"#/components/responses/Error{status}"} for status in statuses
            }
    for component in components["schemas"].values():
        # The serializer for leads is a superset of the one for members, so both may match.
        if "oneOf" in component and "discriminator" not in component:
            component["anyOf"] = component.pop("oneOf")
    return result
