"""Retry policy as a pure function, and parsing of ``Retry-After``."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from evaluation.network.outcomes import NO_CONNECTION, Outcome

MAX_ATTEMPTS = 5
# Each time-out may be billed.
MAX_TIMEOUTS = 2
MAX_REPAIRS = 1
# Attempts of one unit during an outage of the endpoint.
MAX_OUTAGE_ATTEMPTS = 20
BASE_SECONDS = 2.0
CAP_SECONDS = 60.0
# A unit with a longer wait is deferred, which frees the worker.
MAX_WORKER_WAIT_SECONDS = 20.0
MAX_RETRY_AFTER_SECONDS = 86_400.0
_MAX_HEADER_LENGTH = 100

_RETRYABLE = NO_CONNECTION | {Outcome.RATE_LIMITED, Outcome.OVERLOADED, Outcome.SERVER_ERROR}
# Outcomes that may succeed later without anyone's action.
TRANSIENT = _RETRYABLE | {Outcome.TIMEOUT}
REPAIRABLE = frozenset({Outcome.PARSE, Outcome.TRUNCATED})
NEEDS_ACTION = frozenset(
    {
        Outcome.UNAUTHORISED,
        Outcome.FORBIDDEN,
        Outcome.NOT_FOUND,
        Outcome.NO_CREDIT,
        Outcome.REDIRECT,
        Outcome.BLOCKED,
        Outcome.TLS,
    }
)


@dataclass(frozen=True, slots=True)
class Retry:
    """Call again after ``seconds``, at most 20; after ``parse`` and ``truncated`` with the repaired request."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Defer:
    """Release the unit for at least ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Make no further call; the reply is final. ``reason`` is the outcome's code."""

    reason: str


@dataclass(frozen=True, slots=True)
class NeedsAction:
    """Pause the run until somebody acts, since no call can succeed before. ``reason`` is the outcome's code."""

    reason: str


Decision = Retry | Defer | GiveUp | NeedsAction


def decide(
    outcome: Outcome,
    attempt_number: int,
    retry_after: float | None,
    rng: random.Random,
    *,
    earlier: Sequence[Outcome] | None = None,
    needs_action: Collection[Outcome] = NEEDS_ACTION,
    endpoint_down: bool = False,
) -> Decision:
    """Decide what follows an attempt that ended with ``outcome``.

    :param attempt_number: number of the unit's attempt, from 1; at most five are made.
    :param retry_after: seconds that the server asked to wait, if any; above 20 the unit is deferred.
    :param earlier: outcomes of the unit's previous attempts. If ``None`` and this one is a timeout (or repairable), all
    previous ones count as timeouts (repairs).
    :param needs_action: outcomes after which no call can succeed until somebody acts.
    :param endpoint_down: the endpoint has an outage, so a transient fault is not the call's: the unit is released, up
    to its twentieth attempt.

    Waits have full jitter: uniform between 0 and 2, 4, 8, ... seconds, at most 60. A wait that the server asked for is
    extended by up to a quarter, at most one second, so that workers do not return simultaneously."""
    if outcome in needs_action:
        return NeedsAction(str(outcome))
    if endpoint_down and outcome in TRANSIENT and attempt_number < MAX_OUTAGE_ATTEMPTS:
        return Defer(retry_after or 0.0)
    if attempt_number >= MAX_ATTEMPTS or not _may_repeat(outcome, attempt_number, earlier):
        return GiveUp(str(outcome))
    if outcome in REPAIRABLE:
        return Retry(0.0)
    if retry_after is not None:
        seconds = retry_after + rng.uniform(0.0, min(1.0, retry_after / 4))
    else:
        seconds = rng.uniform(0.0, min(CAP_SECONDS, BASE_SECONDS * 2 ** (attempt_number - 1)))
    return Defer(seconds) if seconds > MAX_WORKER_WAIT_SECONDS else Retry(seconds)


def _may_repeat(outcome: Outcome, attempt_number: int, earlier: Sequence[Outcome] | None) -> bool:
    if outcome is Outcome.TIMEOUT:
        timeouts = (
            attempt_number
            if earlier is None
            else 1 + sum(outcome_before is Outcome.TIMEOUT for outcome_before in earlier)
        )
        return timeouts < MAX_TIMEOUTS
    if outcome in REPAIRABLE:
        repairs = (
            attempt_number - 1 if earlier is None else sum(outcome_before in REPAIRABLE for outcome_before in earlier)
        )
        return repairs < MAX_REPAIRS
    return outcome in _RETRYABLE


_UNITS = {
    "ms": 0.001, "msec": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "": 1.0, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
}  # fmt: skip
_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
_DURATION = re.compile(rf"{_NUMBER}|{_NUMBER}[ ]?[a-z]+(?:(?:,?[ ])?{_NUMBER}[ ]?[a-z]+)*")
_DURATION_PART = re.compile(rf"({_NUMBER})[ ]?([a-z]*)")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*", re.ASCII)


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Wait that the response headers ask for, in seconds, at most a day.

    Accepts ``retry-after-ms``, and ``Retry-After`` as seconds, as a duration (``45s``, ``1m30s``, ``500 ms``) or as a
    date. A past date is 0; ``None`` if missing or invalid. ``now`` is an aware datetime."""
    milliseconds = _parse_duration(headers.get("retry-after-ms", ""), unit=0.001)
    if milliseconds is not None:
        return min(milliseconds, MAX_RETRY_AFTER_SECONDS)
    text = headers.get("retry-after", "")
    seconds = _parse_duration(text)
    if seconds is None:
        seconds = _seconds_until_date(text.strip(), now)
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER_SECONDS)


def _parse_duration(text: str, unit: float = 1.0) -> float | None:
    """Parse a duration in seconds; ``unit`` is the unit of a bare number."""
    text = text.strip().lower()
    if not text or len(text) > _MAX_HEADER_LENGTH or not _DURATION.fullmatch(text):
        return None
    parts = _DURATION_PART.findall(text)
    if any(name not in _UNITS for _, name in parts):
        return None
    return sum(float(number) * (_UNITS[name] if name else unit) for number, name in parts)


def _seconds_until_date(text: str, now: datetime) -> float | None:
    try:
        iso = _ISO_DATE.fullmatch(text)
        moment = datetime.fromisoformat(text) if iso else parsedate_to_datetime(text)
    # The date parser raises all three errors.
    except (ValueError, TypeError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
