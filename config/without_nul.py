"""Forms and addresses without the character U+0000, which text copied from elsewhere may hold: it shows nothing,
PostgreSQL stores no text with it, and what was typed around it must not be lost for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict

NUL = "\0"


class WithoutNulMiddleware:
    """Takes the character out before a view reads its form. The REST endpoints refuse it by themselves."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The answer to the request."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *_: Any) -> None:
        """Clean what the view is about to read; the check against forged forms has read it by now."""
        if getattr(view, "csrf_exempt", False):
            return
        request.GET = _without_nul(request.GET)
        if request.method == "POST":
            request.POST = _without_nul(request.POST)


def _without_nul(data: QueryDict) -> Any:
    if not any(NUL in text for _, texts in data.lists() for text in texts if isinstance(text, str)):
        return data
    cleaned = data.copy()
    for name, texts in data.lists():
        cleaned.setlist(name, [text.replace(NUL, "") if isinstance(text, str) else text for text in texts])
    cleaned._mutable = False
    return cleaned
