"""Middleware of every request: health checks, proxies, caching, language, second factor, database and rate-limit
errors."""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.contrib.sessions import middleware as sessions
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.shortcuts import render, resolve_url
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.http import url_has_allowed_host_and_scheme

from evaluation.core.addresses import is_in_networks, parse_address
from evaluation.core.errors import DomainError, RateLimited
from evaluation.extensions import second_factor
from evaluation.messages.explanations import explain_refusal
from evaluation.rest.errors import PROBLEM_CONTENT_TYPE, problem_body
from evaluation.worker.database import unavailable_reason
from evaluation.worker.health import cached_issues, recheck
from review.evidence.seals import read_as

log = logging.getLogger("concord.web")
UNAVAILABLE = 503


class Middleware:
    """Base class that passes the request on unchanged."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)


class SealedLabelsMiddleware(Middleware):
    """Read sealed labels with the rights of the request's user.

    The user is looked up on each read, because a REST token names them only after this middleware."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with read_as(lambda: request.user):
            return self.get_response(request)


class ProxyMiddleware(Middleware):
    """Take the client's address and scheme from the headers of a trusted proxy; ignore these headers from anybody else.

    The address is the last one in ``X-Forwarded-For`` that is not a trusted proxy; a client can forge the ones before
    it."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _is_proxy(request.META.get("REMOTE_ADDR", "")):
            forwarded_for = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
            client = next((hop for hop in reversed(forwarded_for) if not _is_proxy(hop)), "")
            if parse_address(client):
                request.META["REMOTE_ADDR"] = client
            scheme = request.headers.get("X-Forwarded-Proto", "")
            if scheme in {"http", "https"}:
                request.META["wsgi.url_scheme"] = scheme
        return self.get_response(request)


def _is_proxy(text: str) -> bool:
    return is_in_networks(text, settings.CONCORD_TRUSTED_PROXIES)


class NoStoreMiddleware(Middleware):
    """Forbid browsers and proxies to store pages. Static files are served before this middleware."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class LanguageMiddleware(Middleware):
    """Activate the language and time zone of the user: their own choice, else the language cookie, else the
    browser's."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        available = dict(settings.LANGUAGES)
        try:
            user_language = getattr(request.user, "language", "")
        except DatabaseError as error:
            with translation.override(translation.get_language_from_request(request)):
                return unavailable_response(request, error)
        preferred = user_language or request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
        language = preferred if preferred in available else translation.get_language_from_request(request)
        zone = getattr(request.user, "time_zone", "") or settings.TIME_ZONE
        with translation.override(language), timezone.override(zone):
            request.LANGUAGE_CODE = translation.get_language() or settings.LANGUAGE_CODE
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", request.LANGUAGE_CODE)
            return response


class SecondFactorMiddleware(Middleware):
    """Stop sessions that have not given their second factor. Installed only if ``CONCORD_SECOND_FACTOR`` is on."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        factor = second_factor()
        try:
            response = factor.admit(request) if factor else None
        except DatabaseError as error:
            response = unavailable_response(request, error)
        return response or self.get_response(request)


def unavailable_response(request: HttpRequest, error: DatabaseError) -> HttpResponse:
    """Build the 503 response for an unusable database: a page, or for API paths an RFC 9457 problem with a code.

    :raises DatabaseError: the given error, if the state of the database did not cause it."""
    if not (reason := unavailable_reason(error)):
        raise error
    log.error("cannot use the database (%s): %s", reason, error)
    recheck()
    if not connection.in_atomic_block:
        # SQLite stays read-only on a connection that was opened while the file was read-only.
        connection.close()
    text = explain_refusal(DomainError(reason))
    response: HttpResponse
    if request.path.startswith(("/api/", "/evaluation/")):
        body = problem_body(UNAVAILABLE, {"detail": text, "code": reason})
        response = JsonResponse(body, status=UNAVAILABLE, content_type=PROBLEM_CONTENT_TYPE)
    else:
        context = {"text": text, "writing": request.method not in {"GET", "HEAD"}}
        response = HttpResponse(render_to_string("503.html", context), status=UNAVAILABLE)
    response.headers["Retry-After"] = "10"
    return response


class DatabaseMiddleware(Middleware):
    """Answer 503 instead of 500 if a view could not use the database."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the 503 response, or ``None`` for every other error."""
        if not isinstance(exception, DatabaseError) or not unavailable_reason(exception):
            return None
        return unavailable_response(request, exception)


class SessionMiddleware(sessions.SessionMiddleware):
    """Django's session middleware, which also answers 503 if the session cannot be saved."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> Any:
        try:
            return super().process_response(request, response)
        except DatabaseError as error:
            return unavailable_response(request, error)


class HealthMiddleware(Middleware):
    """Serve ``/healthz`` (alive, without touching the database) and ``/readyz`` (the database accepts writes).

    Stands first, so that probes work under any host name, without TLS and whatever else fails."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/healthz":
            return self._json_response({"alive": True})
        if request.path == "/readyz":
            issues = cached_issues()
            ready = not any(issue.serious for issue in issues)
            return self._json_response({"ready": ready, "problems": [issue.code for issue in issues]}, ready=ready)
        return self.get_response(request)

    def _json_response(self, body: dict[str, Any], *, ready: bool = True) -> HttpResponse:
        return JsonResponse(body, status=200 if ready else UNAVAILABLE, headers={"Cache-Control": "no-store"})


TOO_MANY_REQUESTS = 429


class RateLimitMiddleware(Middleware):
    """Answer 429 if a page hits a rate limit. REST has its own handler (``evaluation/rest/errors.py``)."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page, or ``None`` for every other error."""
        if not isinstance(exception, RateLimited):
            return None
        response = render(request, "429.html", {"text": explain_refusal(exception)}, status=TOO_MANY_REQUESTS)
        response.headers["Retry-After"] = str(exception.seconds)
        return response


class LoginReturnMiddleware(Middleware):
    """After a POST with an expired session, return to the form's page (the referrer) after login."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method != "POST" or not isinstance(response, HttpResponseRedirect):
            return response
        log_in = resolve_url(settings.LOGIN_URL)
        if urlsplit(response.url).path != log_in or request.path == log_in:
            return response
        return redirect_to_login(current_page(request))


def current_page(request: HttpRequest) -> str:
    """Return the path of the page in the browser: of the request, or of a form's referrer.

    Falls back to ``LOGIN_REDIRECT_URL`` if the referrer is not a page of this site."""
    if request.method in {"GET", "HEAD"}:
        return request.get_full_path()
    page = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        return resolve_url(settings.LOGIN_REDIRECT_URL)
    return urlsplit(page)._replace(scheme="", netloc="", fragment="").geturl()


NUL = "\0"


class StripNulMiddleware(Middleware):
    """Strip U+0000 from query strings and forms; PostgreSQL cannot store it. REST endpoints refuse it themselves."""

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *_: Any) -> None:
        """Clean ``request.GET`` and ``request.POST``. The CSRF check has already read them."""
        if getattr(view, "csrf_exempt", False):
            return
        request.GET = _strip_nul(request.GET)
        if request.method == "POST":
            request.POST = _strip_nul(request.POST)


def _strip_nul(data: QueryDict) -> Any:
    if not any(NUL in text for _, texts in data.lists() for text in texts if isinstance(text, str)):
        return data
    cleaned = data.copy()
    for name, texts in data.lists():
        cleaned.setlist(name, [text.replace(NUL, "") if isinstance(text, str) else text for text in texts])
    cleaned._mutable = False
    return cleaned
