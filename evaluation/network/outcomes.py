"""Outcomes of network calls, and defensive parsing of responses. Pure, no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
MAX_TOKENS = 100_000_000
_MAX_EXCERPT = 4_000
_MIN_KEY_CHARACTERS = 8


class Outcome(StrEnum):
    """Outcome of one call. The value is also the reason code of resulting failures."""

    OK = "ok"
    # A deadline passed; the provider may still bill the call.
    TIMEOUT = "timeout"
    # The connection broke, or failed for another reason than the next two.
    CONNECTION = "connection"
    # The host name has no address.
    NAME_UNKNOWN = "name_unknown"
    # The connection was refused.
    UNREACHED = "unreached"
    # The certificate is invalid.
    TLS = "tls"
    # The address is not allowed; nothing was sent.
    BLOCKED = "blocked"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    UNAUTHORISED = "unauthorised"
    FORBIDDEN = "forbidden"
    # The path or the model does not exist.
    NOT_FOUND = "not_found"
    NO_CREDIT = "no_credit"
    BAD_REQUEST = "bad_request"
    # Redirects are refused.
    REDIRECT = "redirect"
    TOO_LARGE = "too_large"
    # The response is not JSON or not of the requested form.
    WRONG_CONTENT = "wrong_content"
    REFUSED = "refused"
    FILTERED = "filtered"
    TRUNCATED = "truncated"
    # The finish reason is in no table, which is not a success.
    UNKNOWN_ENDING = "unknown_ending"
    # The reply has no verdict, or the provider reports that the model wrote invalid JSON.
    PARSE = "parse"
    # Set by the ledger, never by a client: released before it was sent.
    NOT_SENT = "not_sent"
    # Set by the ledger: answered by an earlier reply to the identical call.
    CACHED = "cached"


#: Outcomes without a connection: nothing was sent.
NO_CONNECTION = frozenset({Outcome.CONNECTION, Outcome.NAME_UNKNOWN, Outcome.UNREACHED})
_OUTCOME_BY_STATUS = {
    401: Outcome.UNAUTHORISED,
    402: Outcome.NO_CREDIT,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    408: Outcome.TIMEOUT,
    429: Outcome.RATE_LIMITED,
    503: Outcome.OVERLOADED,
    504: Outcome.TIMEOUT,
    529: Outcome.OVERLOADED,
}


def replace_unstorable(text: str) -> str:
    """Replace NUL and lone surrogates, which databases refuse, with U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def status_outcome(status: int) -> Outcome:
    """Outcome of a response other than 200, by its status alone."""
    if status in _OUTCOME_BY_STATUS:
        return _OUTCOME_BY_STATUS[status]
    if 300 <= status < 400:
        return Outcome.REDIRECT
    return Outcome.SERVER_ERROR if status >= 500 else Outcome.BAD_REQUEST


def read_count(value: Any, maximum: int) -> int | None:
    """Return a whole number from 0 to ``maximum``, or ``None`` for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= maximum else None


def without_secrets(body: bytes, secrets: Iterable[str]) -> bytes:
    """Remove keys from the body of a failed call, because some servers echo them and people read the body.

    Do this before :func:`excerpt`, which could cut a key."""
    for secret in secrets:
        if len(secret) >= _MIN_KEY_CHARACTERS:
            body = body.replace(secret.encode(), "…".encode())
    return body


def excerpt(body: bytes) -> str:
    """Beginning of a body that is not a completion, to store as the raw reply."""
    return replace_unstorable(body[:_MAX_EXCERPT].decode("utf-8", "replace"))


def read_json(body: bytes) -> Any:
    """Parse a JSON body; ``None`` if it is invalid."""
    try:
        return json.loads(body)
    # A RecursionError means deeper nesting than any completion has.
    except (ValueError, RecursionError):
        return None
