"""What the histograms of an API server grew by between two scrapes: the calls since, by kind and latency.

Of ``/metrics`` the request histograms are 2,600 lines on an idle server; with four times as many kinds of call they are 10,400, and parsing
them all takes 106 ms. But of 50 to 200 series not all change in five seconds. Go's client writes each series of a histogram as its buckets in
order, ``_sum`` and ``_count``, so a series whose ``_count`` line is the same as at the last scrape is passed over
without a look at its buckets.

Counts are increases, not totals: a report needs no more, they are short, and a series that did not change is not there at all. An
API server that was restarted (by its ``process_start_time_seconds``) counts from 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from scaletest.core.apicalls import SCOPES, ApiCall
from scaletest.observe.promtext import block, parse_labels, select

__all__ = ["LatencyDeltas"]

_START: Final = "process_start_time_seconds"

Key = Callable[[Mapping[str, str]], str | None]
"""Gives what a series is added to, by its labels; None for one that is not wanted."""


class LatencyDeltas:
    """Turns the scrapes of one API server into increases."""

    def __init__(self) -> None:
        self._start: float | None = None
        self._families = {name: _Family(family, key) for name, (family, key) in _FAMILIES.items()}

    def take(self, text: bytes) -> dict[str, Any] | None:
        """Return what grew since the last call; None the first time, when that is not known.

        By family: upper bounds of its buckets (the last, infinite one is left out) and, for what changed, bucket index and
        count in turns: ``{"sli": {"le_s": [0.05, ...], "grown": {"LIST pods cluster": [0, 12, 3, 1]}}}``. Raises ValueError for
        a text that is not as Go's client writes it.
        """
        start = next((sample.value for sample in select(text, (_START,))), None)
        first, restarted = self._start is None, start != self._start
        self._start = start
        if start is None:
            return None
        grown: dict[str, Any] = {}
        for name, family in self._families.items():
            if restarted:
                family.forget()
            found = family.take(text)
            if found:
                grown[name] = {"le_s": family.bounds_s, "grown": found}
        return None if first else grown


class _Family:
    """One histogram family."""

    def __init__(self, family: str, key: Key) -> None:
        self.bounds_s: list[float] = []
        self._family = family
        self._key = key
        self._count = re.compile(rb"\n%s_count\{([^\n]*)\} (\S+)" % family.encode())
        self._bucket = re.compile(rb'le="([^"]+)"\} (\S+)\n')
        self._keys: dict[bytes, str | None] = {}
        self._seen: dict[bytes, tuple[bytes, list[float]]] = {}

    def forget(self) -> None:
        """Count from 0 again."""
        self._seen.clear()

    def take(self, text: bytes) -> dict[str, list[int]]:
        lines = block(text, f"{self._family}_bucket")
        grown: dict[str, list[float]] = {}
        before = 0
        for match in self._count.finditer(lines):
            labels, count = match.groups()
            start, before = before, match.start()
            key = self._key_of(labels)
            if key is None:
                continue
            seen = self._seen.get(labels)
            if seen is not None and seen[0] == count:
                continue
            buckets = self._buckets(lines[start : before + 1])
            self._seen[labels] = count, buckets
            old = seen[1] if seen is not None else [0.0] * len(buckets)
            sums = grown.setdefault(key, [0.0] * len(buckets))
            below = 0.0
            for index, (now, then) in enumerate(zip(buckets, old, strict=True)):
                sums[index] += now - then - below
                below = now - then
        return {key: packed for key, sums in grown.items() if (packed := _packed(sums))}

    def _key_of(self, labels: bytes) -> str | None:
        try:
            return self._keys[labels]
        except KeyError:
            key = self._keys[labels] = self._key(parse_labels(labels.decode(errors="replace")))
            return key

    def _buckets(self, lines: bytes) -> list[float]:
        pairs = self._bucket.findall(lines)
        if not pairs or pairs[-1][0] != b"+Inf":
            msg = f"{self._family}: buckets do not stand before their count"
            raise ValueError(msg)
        if len(pairs) != len(self.bounds_s) + 1:
            if self.bounds_s:
                msg = f"{self._family}: series differ in their buckets"
                raise ValueError(msg)
            self.bounds_s = [float(bound) for bound, _ in pairs[:-1]]
        return [float(count) for _, count in pairs]


def _packed(counts: list[float]) -> list[int]:
    return [part for index, count in enumerate(counts) if count > 0 for part in (index, round(count))]


_STREAMS: Final = frozenset({"WATCH", "WATCHLIST", "CONNECT"})


def _call(labels: Mapping[str, str]) -> str | None:
    """Name the kind of call; of dry runs and streams nothing is wanted, and of what is about no resource."""
    verb = labels.get("verb", "")
    return None if verb in _STREAMS or labels.get("dry_run") else _named(verb, labels)


def _watch_list(labels: Mapping[str, str]) -> str | None:
    return _named("WATCHLIST", labels)


def _named(verb: str, labels: Mapping[str, str]) -> str | None:
    resource, scope = labels.get("resource", ""), labels.get("scope", "")
    if not verb or not resource or scope not in SCOPES:
        return None
    return str(ApiCall(verb, labels.get("group", ""), resource, labels.get("subresource", ""), scope))


def _level(labels: Mapping[str, str]) -> str | None:
    return labels.get("priority_level")


_FAMILIES: Final[dict[str, tuple[str, Key]]] = {
    "sli": ("apiserver_request_sli_duration_seconds", _call),
    "request": ("apiserver_request_duration_seconds", _call),
    "watch_list": ("apiserver_watch_list_duration_seconds", _watch_list),
    "wait": ("apiserver_flowcontrol_request_wait_duration_seconds", _level),
}
"""Read in apiserver/pkg/endpoints/metrics and pkg/util/flowcontrol/metrics of Kubernetes 1.36 and 1.37; 1.31 has the same names.

``sli`` is the time from the request's arrival to the last byte of its answer, without webhooks and without the wait in queues of API
Priority and Fairness; ``request`` is with both, as is ``watch_list`` (until the initial events of a WATCH-LIST are sent). Requests
that were rejected in a queue are in ``wait`` alone.
"""
