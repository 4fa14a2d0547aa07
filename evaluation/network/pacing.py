"""Pace of one worker at one endpoint: concurrency, rates per minute, and pauses of the endpoint.

Concurrency adapts to rate-limit replies. Pure: the caller passes all times."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Protocol

from evaluation.network.outcomes import NO_CONNECTION, Outcome
from evaluation.network.retrying import TRANSIENT

_DECREASE_FACTOR = 0.5


class PacedCall(Protocol):
    """A call; its number of ``characters`` estimates its tokens until replies report them."""

    @property
    def characters(self) -> int: ...


class PacedReply(Protocol):
    """Reply to a call. Unknown tokens are ``None``; ``retry_after`` is in seconds from the reply."""

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
    """Limit of concurrent calls between 1 and ``maximum``, where it starts; 0 if ``maximum`` is 0.

    Additive increase, multiplicative decrease: one more call per round without rate limiting, half as many after a
    rate-limit reply."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._limit = float(maximum)
        self._cut_at = float("-inf")

    @property
    def current(self) -> int:
        """Number of calls that may be in flight."""
        return min(self._maximum, max(1, int(self._limit)))

    @property
    def maximum(self) -> int:
        """Upper bound; raising it also raises a limit that was never cut."""
        return self._maximum

    @maximum.setter
    def maximum(self, maximum: int) -> None:
        if self._limit >= self._maximum:
            self._limit = float(maximum)
        self._maximum = maximum

    def on_success(self) -> None:
        """Raise the limit after a success; a full round adds one call."""
        self._limit = min(float(self._maximum), self._limit + 1.0 / max(1.0, self._limit))

    def on_rate_limited(self, sent_at: float, now: float) -> bool:
        """Cut the limit after a rate-limit reply, and return whether it was cut.

        Replies to calls that were sent before the last cut are ignored."""
        if sent_at < self._cut_at:
            return False
        self._limit = max(1.0, min(self._limit, self._maximum) * _DECREASE_FACTOR)
        self._cut_at = now
        return True


class Rate:
    """Even rate per minute; the burst is one second's worth, at least 1. ``None``: no limit."""

    def __init__(self, per_minute: float | None, now: float) -> None:
        self._per_minute = per_minute
        self._available = self._burst
        self._refilled_at = now

    @property
    def _burst(self) -> float:
        return max(1.0, (self._per_minute or 0.0) / 60.0 * BURST_SECONDS)

    def set_rate(self, per_minute: float | None, now: float) -> None:
        """Change the rate; what was consumed stays consumed."""
        self._refill(now)
        self._per_minute = per_minute
        self._available = min(self._available, self._burst)

    def wait_seconds(self, count: float, now: float) -> float:
        """Seconds until ``count`` may be consumed. A count above the burst needs a full burst."""
        if self._per_minute is None:
            return 0.0
        if self._per_minute <= 0:
            return 60.0
        self._refill(now)
        return max(0.0, min(count, self._burst) - self._available) * 60.0 / self._per_minute

    def consume(self, count: float) -> None:
        """Consume ``count``; a negative count gives it back. The balance may become negative."""
        self._available = min(self._burst, self._available - count)

    def _refill(self, now: float) -> None:
        self._available = min(
            self._burst, self._available + (now - self._refilled_at) * (self._per_minute or 0.0) / 60.0
        )
        self._refilled_at = now


_RATE_LIMITED = frozenset({Outcome.RATE_LIMITED, Outcome.OVERLOADED})
_UNBILLED = _RATE_LIMITED | NO_CONNECTION | {Outcome.BLOCKED, Outcome.TLS, Outcome.UNAUTHORISED}
_SMOOTHING = 0.1
# Initial estimate, until replies report tokens.
_TOKENS_PER_CHARACTER = 0.5
# Delay between the first calls: calls sent together return together and then wait for each other.
SPREAD_SECONDS = 0.003


@dataclass(frozen=True, slots=True)
class Allowance:
    """A worker's share of an endpoint: concurrent calls, requests and tokens per minute (``None``: no limit)."""

    calls: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


MAX_CONSECUTIVE_FAULTS = 5
INITIAL_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class OutageNotice:
    """Information of a call about the whole endpoint: its ``fault``, or ``None`` if it answers.

    ``sent_at``: monotonic seconds at which the call was sent."""

    fault: Outcome | None
    sent_at: float


