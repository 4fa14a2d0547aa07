"""The language of a page: the person's choice, else the browser's, else the site's."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation


class LanguageMiddleware:
    """Activates the language and time zone of the person, or of the cookie set by the language switch."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        known = dict(settings.LANGUAGES)
        chosen = getattr(request.user, "language", "") or request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
        language = chosen if chosen in known else translation.get_language_from_request(request)
        zone = getattr(request.user, "time_zone", "") or settings.TIME_ZONE
        with translation.override(language), timezone.override(zone):
            request.LANGUAGE_CODE = translation.get_language() or settings.LANGUAGE_CODE
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", request.LANGUAGE_CODE)
            return response
