"""When arrivals are due: a rate in time, and a point process with that rate.

A rate is a row of spans, in each of which it changes evenly from one value to another; the last one stays. The
expected number of arrivals up to a time, Λ(t), is then quadratic in each span and has an exact inverse, which turns any process
of rate 1 into one of this rate (the time-rescaling theorem; Daley and Vere-Jones, *An Introduction to the Theory of
Point Processes*, 7.4): points at 1, 2, 3 … give even gaps, points with exponential gaps a Poisson process.

Times are seconds since an origin, randomness and the clock come in.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from scaletest.profile.rates import PacedSpec

__all__ = ["Pacer", "RateCurve", "RateSpan", "Schedule", "curve_of"]

BEGUN_AT_ONCE: Final = 64
"""Late arrivals begun in one turn of the event loop, a millisecond's work, before answers get their turn."""


@dataclass(frozen=True, slots=True)
class RateSpan:
    """Arrivals per second, changing evenly from ``from_per_s`` to ``to_per_s`` within ``over_s``."""

    from_per_s: float
    to_per_s: float
    over_s: float

    @property
    def count(self) -> float:
        """Arrivals expected in the whole span."""
        return (self.from_per_s + self.to_per_s) / 2 * self.over_s

    def count_until(self, elapsed_s: float) -> float:
        """Return the arrivals expected in the first ``elapsed_s`` of the span."""
        slope = (self.to_per_s - self.from_per_s) / self.over_s
        return self.from_per_s * elapsed_s + slope * elapsed_s * elapsed_s / 2

    def time_of(self, count: float) -> float:
        """Return the seconds after which ``count`` arrivals are expected: the inverse of ``count_until``."""
        slope = (self.to_per_s - self.from_per_s) / self.over_s
        # The root that stays exact when the slope is small or 0.
        root = math.sqrt(max(0.0, self.from_per_s**2 + 2 * slope * count))
        return 2 * count / (self.from_per_s + root)


class RateCurve:
    """A rate in time: ``spans`` one after the other from time 0 on, then ``final_per_s`` for ever."""

    def __init__(self, spans: Sequence[RateSpan], final_per_s: float) -> None:
        rates = [final_per_s, *(rate for span in spans for rate in (span.from_per_s, span.to_per_s))]
        if min(rates) <= 0 or not all(math.isfinite(rate) for rate in rates):
            msg = f"a rate is above 0 and finite: {min(rates)}"
            raise ValueError(msg)
        self.final_per_s = final_per_s
        self._spans: list[tuple[float, float, RateSpan]] = []
        start_s = count = 0.0
        for span in spans:
            self._spans.append((start_s, count, span))
            start_s += span.over_s
            count += span.count
        self._final_s, self._final_count = start_s, count

    def rate_at(self, elapsed_s: float) -> float:
        """Return the arrivals per second at a time."""
        for start_s, _, span in self._spans:
            if elapsed_s < start_s + span.over_s:
                share = max(0.0, elapsed_s - start_s) / span.over_s
                return span.from_per_s + share * (span.to_per_s - span.from_per_s)
        return self.final_per_s

    def count_until(self, elapsed_s: float) -> float:
        """Return the arrivals expected until a time: Λ(t)."""
        for start_s, count, span in self._spans:
            if elapsed_s < start_s + span.over_s:
                return count + span.count_until(max(0.0, elapsed_s - start_s))
        return self._final_count + (elapsed_s - self._final_s) * self.final_per_s

    def time_of(self, count: float) -> float:
        """Return the time until which ``count`` arrivals are expected: the inverse of ``count_until``."""
        for start_s, before, span in self._spans:
            if count < before + span.count:
                return start_s + span.time_of(count - before)
        return self._final_s + (count - self._final_count) / self.final_per_s


def curve_of(spec: PacedSpec) -> RateCurve:
    """Return the rate in time that a profile asks for."""
    if spec.ramp is not None:
        ramp = spec.ramp
        return RateCurve([RateSpan(ramp.from_per_s, ramp.to_per_s, ramp.over_s)], ramp.to_per_s)
    if spec.steps is not None:
        *steps, last = spec.steps
        return RateCurve([RateSpan(step.rate_per_s, step.rate_per_s, step.for_s) for step in steps], last.rate_per_s)
    assert spec.rate_per_s is not None
    return RateCurve((), spec.rate_per_s)


class Schedule:
    """The times at which arrivals are due, in order; ``poisson`` or evenly spaced.

    One of several processes takes ``share`` (its index, of how many): evenly spaced arrivals in turn, or a Poisson process of a part of the
    rate (of which several are again one with the whole).
    """

    __slots__ = ("_count", "_curve", "_of", "_origin_s", "_poisson", "_random")

    def __init__(
        self, curve: RateCurve, origin_s: float, random: Random, *, poisson: bool, share: tuple[int, int] = (0, 1)
    ) -> None:
        index, self._of = share
        self._curve = curve
        self._origin_s = origin_s
        self._random = random
        self._poisson = poisson
        self._count = 0.0 if poisson else float(index + 1 - self._of)

    def next_due_s(self, weight: float = 1.0) -> float:
        """Return when the next arrival is due; each call is one arrival. Never earlier than the one before.

        ``weight`` is how many arrivals of the rate the one before it stood for.
        """
        self._count += weight * self._of * (self._random.expovariate(1.0) if self._poisson else 1.0)
        return self._origin_s + self._curve.time_of(self._count)

    def rate_at(self, now_s: float) -> float:
        """Return the arrivals per second at a time, those of all processes together."""
        return self._curve.rate_at(now_s - self._origin_s)

    def own_rate_at(self, now_s: float) -> float:
        """Return the arrivals per second at a time, of this share."""
        return self.rate_at(now_s) / self._of


class Pacer:
    """Begins arrivals when they are due, for an alarm of whatever event loop there is."""

    __slots__ = ("_arrive", "_clock_s", "_schedule", "next_due_s")

    def __init__(
        self,
        schedule: Schedule,
        arrive: Callable[[float, float], float | None],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """``arrive`` is called with the time at which an arrival was due, and the time it is now.

        It returns how many arrivals of the rate this one stands for, None for one.
        """
        self._schedule = schedule
        self._arrive = arrive
        self._clock_s = clock_s
        self.next_due_s = schedule.next_due_s()

    def ring(self) -> float:
        """Begin what is due; return when to ring again."""
        for _ in range(BEGUN_AT_ONCE):
            now_s = self._clock_s()
            if self.next_due_s > now_s:
                break
            weight = self._arrive(self.next_due_s, now_s)
            self.next_due_s = self._schedule.next_due_s(1.0 if weight is None else weight)
        return self.next_due_s

    def rate_per_s(self) -> float:
        """Return the arrivals asked for per second now."""
        return self._schedule.rate_at(self._clock_s())

    def behind(self) -> int:
        """Return how many are due and not begun, by the rate; the next one is due for certain."""
        now_s = self._clock_s()
        late_s = now_s - self.next_due_s
        return 1 + int(late_s * self._schedule.own_rate_at(now_s)) if late_s > 0 else 0
