"""Endpoint keys, and encryption of secrets in the database.

Secrets are encrypted with AES-256-GCM (NIST SP 800-38D) and a random 96-bit nonce; the cipher key is derived from the
site's secret by HKDF-SHA256 (RFC 5869). The origin is associated data: a sealed key copied to another origin cannot be
opened."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from evaluation.core.errors import DomainError
from evaluation.models import Endpoint
from evaluation.network.origins import Origin, parse_origin

_VERSION = "1"
_NONCE_BYTES = 12
_PURPOSE = b"concord: keys of endpoints"


def seal(key: str, *, origin: Origin | str, secret: str) -> str:
    """Encrypt a key so that only this secret opens it, and only for this origin (or other context text)."""
    nonce = os.urandom(_NONCE_BYTES)
    sealed = nonce + _cipher(secret).encrypt(nonce, key.encode(), str(origin).encode())
    return f"{_VERSION}.{base64.urlsafe_b64encode(sealed).decode()}"


def unseal(sealed: str, *, origin: Origin | str, secrets: Sequence[str]) -> str:
    """Decrypt a key by the first matching secret: the site's own, then its fallbacks.

    :raises DomainError: ``key_unreadable`` for another origin, another secret or damaged text."""
    version, _, text = sealed.partition(".")
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise DomainError("key_unreadable") from error
    if version == _VERSION and len(raw) > _NONCE_BYTES:
        for secret in secrets:
            try:
                return _cipher(secret).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], str(origin).encode()).decode()
            # Wrong secret or origin; another secret may open it.
            except InvalidTag:
                continue
    raise DomainError("key_unreadable")


def _cipher(secret: str) -> AESGCM:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret.encode())
    return AESGCM(derived)


_KEY_VARIABLE = re.compile(r"CONCORD_KEY_[A-Z0-9_]{1,80}")


def may_hold_key(variable: str) -> bool:
    """Return whether an endpoint may name this environment variable (or none) as its key. Other variables are refused,
    because an endpoint could otherwise send the signing key or the database password to a foreign server."""
    return not variable or bool(_KEY_VARIABLE.fullmatch(variable))


def key_of(endpoint: Endpoint) -> str:
    """Bearer token of an endpoint; empty if it needs none. A stored key takes precedence over a variable.

    :raises DomainError: ``key_unreadable`` if the stored key was sealed under another secret or for another origin,
        ``key_missing`` if the environment variable is empty, ``key_name`` if the variable may not hold keys."""
    if endpoint.sealed_key:
        secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
        return unseal(endpoint.sealed_key, origin=parse_origin(endpoint.base_url), secrets=secrets)
    if not may_hold_key(endpoint.key_env):
        raise DomainError("key_name", variable=endpoint.key_env)
    key = os.environ.get(endpoint.key_env, "") if endpoint.key_env else ""
    if endpoint.key_env and not key:
        raise DomainError("key_missing", variable=endpoint.key_env)
    return key


def store_key(endpoint: Endpoint, key: str) -> None:
    """Seal the key for the endpoint's current origin, or clear the stored one if empty. Does not save."""
    origin = parse_origin(endpoint.base_url)
    endpoint.sealed_key = seal(key, origin=origin, secret=settings.SECRET_KEY) if key else ""
