"""REST errors: our own errors become clear 4xx answers; everything else stays DRF's."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response
from rest_framework.views import exception_handler

from evaluation.core.errors import InvalidFile, Problem, Refused, TooOften, UnknownName
from evaluation.wording.messages import explain, explain_refusal


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """400 with every problem for a refused file, 409 for an impossible action, 429 for one taken too often, 400 for an
    unknown name."""
    if isinstance(error, InvalidFile):
        problems = [problem_json(problem) for problem in error.problems]
        return Response({"detail": "invalid_file", "problems": problems}, status=400)
    if isinstance(error, TooOften):
        body = {"detail": explain_refusal(error), "code": error.code}
        return Response(body, status=429, headers={"Retry-After": str(error.seconds)})
    if isinstance(error, Refused):
        return Response({"detail": explain_refusal(error), "code": error.code}, status=409)
    if isinstance(error, UnknownName):
        return Response({"detail": str(error), "known": error.known}, status=400)
    return exception_handler(error, context)


def problem_json(problem: Problem) -> dict[str, Any]:
    """A problem or remark with its parts and, as ``message``, the sentence in the caller's language."""
    return {
        "code": problem.code,
        "file": problem.file,
        "line": problem.line,
        "field": problem.field,
        "params": dict(problem.params),
        "message": explain(problem),
    }
