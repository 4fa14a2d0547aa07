"""What people are told where they did something too often: how long to wait, on a page of its own."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evaluation.errors import TooOften
from evaluation.messages import explain_refusal

TOO_MANY_REQUESTS = 429


class TooOftenMiddleware:
    """Answers 429 where a page refuses for now; REST has its own handler (``evaluation/api/errors.py``)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The page; ``None`` for every other error."""
        if not isinstance(exception, TooOften):
            return None
        response = render(request, "429.html", {"text": explain_refusal(exception)}, status=TOO_MANY_REQUESTS)
        response.headers["Retry-After"] = str(exception.seconds)
        return response
