"""REST tokens: hashed, scoped, expiring."""

from __future__ import annotations

import hashlib

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from evaluation.accounts.sessions import TOKEN
from evaluation.models import ApiToken, User

REFUSED = "unknown, revoked or expired token"


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer …``. A ``read`` token may only use safe methods; every token ends with its date."""

    keyword = "Bearer"

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """The token's owner; ``None`` where the request carries no token.

        :raises AuthenticationFailed: for an unknown, expired or revoked token.
        :raises PermissionDenied: for a write with a read token.
        """
        parts = get_authorization_header(request).split()
        if len(parts) != 2 or parts[0].lower() != b"bearer":
            return None
        digest = hashlib.sha256(parts[1]).hexdigest()
        row = TOKEN.first(sha256=digest)
        if row is None:
            raise AuthenticationFailed(REFUSED)
        token, token.user = row
        if token.revoked_at is not None or token.expires_at <= timezone.now() or not token.user.is_active:
            raise AuthenticationFailed(REFUSED)
        if token.scope == "read" and request.method not in {"GET", "HEAD", "OPTIONS"}:
            raise PermissionDenied("this token may only read")
        # Read by evaluation.accounts.access: a token reaches its own project only, whatever else its owner may do.
        token.user.token_project_id = token.project_id
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Makes DRF answer 401 instead of 403 to a missing token."""
        return self.keyword
