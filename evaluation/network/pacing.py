"""The pace of one worker at one endpoint: how many calls may be out, and how fast. Concurrency learns from complaints,
rates are per minute, and the endpoint may want a rest. Pure: times are given by the caller.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Protocol

from evaluation.network.outcomes import NO_CONNECTION, Outcome
from evaluation.network.retrying import PASSING

_CUT = 0.5


class Paced(Protocol):
    """A call, by how many ``characters`` it sends: what tokens are estimated from until replies tell."""

    @property
    def characters(self) -> int: ...


class Heard(Protocol):
    """How a call ended; tokens are ``None`` where that is not known, ``retry_after`` is in seconds from the reply."""

    @property
    def outcome(self) -> Outcome: ...
    @property
    def retry_after(self) -> float | None: ...
    @property
    def tokens_in(self) -> int | None: ...
    @property
    def tokens_out(self) -> int | None: ...


BURST_SECONDS = 1.0


class AdaptiveLimit:
    """Concurrent calls: one more for every round without a complaint, half as many after one (additive increase,
    multiplicative decrease), between 1 and ``most``; none where ``most`` is 0. Begins at ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._cut_at = float("-inf")

    @property
    def now(self) -> int:
        """How many calls may be out."""
        return min(self._most, max(1, int(self._limit)))

    @property
    def most(self) -> int:
        """The upper end; raising it raises a limit that was never cut."""
        return self._most

    @most.setter
    def most(self, most: int) -> None:
        if self._limit >= self._most:
            self._limit = float(most)
        self._most = most

    def succeeded(self) -> None:
        """A call came back well: a whole round of them makes one more."""
        self._limit = min(float(self._most), self._limit + 1.0 / max(1.0, self._limit))

    def complained(self, sent_at: float, now: float) -> bool:
        """The server is overloaded. What was sent before the last cut tells nothing new; whether the limit was cut."""
        if sent_at < self._cut_at:
            return False
        self._limit = max(1.0, min(self._limit, self._most) * _CUT)
        self._cut_at = now
        return True


class Rate:
    """So many per minute, evenly: at most a second's worth (or one) at once. Without a number there is no limit."""

    def __init__(self, per_minute: float | None, now: float) -> None:
        self._per_minute = per_minute
        self._level = self._burst
        self._at = now

    @property
    def _burst(self) -> float:
        return max(1.0, (self._per_minute or 0.0) / 60.0 * BURST_SECONDS)

    def set(self, per_minute: float | None, now: float) -> None:
        """Another rate from now on; what was used stays used."""
        self._fill(now)
        self._per_minute = per_minute
        self._level = min(self._level, self._burst)

    def wait(self, count: float, now: float) -> float:
        """Seconds until so many may be used; more than the burst at once when the burst is there."""
        if self._per_minute is None:
            return 0.0
        if self._per_minute <= 0:
            return 60.0
        self._fill(now)
        return max(0.0, min(count, self._burst) - self._level) * 60.0 / self._per_minute

    def use(self, count: float) -> None:
        """Use so many; negative gives back. What was used beyond the level has to be waited for."""
        self._level = min(self._burst, self._level - count)

    def _fill(self, now: float) -> None:
        self._level = min(self._burst, self._level + (now - self._at) * (self._per_minute or 0.0) / 60.0)
        self._at = now


