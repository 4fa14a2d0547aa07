"""Keys at rest: encrypted under the site's secret and bound to the origin they were given for.

AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce; the key of the cipher comes from the secret by HKDF-SHA256
(RFC 5869). The origin is associated data: a sealed key copied to another origin does not open.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from evaluation.core.errors import Refused
from evaluation.judging.origins import Origin

_VERSION = "1"
_NONCE_BYTES = 12
_PURPOSE = b"concord: keys of endpoints"


def seal(key: str, *, origin: Origin, secret: str) -> str:
    """The key as text that only this secret opens, and only for this origin."""
    nonce = os.urandom(_NONCE_BYTES)
    sealed = nonce + _cipher(secret).encrypt(nonce, key.encode(), str(origin).encode())
    return f"{_VERSION}.{base64.urlsafe_b64encode(sealed).decode()}"


def unseal(sealed: str, *, origin: Origin, secrets: Sequence[str]) -> str:
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
