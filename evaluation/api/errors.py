"""REST errors: our own errors become clear 4xx answers; everything else stays DRF's."""

from __future__ import annotations

import dataclasses
from typing import Any

from rest_framework.response import Response
from rest_framework.views import exception_handler

from evaluation.errors import InvalidFile, Refused, UnknownName
from evaluation.messages import explain, explain_refusal


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """400 with every problem for a refused file, 409 for an impossible action, 400 for an unknown name."""
    if isinstance(error, InvalidFile):
        problems = [{**dataclasses.asdict(p), "params": dict(p.params), "message": explain(p)} for p in error.problems]
        return Response({"detail": "invalid_file", "problems": problems}, status=400)
    if isinstance(error, Refused):
        return Response({"detail": explain_refusal(error), "code": error.code}, status=409)
    if isinstance(error, UnknownName):
        return Response({"detail": str(error), "known": error.known}, status=400)
    return exception_handler(error, context)
