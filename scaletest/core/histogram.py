"""A log-linear histogram of non-negative integers, mergeable, with three significant digits.

The layout is HdrHistogram's (Tene, hdrhistogram.org): values below 2,048 are exact; above, each
power of two is cut into 1,024 equal buckets, so that a bucket is at most 1/1,024 of its lower
bound wide and its middle is at most 0.05 % off. Values are whole microseconds wherever
latencies are recorded: 1 µs to hours in one structure.

Recording costs one ``bit_length``, one shift and one dict update, with no allocation for a bucket
already seen; merging two histograms gives exactly the histogram of the concatenated values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Histogram"]

_SUB_BITS = 10
_LINEAR_LIMIT = 1 << (_SUB_BITS + 1)


def bucket_of(value: int) -> int:
    """Index of the bucket that holds ``value``."""
    if value < _LINEAR_LIMIT:
        return value
    shift = value.bit_length() - (_SUB_BITS + 1)
    return (shift << _SUB_BITS) + (value >> shift)


def bucket_bounds(index: int) -> tuple[int, int]:
    """Lowest and highest value of the bucket ``index``."""
    if index < _LINEAR_LIMIT:
        return index, index
    shift = (index >> _SUB_BITS) - 1
    low = (index - (shift << _SUB_BITS)) << shift
    return low, low + (1 << shift) - 1


def _check_buckets(deltas: list[object], counts: list[object]) -> None:
    # The first index may be 0; from then on each is higher than the one before.
    if not all(type(delta) is int and delta >= (position > 0) for position, delta in enumerate(deltas)):
        msg = "not a histogram: 'd' must hold rising bucket indices"
        raise ValueError(msg)
    if not all(type(count) is int and count > 0 for count in counts):
        msg = "not a histogram: 'c' must hold counts of at least 1"
        raise ValueError(msg)


class Histogram:
    """Counts of values by bucket, with exact count, sum, minimum and maximum."""

    __slots__ = ("buckets", "count", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0
        self.minimum: int | None = None
        self.maximum: int | None = None

    def record(self, value: int) -> None:
        """Count one value. Negative values raise ValueError."""
        if value < _LINEAR_LIMIT:
            if value < 0:
                msg = f"a histogram holds no negative value: {value}"
                raise ValueError(msg)
            index = value
        else:
            shift = value.bit_length() - (_SUB_BITS + 1)
            index = (shift << _SUB_BITS) + (value >> shift)
        buckets = self.buckets
        buckets[index] = buckets.get(index, 0) + 1
        self.count += 1
        self.total += value
        if self.minimum is None or value < self.minimum:
            self.minimum = value
        if self.maximum is None or value > self.maximum:
            self.maximum = value

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram to this one."""
        for index, count in other.buckets.items():
            self.buckets[index] = self.buckets.get(index, 0) + count
        self.count += other.count
        self.total += other.total
        if other.minimum is not None and (self.minimum is None or other.minimum < self.minimum):
            self.minimum = other.minimum
        if other.maximum is not None and (self.maximum is None or other.maximum > self.maximum):
            self.maximum = other.maximum

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        """Build one histogram from many."""
        whole = cls()
        for part in parts:
            whole.merge(part)
        return whole

    def quantile(self, q: float) -> float:
        """Return the smallest value that a share ``q`` (0 to 1) of all values does not exceed.

        The value is the middle of its bucket, clamped to the exact minimum and maximum; NaN when empty.
        """
        return self.quantiles((q,))[0]

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the quantiles of several rising shares, as ``quantile`` does, in one pass."""
        if not all(0.0 <= q <= 1.0 for q in shares):
            msg = f"a quantile lies between 0 and 1: {', '.join(str(q) for q in shares)}"
            raise ValueError(msg)
        if not self.count:
            return [math.nan] * len(shares)
        assert self.minimum is not None
        assert self.maximum is not None
        found: list[float] = []
        seen, indices, index = 0, iter(sorted(self.buckets)), 0
        for q in shares:
            rank = max(1, math.ceil(q * self.count))
            while seen < rank:
                index = next(indices)
                seen += self.buckets[index]
            low, high = bucket_bounds(index)
            middle = float(min(max((low + high) / 2, self.minimum), self.maximum))
            found.append(float(self.maximum) if rank >= self.count else middle)
        return found

    @property
    def mean(self) -> float:
        """Exact mean of all values; NaN when empty."""
        return self.total / self.count if self.count else math.nan

    def to_json(self) -> dict[str, object]:
        """Return a JSON value: sorted bucket indices (delta-coded) and their counts."""
        deltas: list[int] = []
        counts: list[int] = []
        previous = 0
        for index in sorted(self.buckets):
            deltas.append(index - previous)
            counts.append(self.buckets[index])
            previous = index
        return {"d": deltas, "c": counts, "sum": self.total, "min": self.minimum, "max": self.maximum}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Histogram:
        """Read what ``to_json`` wrote. Raises ValueError for anything else."""
        deltas, counts = data.get("d"), data.get("c")
        total, minimum, maximum = data.get("sum"), data.get("min"), data.get("max")
        if not isinstance(deltas, list) or not isinstance(counts, list) or len(deltas) != len(counts):
            msg = "not a histogram: 'd' and 'c' must be lists of one length"
            raise ValueError(msg)
        if not isinstance(total, int) or not isinstance(minimum, int | None) or not isinstance(maximum, int | None):
            msg = "not a histogram: 'sum', 'min' and 'max' must be integers"
            raise ValueError(msg)
        _check_buckets(deltas, counts)
        if (minimum is None or maximum is None) == bool(counts):
            msg = "not a histogram: it has a minimum and a maximum exactly if it has values"
            raise ValueError(msg)
        histogram = cls()
        index = 0
        for delta, count in zip(deltas, counts, strict=True):
            index += delta
            histogram.buckets[index] = count
            histogram.count += count
        histogram.total, histogram.minimum, histogram.maximum = total, minimum, maximum
        return histogram

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]
