"""What the OpenAPI schema has to be told about our own parts."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

ERRORS = {
    "400": "A parameter, a field or a file is refused; the body says which and why.",
    "401": "No token, or one that is unknown, expired or revoked.",
    "403": "The role or the token does not allow it.",
    "404": "There is no such thing, or none the caller may know of.",
}
WRITING_ERRORS = {
    "409": "The present state does not allow it; the body holds a code and a sentence.",
    "413": "The body is larger than allowed.",
    "415": "Bodies of this type are not read here.",
}


class BearerToken(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How a token is sent."""

    target_class = "evaluation.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """The scheme as OpenAPI names it."""
        return {"type": "http", "scheme": "bearer"}


def describe_errors(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add the answers that every endpoint may give to the schema (a postprocessing hook of drf-spectacular)."""
    content: dict[str, Any] = {"application/json": {"schema": {}}}
    for operations in result.get("paths", {}).values():
        for method, operation in operations.items():
            possible = ERRORS if method == "get" else ERRORS | WRITING_ERRORS
            for status, description in possible.items():
                operation["responses"].setdefault(status, {"description": description, "content": content})
    return result
