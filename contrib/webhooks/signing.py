"""Secrets and signatures of Standard Webhooks (https://www.standardwebhooks.com), version 1.

The library ``standardwebhooks`` verifies them in the tests. Signing is one HMAC, so the product does not install it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def signed_headers(secret: str, message_id: str, timestamp: int, body: str) -> dict[str, str]:
    """Headers with id, time (seconds since 1970) and signature: HMAC-SHA256 over the three parts, joined by dots."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.new(key, f"{message_id}.{timestamp}.{body}".encode(), hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
