"""What goes around every request: whether the site is alive, who comes by which proxy, that nothing is kept on the way,
the person's language, who has to give a code first, what is said while the database cannot be used or somebody asked
too often, the way back to a form's page after logging in, and texts without U+0000, which PostgreSQL does not store."""

import logging
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
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

from evaluation.core.errors import Refused, TooOften
from evaluation.extensions import second_factor
from evaluation.messages.sentences import explain_refusal
from evaluation.rest.errors import PROBLEM, problem
from evaluation.worker.database import unavailable
from evaluation.worker.health import readiness
from review.evidence.seals import read_as

log = logging.getLogger("concord.web")
UNAVAILABLE = 503


class Middleware:
    """Passes a request on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The answer to the request."""
        return self.get_response(request)


class ReaderMiddleware(Middleware):
    """Has sealed labels read as the person of the request, whom a REST token names only later."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with read_as(lambda: request.user):
            return self.get_response(request)


class ProxyMiddleware(Middleware):
    """Takes the client's address and scheme from the headers of a trusted proxy, and believes nobody else's.

    The address is the last one in ``X-Forwarded-For`` that is no trusted proxy: what stands before it is hearsay.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _is_proxy(request.META.get("REMOTE_ADDR", "")):
            came_by = [one.strip() for one in request.headers.get("X-Forwarded-For", "").split(",")]
            client = next((one for one in reversed(came_by) if not _is_proxy(one)), "")
            if _address(client):
                request.META["REMOTE_ADDR"] = client
            scheme = request.headers.get("X-Forwarded-Proto", "")
            if scheme in {"http", "https"}:
                request.META["wsgi.url_scheme"] = scheme
        return self.get_response(request)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_proxy(text: str) -> bool:
    address = _address(text)
    return address is not None and any(address in network for network in settings.CONCORD_TRUSTED_PROXIES)


class NoStoreMiddleware(Middleware):
    """Has neither browsers nor proxies keep what is made for one person; static files are answered before it."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class LanguageMiddleware(Middleware):
    """Activates the language and time zone of the person: their choice, else that of the cookie set by the language
    switch, else the browser's."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        known = dict(settings.LANGUAGES)
        try:
            own = getattr(request.user, "language", "")
        except DatabaseError as error:
            with translation.override(translation.get_language_from_request(request)):
                return unavailable_answer(request, error)
        chosen = own or request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
        language = chosen if chosen in known else translation.get_language_from_request(request)
        zone = getattr(request.user, "time_zone", "") or settings.TIME_ZONE
        with translation.override(language), timezone.override(zone):
            request.LANGUAGE_CODE = translation.get_language() or settings.LANGUAGE_CODE
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", request.LANGUAGE_CODE)
            return response


class GateMiddleware(Middleware):
    """Lets no session on that has not given its second factor; in the settings only where there is one."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        factor = second_factor()
        try:
            answer = factor.admit(request) if factor else None
        except DatabaseError as error:
            answer = unavailable_answer(request, error)
        return answer or self.get_response(request)


def unavailable_answer(request: HttpRequest, error: DatabaseError) -> HttpResponse:
    """503 with what is the matter with the database, as a page or, for programs, a problem of RFC 9457 with a code.

    :raises DatabaseError: the error itself, where it is no matter of the database's state.
    """
    if not (why := unavailable(error)):
        raise error
    log.error("the database cannot be used, %s: %s", why, error)
    if not connection.in_atomic_block:
        connection.close()  # SQLite goes on only reading over one that it opened while the file was so
    text = explain_refusal(Refused(why))
    response: HttpResponse
    if request.path.startswith(("/api/", "/evaluation/")):
        said = problem(UNAVAILABLE, {"detail": text, "code": why})
        response = JsonResponse(said, status=UNAVAILABLE, content_type=PROBLEM)
    else:
        page = {"text": text, "writing": request.method not in {"GET", "HEAD"}}
        response = HttpResponse(render_to_string("503.html", page), status=UNAVAILABLE)
    response.headers["Retry-After"] = "10"
    return response


class DatabaseMiddleware(Middleware):
    """Answers 503 with what is the matter, in place of 500, where a view could not use the database."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The answer; ``None`` for every other error."""
        if not isinstance(exception, DatabaseError) or not unavailable(exception):
            return None
        return unavailable_answer(request, exception)


class SessionMiddleware(sessions.SessionMiddleware):
    """Django's own, which writes what a view changed after the view."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> Any:
        """The response, or what is the matter with the database."""
        try:
            return super().process_response(request, response)
        except DatabaseError as error:
            return unavailable_answer(request, error)


class HealthMiddleware(Middleware):
    """``/healthz`` (alive: no database is touched) and ``/readyz`` (ready for people: the database takes writing), for
    whoever asks, by any name of the host and without TLS, and before anything else can go wrong."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/healthz":
            return self._said({"alive": True})
        if request.path == "/readyz":
            found = readiness()
            ready = not any(problem.serious for problem in found)
            return self._said({"ready": ready, "problems": [problem.code for problem in found]}, ready=ready)
        return self.get_response(request)

    def _said(self, body: dict[str, Any], *, ready: bool = True) -> HttpResponse:
        return JsonResponse(body, status=200 if ready else UNAVAILABLE, headers={"Cache-Control": "no-store"})


TOO_MANY_REQUESTS = 429


class TooOftenMiddleware(Middleware):
    """Answers 429 where a page refuses for now; REST has its own handler (``evaluation/rest/errors.py``)."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The page; ``None`` for every other error."""
        if not isinstance(exception, TooOften):
            return None
        response = render(request, "429.html", {"text": explain_refusal(exception)}, status=TOO_MANY_REQUESTS)
        response.headers["Retry-After"] = str(exception.seconds)
        return response


class WayBackMiddleware(Middleware):
    """Has somebody whose session ended before they sent a form come back to the page of the form, or home."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method != "POST" or not isinstance(response, HttpResponseRedirect):
            return response
        log_in = resolve_url(settings.LOGIN_URL)
        if urlsplit(response.url).path != log_in or request.path == log_in:
            return response
        return redirect_to_login(page_of(request))


def page_of(request: HttpRequest) -> str:
    """The page somebody looks at: the one that was asked for or, behind a form, the one that the browser says the form
    was on; the page after logging in where that is none of ours."""
    if request.method in {"GET", "HEAD"}:
        return request.get_full_path()
    page = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        return resolve_url(settings.LOGIN_REDIRECT_URL)
    return urlsplit(page)._replace(scheme="", netloc="", fragment="").geturl()


NUL = "\0"


class WithoutNulMiddleware(Middleware):
    """Takes the character out before a view reads its form. The REST endpoints refuse it by themselves."""

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
