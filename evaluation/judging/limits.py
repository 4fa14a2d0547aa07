"""How many calls may be out, and how fast: limits that learn from complaints, and rates per minute. Pure, no clock."""

from __future__ import annotations

_CUT = 0.5
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
