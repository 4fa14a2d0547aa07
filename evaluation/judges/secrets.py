"""Keys of endpoints, and the encryption of what is kept secret in the database.

Secrets at rest are encrypted under the site's secret with AES-256-GCM (NIST SP 800-38D) and a random 96-bit nonce; the
key of the cipher comes from the secret by HKDF-SHA256 (RFC 5869). The origin is associated data: a sealed key copied to
another origin does not open.
"""

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

from evaluation.core.errors import Refused
from evaluation.models import Endpoint
from evaluation.network.origins import Origin, origin_of

_VERSION = "1"
_NONCE_BYTES = 12
_PURPOSE = b"concord: keys of endpoints"


def seal(key: str, *, origin: Origin | str, secret: str) -> str:
    """The key as text that only this secret opens, and only for this origin; or any text, for what it is about."""
    nonce = os.urandom(_NONCE_BYTES)
    sealed = nonce + _cipher(secret).encrypt(nonce, key.encode(), str(origin).encode())
    return f"{_VERSION}.{base64.urlsafe_b64encode(sealed).decode()}"


def unseal(sealed: str, *, origin: Origin | str, secrets: Sequence[str]) -> str:
    """The key, by the first of the secrets that opens it: the site's own, then those it used before.

    :raises Refused: ``key_unreadable`` for another origin, another secret or damaged text.
    """
    version, _, text = sealed.partition(".")
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise Refused("key_unreadable") from error
    if version == _VERSION and len(raw) > _NONCE_BYTES:
        for secret in secrets:
            try:
                return _cipher(secret).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], str(origin).encode()).decode()
            except InvalidTag:  # not this secret, or not this origin: the next secret may open it
                continue
    raise Refused("key_unreadable")


def _cipher(secret: str) -> AESGCM:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret.encode())
    return AESGCM(derived)


_KEY_VARIABLE = re.compile(r"CONCORD_KEY_[A-Z0-9_]{1,80}")


def may_hold_key(variable: str) -> bool:
    """Whether an endpoint may name this environment variable as its key, or names none. Of any other, whoever enters
    endpoints could have the signing key or the database's password sent to a server whose traffic they read."""
    return not variable or bool(_KEY_VARIABLE.fullmatch(variable))


def key_of(endpoint: Endpoint) -> str:
    """What is sent as the bearer token; empty where the endpoint wants none. A stored key comes before a named one.

    :raises Refused: ``key_unreadable`` where the stored key was sealed under another secret or for another origin,
        ``key_missing`` where the environment variable that holds it is empty, ``key_name`` where it is none for keys.
    """
    if endpoint.sealed_key:
        secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
        return unseal(endpoint.sealed_key, origin=origin_of(endpoint.base_url), secrets=secrets)
    if not may_hold_key(endpoint.key_env):
        raise Refused("key_name", variable=endpoint.key_env)
    key = os.environ.get(endpoint.key_env, "") if endpoint.key_env else ""
    if endpoint.key_env and not key:
        raise Refused("key_missing", variable=endpoint.key_env)
    return key


def store_key(endpoint: Endpoint, key: str) -> None:
    """Seal the key for the endpoint's present origin, or forget the stored one where it is empty. Saving is the
    caller's."""
    origin = origin_of(endpoint.base_url)
    endpoint.sealed_key = seal(key, origin=origin, secret=settings.SECRET_KEY) if key else ""
