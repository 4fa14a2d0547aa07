"""What follows a failed call: the whole retry policy as a pure function, and the reading of ``Retry-After``."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from evaluation.network.outcomes import NO_CONNECTION, Outcome

MOST_TRIES = 5
MOST_TIMEOUTS = 2  # each may be billed
MOST_REPAIRS = 1
MOST_FAULTS = 20  # of calls for the same, where nobody else was answered in between either
BASE_SECONDS = 2.0
CAP_SECONDS = 60.0
LONGEST_WAIT_IN_WORKER = 20.0  # beyond it the unit is deferred and the worker freed
LONGEST_RETRY_AFTER = 86_400.0
_LONGEST_HEADER = 100

_AGAIN = NO_CONNECTION | {Outcome.RATE_LIMITED, Outcome.OVERLOADED, Outcome.SERVER_ERROR}
PASSING = _AGAIN | {Outcome.TIMEOUT}  # what ended so may go well later without anybody's doing
REPAIRABLE = frozenset({Outcome.PARSE, Outcome.TRUNCATED})
FOR_A_PERSON = frozenset(
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
    """Give the unit back, not to be taken before ``seconds`` have passed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further call: the reply stands as it is. ``reason`` is the outcome's code."""

    reason: str


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """No call of this run can succeed before somebody acts; the run pauses. ``reason`` is the outcome's code."""

    reason: str


Decision = Retry | Defer | GiveUp | NeedsPerson


def decide(
    outcome: Outcome,
    attempt_number: int,
    retry_after: float | None,
    rng: random.Random,
    *,
    earlier: Sequence[Outcome] | None = None,
    for_a_person: Collection[Outcome] = FOR_A_PERSON,
    down: bool = False,
) -> Decision:
    """What follows the attempt that ended with ``outcome``.

    :param attempt_number: the number of that attempt of the unit, from 1; at most five are made.
    :param retry_after: the seconds the server asked to wait, if it did; obeyed, and deferred when above 20.
    :param earlier: outcomes of the unit's attempts before this one. Without them every earlier attempt counts as a
        timeout (a repair) when this one is (asks for) one.
    :param for_a_person: outcomes after which no call can succeed before somebody acts.
    :param down: nobody is answered at present, so that a fault that passes tells nothing about this call: it is given
        back, unless it was among the calls that found that out twenty times.

    Waits have full jitter: uniform between 0 and 2, 4, 8, ... seconds, at most 60. A wait the server asked for
    gets up to a quarter, at most a second, on top, so that workers do not come back at the same moment.
    """
    if outcome in for_a_person:
        return NeedsPerson(str(outcome))
    if down and outcome in PASSING and attempt_number < MOST_FAULTS:
        return Defer(retry_after or 0.0)
    if attempt_number >= MOST_TRIES or not _may_repeat(outcome, attempt_number, earlier):
        return GiveUp(str(outcome))
    if outcome in REPAIRABLE:
        return Retry(0.0)
    if retry_after is not None:
        seconds = retry_after + rng.uniform(0.0, min(1.0, retry_after / 4))
    else:
        seconds = rng.uniform(0.0, min(CAP_SECONDS, BASE_SECONDS * 2 ** (attempt_number - 1)))
    return Defer(seconds) if seconds > LONGEST_WAIT_IN_WORKER else Retry(seconds)


def _may_repeat(outcome: Outcome, attempt_number: int, earlier: Sequence[Outcome] | None) -> bool:
    if outcome is Outcome.TIMEOUT:
        alike = attempt_number if earlier is None else 1 + sum(o is Outcome.TIMEOUT for o in earlier)
        return alike < MOST_TIMEOUTS
    if outcome in REPAIRABLE:
        repairs = attempt_number - 1 if earlier is None else sum(o in REPAIRABLE for o in earlier)
        return repairs < MOST_REPAIRS
    return outcome in _AGAIN


_UNITS = {
    "ms": 0.001, "msec": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "": 1.0, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
}  # fmt: skip
_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
_DURATION = re.compile(rf"{_NUMBER}|{_NUMBER}[ ]?[a-z]+(?:(?:,?[ ])?{_NUMBER}[ ]?[a-z]+)*")
_PIECE = re.compile(rf"({_NUMBER})[ ]?([a-z]*)")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*", re.ASCII)


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait that a response's headers ask for: ``retry-after-ms``, or ``Retry-After`` as seconds, as a duration with
    units (``45s``, ``1m30s``, ``500 ms``) or as a date.

    ``None`` for none and for garbage (negative, an unknown unit, no date); a date that has passed is 0; at most a day.
    ``now`` is aware.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""), unit=0.001)
    if milliseconds is not None:
        return min(milliseconds, LONGEST_RETRY_AFTER)
    text = headers.get("retry-after", "")
    seconds = _seconds(text)
    if seconds is None:
        seconds = _until(text.strip(), now)
    return None if seconds is None else min(seconds, LONGEST_RETRY_AFTER)


def _seconds(text: str, unit: float = 1.0) -> float | None:
    """A duration; ``unit`` is that of a bare number, in seconds."""
    text = text.strip().lower()
    if not text or len(text) > _LONGEST_HEADER or not _DURATION.fullmatch(text):
        return None
    pieces = _PIECE.findall(text)
    if any(name not in _UNITS for _, name in pieces):
        return None
    return sum(float(number) * (_UNITS[name] if name else unit) for number, name in pieces)


def _until(text: str, now: datetime) -> float | None:
    try:
        iso = _ISO_DATE.fullmatch(text)
        moment = datetime.fromisoformat(text) if iso else parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):  # not a date; the parser raises all three
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
