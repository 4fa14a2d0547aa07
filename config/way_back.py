"""The way back from a form: to the page that it was on, since what it was sent to cannot be opened."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme


class WayBackMiddleware:
    """Has somebody whose session ended before they sent a form come back to the page of the form, or home."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

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
