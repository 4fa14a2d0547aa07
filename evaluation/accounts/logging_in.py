"""Logging in by name and password, with a limit on failed attempts."""

from __future__ import annotations

import math
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils import timezone

from evaluation.accounts.attempts import failed, succeeded, wait_until
from evaluation.accounts.statements import USER
from evaluation.models import User


class LimitedBackend(ModelBackend):
    """Django's own check of a password, refused without a look while too many attempts have failed.

    It stands behind every door: our log-in page, the back office and whatever else calls ``authenticate``.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """The person; ``None`` for a wrong name or password.

        :raises PermissionDenied: while the name has to wait.
        """
        if username is None or password is None:
            return None
        address = address_of(request)
        if wait_until(username, address):
            raise PermissionDenied
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None:
            failed(username, address)
        else:
            succeeded(username, address)
        return user

    def get_user(self, user_id: int) -> User | None:
        """The person of a session, who may still log in."""
        row = USER.first(user=user_id)
        return row[0] if row and self.user_can_authenticate(row[0]) else None


def address_of(request: HttpRequest | None) -> str:
    """Where a request comes from, as the web server says; a forwarded header is not believed."""
    return "" if request is None else str(request.META.get("REMOTE_ADDR", ""))


def minutes_to_wait(username: str, request: HttpRequest | None) -> int:
    """How many minutes until the name may be tried again from here; 0 for now."""
    until = wait_until(username, address_of(request))
    return 0 if until is None else max(1, math.ceil((until - timezone.now()).total_seconds() / 60))
