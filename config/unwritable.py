"""What people and programs are told while the database takes no writing: that it is so, not that something broke."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from evaluation.errors import Refused
from evaluation.messages import explain_refusal
from evaluation.work.storage import unwritable

log = logging.getLogger("concord.web")
UNAVAILABLE = 503


class UnwritableMiddleware:
    """Answers 503 with what is the matter, in place of 500, where a view could not write."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The answer; ``None`` for every other error."""
        why = unwritable(exception) if isinstance(exception, DatabaseError) else ""
        if not why:
            return None
        log.error("not saved, %s: %s", why, exception)
        if not connection.in_atomic_block:
            connection.close()  # SQLite goes on only reading over one that it opened while the file was so
        text = explain_refusal(Refused(why))
        if request.path.startswith("/api/"):
            return JsonResponse({"detail": text, "code": why}, status=UNAVAILABLE)
        return HttpResponse(render_to_string("503.html", {"text": text}), status=UNAVAILABLE)
