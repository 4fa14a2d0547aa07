"""REST errors: our own errors become clear 4xx answers; everything else stays DRF's."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import exception_handler

from evaluation.core.errors import InvalidFile, Refused, TooOften, UnknownName
from evaluation.wording.messages import explain, explain_refusal


class SentenceField(serializers.CharField):
    """A problem or remark in a sentence in the caller's language."""

    def to_representation(self, value: Any) -> str:
        """The sentence."""
        return explain(value)


class ProblemSerializer(serializers.Serializer[Any]):
    """A problem or remark about a file."""

    code = serializers.CharField()
    file = serializers.CharField(allow_blank=True)
    line = serializers.IntegerField(allow_null=True)
    field = serializers.CharField(allow_blank=True)
    params = serializers.DictField()
    message = SentenceField(source="*")


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """400 with every problem for a refused file, 409 for an impossible action, 429 for one taken too often, 400 for an
    unknown name."""
    if isinstance(error, InvalidFile):
        problems = ProblemSerializer(error.problems, many=True).data
        return Response({"detail": "invalid_file", "problems": problems}, status=400)
    if isinstance(error, TooOften):
        body = {"detail": explain_refusal(error), "code": error.code}
        return Response(body, status=429, headers={"Retry-After": str(error.seconds)})
    if isinstance(error, Refused):
        return Response({"detail": explain_refusal(error), "code": error.code}, status=409)
    if isinstance(error, UnknownName):
        return Response({"detail": str(error), "known": error.known}, status=400)
    return exception_handler(error, context)