class OutageDetector:
    """Detects an outage of an endpoint from the outcomes of its calls.

    An outage begins after five consecutive transient faults; during an outage, the next call decides."""

    def __init__(self) -> None:
        self.is_down = False
        # Notice for the other workers.
        self.pending_notice: OutageNotice | None = None
        self._faults = 0

    def record_outcome(self, outcome: Outcome, sent_at: float) -> bool:
        """Record an outcome and return whether the endpoint is down."""
        self._faults = self._faults + 1 if outcome in TRANSIENT else 0
        down = self._faults >= (1 if self.is_down else MAX_CONSECUTIVE_FAULTS)
        if down or self.is_down:
            self.pending_notice = OutageNotice(outcome if down else None, sent_at)
        return down

    def take_notice(self) -> OutageNotice | None:
        """Return the notice since the last call, and clear it."""
        notice, self.pending_notice = self.pending_notice, None
        return notice


class Pace:
    """Schedule of calls. Times are monotonic seconds, passed by the caller."""

    def __init__(self, allowance: Allowance, now: float = 0.0) -> None:
        self.limit = AdaptiveLimit(allowance.calls)
        self._requests = Rate(allowance.requests_per_minute, now)
        self._tokens = Rate(allowance.tokens_per_minute, now)
        self._counts_tokens = allowance.tokens_per_minute is not None
        self._per_character = _TOKENS_PER_CHARACTER
        self.paused_until = float("-inf")
        self.outage = OutageDetector()
        self._calls_to_spread = allowance.calls
        self._last_sent_at = float("-inf")

    def set_allowance(self, allowance: Allowance, now: float) -> None:
        self.limit.maximum = allowance.calls
        self._requests.set_rate(allowance.requests_per_minute, now)
        self._tokens.set_rate(allowance.tokens_per_minute, now)
        self._counts_tokens = allowance.tokens_per_minute is not None

    def pause_until(self, until: float) -> None:
        """Send nothing before ``until``; a pause is never shortened."""
        self.paused_until = max(self.paused_until, until)
        self._calls_to_spread = self.limit.maximum

    def wait_seconds(self, call: PacedCall, now: float) -> float:
        """Seconds until the call may be sent, by rates, pauses and the spread of the first calls."""
        rates = max(self._requests.wait_seconds(1, now), self._tokens.wait_seconds(self._estimate(call), now))
        spread = self._last_sent_at + SPREAD_SECONDS - now if self._calls_to_spread > 0 else 0.0
        return max(rates, self.paused_until - now, spread, 0.0)

    def record_sent(self, call: PacedCall, now: float) -> None:
        """Record that a call is being sent."""
        self._calls_to_spread -= 1
        self._last_sent_at = now
        self._requests.consume(1)
        self._tokens.consume(self._estimate(call))

    def record_reply(self, call: PacedCall, reply: PacedReply, sent_at: float, now: float) -> None:
        """Adapt limits, pauses and token estimates to the reply to a call sent at ``sent_at``."""
        if reply.outcome in _RATE_LIMITED:
            self.limit.on_rate_limited(sent_at, now)
        elif reply.outcome is Outcome.OK:
            self.limit.on_success()
        if reply.retry_after is not None:
            self.pause_until(now + reply.retry_after)
        if self.outage.record_outcome(reply.outcome, sent_at):
            # Provisional, until the duration is known.
            self.pause_until(now + INITIAL_PAUSE_SECONDS)
        if self._counts_tokens:
            self._correct(call, reply)

    def _correct(self, call: PacedCall, reply: PacedReply) -> None:
        """Replace the token estimate with the actual usage."""
        estimate = self._estimate(call)
        if reply.tokens_in is not None and reply.tokens_out is not None:
            used = reply.tokens_in + reply.tokens_out
            self._tokens.consume(used - estimate)
            self._per_character += _SMOOTHING * (used / max(1, call.characters) - self._per_character)
        elif reply.outcome in _UNBILLED:
            self._tokens.consume(-estimate)

    def _estimate(self, call: PacedCall) -> float:
        return max(1, call.characters) * self._per_character if self._counts_tokens else 0.0


def expected_free_slots(completed: int, elapsed: float, remaining: float) -> int:
    """Number of calls that can start within ``remaining`` seconds, if ``completed`` calls ended within ``elapsed``
    seconds.

    A worker that claims more units must release them, which leaves unsent attempts in the ledger."""
    return (
        sys.maxsize
        if not completed or remaining == math.inf
        else int(completed / max(elapsed, 0.001) * max(remaining, 0.0))
    )
