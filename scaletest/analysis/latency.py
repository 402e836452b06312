"""How long API calls and waits in queues took by the API servers' own histograms, over any span of the run.

A ``metrics.latency`` record has what each histogram grew by since the scrape before, and counts at its own time, as all that is
counted between two scrapes does. Quantiles are those of PromQL's ``histogram_quantile``: linear within a bucket, and the highest
finite bound (60 s) for what lies above it.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from scaletest.analysis.numbers import amount, seconds
from scaletest.analysis.series import Span, contains, interpolated_quantile
from scaletest.profile.objectives import SLI_WINDOW_S

__all__ = ["FAMILIES", "WINDOW_STEP_S", "Buckets", "LatencyFamily", "LatencyMetrics"]

FAMILIES: Final = ("sli", "request", "watch_list", "wait")
"""``sli``: apiserver_request_sli_duration_seconds. ``request``: apiserver_request_duration_seconds. ``watch_list``:
apiserver_watch_list_duration_seconds. ``wait``: apiserver_flowcontrol_request_wait_duration_seconds, by priority level."""

WINDOW_STEP_S: Final = 10.0
"""A window ends so often: at every second scrape of the usual 5 s."""

_KEPT_SPANS: Final = 32


@dataclass(frozen=True, slots=True)
class Buckets:
    """A histogram: counts by upper bound, each bucket its own; the last has no bound."""

    bounds_s: Sequence[float]
    counts: Sequence[float]

    @property
    def count(self) -> int:
        """Observations."""
        return round(sum(self.counts))

    def quantile_s(self, q: float) -> float:
        """Return a quantile; NaN of nothing."""
        return interpolated_quantile(q, [*self.bounds_s, math.inf], list(accumulate(self.counts)))


@dataclass(slots=True)
class _Totals:
    counts: dict[int, list[float]] = field(default_factory=dict)
    taken: int = 0


class LatencyFamily:
    """One histogram family. An increase takes twelve bytes: series, bucket and count."""

    def __init__(self) -> None:
        self.bounds_s: list[float] = []
        self._names: list[str] = []
        self._index: dict[str, int] = {}
        self._times_s: list[float] = []
        self._grown: list[array[int]] = []
        self._totals: dict[Span, _Totals] = {}
        self._windows: dict[float, _Windows] = {}

    def add(self, t_s: float, data: Mapping[str, Any]) -> None:
        """Take in a record's part. Raises what a malformed one makes Python raise, changing nothing."""
        bounds_s = [amount(bound) for bound in data["le_s"]]
        if self.bounds_s and bounds_s != self.bounds_s:
            msg = "buckets of a histogram changed"
            raise ValueError(msg)
        grown = array("I")
        names: list[str] = []
        for name, packed in data["grown"].items():
            series = self._index.get(name)
            if series is None:
                series = len(self._names) + len(names)
                names.append(str(name))
            for bucket, count in zip(packed[::2], packed[1::2], strict=True):
                if not 0 <= bucket <= len(bounds_s):
                    msg = "no such bucket"
                    raise ValueError(msg)
                grown.extend((series, bucket, count))
        self.bounds_s = bounds_s
        for name in names:
            self._index[name] = len(self._names)
            self._names.append(name)
        self._times_s.append(t_s)
        self._grown.append(grown)

    def within(self, span: Span) -> dict[str, Buckets]:
        """Return the histograms of what was counted within a span, by series; do not change them."""
        totals = self._totals.get(span)
        if totals is None:
            if len(self._totals) >= _KEPT_SPANS:
                self._totals.pop(next(iter(self._totals)))
            totals = self._totals[span] = _Totals()
        for index in range(totals.taken, len(self._grown)):
            if contains(span, self._times_s[index]):
                _add(totals.counts, self._grown[index], len(self.bounds_s) + 1, 1)
        totals.taken = len(self._grown)
        return {self._names[series]: Buckets(self.bounds_s, counts) for series, counts in totals.counts.items()}

    def windows(self, q: float, ends: Span, begin_s: float) -> dict[str, list[float]]:
        """Return a quantile over each 5-minute window, by series, as far as it had observations there.

        Of the windows that end within ``ends``, its end included, and begin at ``begin_s`` or later.
        """
        windows = self._windows.setdefault(q, _Windows(q))
        windows.advance(self._times_s, self._grown, self.bounds_s)
        first_s = max(begin_s + SLI_WINDOW_S, ends[0])
        found: dict[str, list[float]] = {}
        for series, (ends_s, values) in windows.done.items():
            within = values[bisect_left(ends_s, first_s) : bisect_right(ends_s, ends[1])]
            if within:
                found[self._names[series]] = list(within)
        return found


class _Windows:
    """The quantiles of all windows so far; each increase is added once, and taken away once."""

    def __init__(self, q: float) -> None:
        self.done: dict[int, tuple[array[float], array[float]]] = {}
        """Ends of windows and quantiles over them, by series."""
        self._q = q
        self._counts: dict[int, list[float]] = {}
        self._head = 0
        self._tail = 0
        self._end_s = math.nan

    def advance(self, times_s: Sequence[float], grown: Sequence[array[int]], bounds_s: Sequence[float]) -> None:
        """Go on to the last window that all is known of: none that ends after the latest record."""
        if not times_s:
            return
        if math.isnan(self._end_s):
            self._end_s = math.ceil(times_s[0] / WINDOW_STEP_S) * WINDOW_STEP_S
        width = len(bounds_s) + 1
        while self._end_s <= times_s[-1]:
            while times_s[self._head] < self._end_s:
                _add(self._counts, grown[self._head], width, 1)
                self._head += 1
            while self._tail < self._head and times_s[self._tail] < self._end_s - SLI_WINDOW_S:
                _add(self._counts, grown[self._tail], width, -1)
                self._tail += 1
            for series, counts in self._counts.items():
                if any(counts):
                    ends_s, values = self.done.setdefault(series, (array("d"), array("d")))
                    ends_s.append(self._end_s)
                    values.append(Buckets(bounds_s, counts).quantile_s(self._q))
            self._end_s += WINDOW_STEP_S


def _add(sums: dict[int, list[float]], grown: array[int], width: int, sign: int) -> None:
    for at in range(0, len(grown), 3):
        series = grown[at]
        counts = sums.get(series)
        if counts is None:
            counts = sums[series] = [0] * width
        counts[grown[at + 1]] += sign * grown[at + 2]


class LatencyMetrics:
    """The histograms of all API servers together."""

    def __init__(self) -> None:
        self.families: dict[str, LatencyFamily] = {name: LatencyFamily() for name in FAMILIES}
        self.times_s: list[float] = []
        """When a server's histograms were read for at least the second time."""

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in a ``metrics.latency`` record. Raises what a malformed one makes Python raise."""
        t_s = seconds(record["t"])
        for name, data in record["families"].items():
            if name in self.families:
                self.families[name].add(t_s, data)
        self.times_s.append(t_s)

    def was_read(self, span: Span) -> bool:
        """Whether anything could have been measured within a span."""
        return any(contains(span, t_s) for t_s in self.times_s)
