"""Making a REST token: the text is shown once, only its SHA-256 is kept."""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "concord_"


def new_token() -> tuple[str, str]:
    """A token of 256 random bits, and its SHA-256 as the table keeps it."""
    text = PREFIX + secrets.token_urlsafe(32)
    return text, hashlib.sha256(text.encode()).hexdigest()
