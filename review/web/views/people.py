"""The logged-in person of a request, for views behind ``login_required``."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from evaluation.models import User


def person(request: HttpRequest) -> User:
    """The user of a request that only logged-in people make.

    :raises PermissionDenied: for anybody else.
    """
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user