_COMPLAINTS = frozenset({Outcome.RATE_LIMITED, Outcome.OVERLOADED})
_NOT_COUNTED = _COMPLAINTS | NO_CONNECTION | {Outcome.BLOCKED, Outcome.TLS, Outcome.UNAUTHORISED}
_SMOOTHING = 0.1
_TOKENS_PER_CHARACTER = 0.5  # until the first replies tell
SPREAD_SECONDS = 0.003  # between the first calls: those sent together come back together, and then wait for each other


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one worker may use of an endpoint: calls at a time, requests and tokens per minute (``None``: no limit)."""

    calls: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


FAULTS_IN_A_ROW = 5
FIRST_REST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Notice:
    """What a call tells about the whole endpoint: a ``fault`` of it, or none where it answers. ``sent_at`` is when the
    call was sent, in monotonic seconds."""

    fault: Outcome | None
    sent_at: float


class Pulse:
    """Whether an endpoint answers, by how calls to it ended. It does not after five faults in a row that pass; where it
    is known to be down already, the next call tells by itself."""

    def __init__(self) -> None:
        self.down = False
        self.noticed: Notice | None = None  # what the others have to hear
        self._faults = 0

    def heard(self, outcome: Outcome, sent_at: float) -> bool:
        """Whether it is down by how a call ended."""
        self._faults = self._faults + 1 if outcome in PASSING else 0
        down = self._faults >= (1 if self.down else FAULTS_IN_A_ROW)
        if down or self.down:
            self.noticed = Notice(outcome if down else None, sent_at)
        return down

    def notice(self) -> Notice | None:
        """What was noticed since this was asked last."""
        found, self.noticed = self.noticed, None
        return found


class Pace:
    """When the next call may be sent. Times are monotonic seconds, given by the caller."""

    def __init__(self, allowance: Allowance, now: float = 0.0) -> None:
        self.limit = AdaptiveLimit(allowance.calls)
        self._requests = Rate(allowance.requests_per_minute, now)
        self._tokens = Rate(allowance.tokens_per_minute, now)
        self._counts_tokens = allowance.tokens_per_minute is not None
        self._per_character = _TOKENS_PER_CHARACTER
        self.rests_until = float("-inf")
        self.pulse = Pulse()
        self._to_spread = allowance.calls
        self._spread_at = float("-inf")

    def allow(self, allowance: Allowance, now: float) -> None:
        """Another allowance from now on."""
        self.limit.most = allowance.calls
        self._requests.set(allowance.requests_per_minute, now)
        self._tokens.set(allowance.tokens_per_minute, now)
        self._counts_tokens = allowance.tokens_per_minute is not None

    def rest(self, until: float) -> None:
        """Send nothing before ``until``; a rest is never cut short."""
        self.rests_until = max(self.rests_until, until)
        self._to_spread = self.limit.most

    def wait(self, call: Paced, now: float) -> float:
        """Seconds until the call may be sent, as far as rates, rest and the spread of the first calls go."""
        rates = max(self._requests.wait(1, now), self._tokens.wait(self._estimate(call), now))
        spread = self._spread_at + SPREAD_SECONDS - now if self._to_spread > 0 else 0.0
        return max(rates, self.rests_until - now, spread, 0.0)

    def sent(self, call: Paced, now: float) -> None:
        """The call goes out."""
        self._to_spread -= 1
        self._spread_at = now
        self._requests.use(1)
        self._tokens.use(self._estimate(call))

    def heard(self, call: Paced, reply: Heard, sent_at: float, now: float) -> None:
        """The reply to a call that was sent at ``sent_at``."""
        if reply.outcome in _COMPLAINTS:
            self.limit.complained(sent_at, now)
        elif reply.outcome is Outcome.OK:
            self.limit.succeeded()
        if reply.retry_after is not None:
            self.rest(now + reply.retry_after)
        if self.pulse.heard(reply.outcome, sent_at):
            self.rest(now + FIRST_REST_SECONDS)  # until it is known for how long
        if self._counts_tokens:
            self._correct(call, reply)

    def _correct(self, call: Paced, reply: Heard) -> None:
        """Put what was really used in the place of the estimate."""
        estimate = self._estimate(call)
        if reply.tokens_in is not None and reply.tokens_out is not None:
            used = reply.tokens_in + reply.tokens_out
            self._tokens.use(used - estimate)
            self._per_character += _SMOOTHING * (used / max(1, call.characters) - self._per_character)
        elif reply.outcome in _NOT_COUNTED:
            self._tokens.use(-estimate)

    def _estimate(self, call: Paced) -> float:
        return max(1, call.characters) * self._per_character if self._counts_tokens else 0.0


def still_sent(heard: int, passed: float, left: float) -> int:
    """How many calls will get a place in the seconds ``left``, where so many came back in the seconds ``passed``: who
    takes more has to give it back, and the attempts that were written with it stay in the ledger unsent."""
    return sys.maxsize if not heard or left == math.inf else int(heard / max(passed, 0.001) * max(left, 0.0))
