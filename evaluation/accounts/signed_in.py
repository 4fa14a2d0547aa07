"""Views for people who are logged in: whose request it is, and which methods a view takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluation.models import User

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def person(request: HttpRequest) -> User:
    """The user of a request that only logged-in people make.

    :raises PermissionDenied: for anybody else.
    """
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def signed_in_get(view: View) -> View:
    """A view that only shows: GET and HEAD."""
    return login_required(require_safe(view))


def signed_in_post(view: View) -> View:
    """A view that only does: POST."""
    return login_required(require_POST(view))


def signed_in_form(view: View) -> View:
    """A view that shows a form and takes it: GET, HEAD and POST."""
    return login_required(require_http_methods(["GET", "HEAD", "POST"])(view))
