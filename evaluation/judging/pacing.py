"""The pace of one worker at one endpoint: concurrency, rates and the endpoint's rest, told by allowance and replies."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome
from evaluation.judging.limits import AdaptiveLimit, Rate

_COMPLAINTS = frozenset({Outcome.RATE_LIMITED, Outcome.OVERLOADED})
_NOT_COUNTED = frozenset({*_COMPLAINTS, Outcome.BLOCKED, Outcome.TLS, Outcome.CONNECTION, Outcome.UNAUTHORISED})
_SMOOTHING = 0.1
_TOKENS_PER_CHARACTER = 0.5  # until the first replies tell
SPREAD_SECONDS = 0.003  # between the first calls: those sent together come back together, and then wait for each other


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one worker may use of an endpoint: calls at a time, requests and tokens per minute (``None``: no limit)."""

    calls: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class Pace:
    """When the next call may be sent. Times are monotonic seconds, given by the caller."""

    def __init__(self, allowance: Allowance, now: float = 0.0) -> None:
        self.limit = AdaptiveLimit(allowance.calls)
        self._requests = Rate(allowance.requests_per_minute, now)
        self._tokens = Rate(allowance.tokens_per_minute, now)
        self._counts_tokens = allowance.tokens_per_minute is not None
        self._per_character = _TOKENS_PER_CHARACTER
        self.rests_until = float("-inf")
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

    def wait(self, call: JudgeCall, now: float) -> float:
        """Seconds until the call may be sent, as far as rates, rest and the spread of the first calls go."""
        rates = max(self._requests.wait(1, now), self._tokens.wait(self._estimate(call), now))
        spread = self._spread_at + SPREAD_SECONDS - now if self._to_spread > 0 else 0.0
        return max(rates, self.rests_until - now, spread, 0.0)

    def sent(self, call: JudgeCall, now: float) -> None:
        """The call goes out."""
        self._to_spread -= 1
        self._spread_at = now
        self._requests.use(1)
        self._tokens.use(self._estimate(call))

    def heard(self, call: JudgeCall, reply: JudgeReply, sent_at: float, now: float) -> None:
        """The reply to a call that was sent at ``sent_at``."""
        if reply.outcome in _COMPLAINTS:
            self.limit.complained(sent_at, now)
        elif reply.outcome is Outcome.OK:
            self.limit.succeeded()
        if reply.retry_after is not None:
            self.rest(now + reply.retry_after)
        if self._counts_tokens:
            self._correct(call, reply)

    def _correct(self, call: JudgeCall, reply: JudgeReply) -> None:
        """Put what was really used in the place of the estimate."""
        estimate = self._estimate(call)
        if reply.tokens_in is not None and reply.tokens_out is not None:
            used = reply.tokens_in + reply.tokens_out
            self._tokens.use(used - estimate)
            self._per_character += _SMOOTHING * (used / _characters(call) - self._per_character)
        elif reply.outcome in _NOT_COUNTED:
            self._tokens.use(-estimate)

    def _estimate(self, call: JudgeCall) -> float:
        return _characters(call) * self._per_character if self._counts_tokens else 0.0


def _characters(call: JudgeCall) -> int:
    return max(1, sum(len(message["content"]) for message in call.rendered.messages))
