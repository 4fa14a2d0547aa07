"""How a call over the network ended, and the reading of what came back with suspicion. Pure, no network."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any

_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")
MOST_TOKENS = 100_000_000
_EXCERPT = 4_000


class Outcome(StrEnum):
    """How one call ended. The value is also the reason code of the failed results it leads to."""

    OK = "ok"
    TIMEOUT = "timeout"  # one of the deadlines passed; the provider may bill it all the same
    CONNECTION = "connection"  # it broke, or there was none for another reason than the two below
    NAME_UNKNOWN = "name_unknown"  # no address to the host's name
    UNREACHED = "unreached"  # nobody listens there: the connection was refused
    TLS = "tls"  # the certificate does not hold
    BLOCKED = "blocked"  # the address is not allowed; nothing was sent
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    UNAUTHORISED = "unauthorised"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"  # path or model
    NO_CREDIT = "no_credit"
    BAD_REQUEST = "bad_request"
    REDIRECT = "redirect"  # refused, never followed
    TOO_LARGE = "too_large"
    WRONG_CONTENT = "wrong_content"  # not JSON, or not of the form that was asked for
    REFUSED = "refused"
    FILTERED = "filtered"
    TRUNCATED = "truncated"
    UNKNOWN_ENDING = "unknown_ending"  # the reply ended for a reason that is in no table, which is no success
    PARSE = "parse"  # the reply holds no verdict, or the provider says that the model wrote no valid JSON
    NOT_SENT = "not_sent"  # given by the ledger, never by a client: released before it was sent
    CACHED = "cached"  # likewise: answered by an earlier reply to the identical call


#: Nothing was sent: there was no connection.
NO_CONNECTION = frozenset({Outcome.CONNECTION, Outcome.NAME_UNKNOWN, Outcome.UNREACHED})
_BY_STATUS = {
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


def storable(text: str) -> str:
    """The text with NUL and lone surrogates, which databases refuse, replaced by U+FFFD."""
    return _NOT_STORABLE.sub("\ufffd", text)


def outcome_of_status(status: int) -> Outcome:
    """How a call ended whose response is not 200, by its status alone."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 400:
        return Outcome.REDIRECT
    return Outcome.SERVER_ERROR if status >= 500 else Outcome.BAD_REQUEST


def read_count(value: Any, most: int) -> int | None:
    """The count, or ``None`` where it is missing, no whole number, negative or more than it can be."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None


def excerpt(body: bytes) -> str:
    """The first part of a body that was not a completion, for the raw reply."""
    return storable(body[:_EXCERPT].decode("utf-8", "replace"))


def read_json(body: bytes) -> Any:
    """The value that a body holds; ``None`` where it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: nested deeper than any completion
        return None
