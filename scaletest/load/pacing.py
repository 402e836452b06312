"""When things start: the rollout of agents, the periods of steps, the client-side rate limit.

Pure functions of time: clock and randomness come in as arguments. None of them is ever early; when late, a rollout
starts at once what is due (so that its rate holds over the whole), a periodic step drops what it missed.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Rollout", "TokenBucket", "next_due_s"]


@dataclass(frozen=True, slots=True)
class Rollout:
    """An evenly spaced rollout: the i-th agent (from 0) starts at ``origin_s`` + i ÷ ``rate_per_s``."""

    origin_s: float
    rate_per_s: float

    def __post_init__(self) -> None:
        if self.rate_per_s <= 0:
            msg = f"a rollout needs a rate above 0: {self.rate_per_s}"
            raise ValueError(msg)

    def start_of_s(self, index: int) -> float:
        """Return the time at which the agent ``index`` is due."""
        return self.origin_s + index / self.rate_per_s

    def wait_s(self, now_s: float, started: int) -> float:
        """Return the seconds until the next agent is due after ``started`` were started; 0 when it is."""
        return max(0.0, self.start_of_s(started) - now_s)


def next_due_s(previous_due_s: float, period_s: float, jitter: float, now_s: float, draw: float) -> float:
    """Return when a periodic step is due next: one period after the *previous due time*, never in the past.

    The period is drawn from period × (1 ± jitter) with ``draw`` uniform in [0, 1). A request that took longer than the
    period is followed at once by one request, not by all that were missed.
    """
    period_s *= 1.0 + jitter * (2.0 * draw - 1.0)
    return max(previous_due_s + period_s, now_s)


class TokenBucket:
    """client-go's flow control: ``qps`` tokens a second, at most ``burst`` saved up; callers take turns."""

    __slots__ = ("_burst", "_qps", "_tokens", "_updated_s")

    def __init__(self, qps: float, burst: int, now_s: float) -> None:
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._updated_s = now_s

    def take(self, now_s: float) -> float:
        """Take one token and return the seconds to wait before it may be used."""
        elapsed_s = max(0.0, now_s - self._updated_s)
        self._updated_s = max(now_s, self._updated_s)
        self._tokens = min(self._burst, self._tokens + elapsed_s * self._qps) - 1.0
        return max(0.0, -self._tokens / self._qps)
