"""Observations of a probe, and the spans in which an operator was locked out.

A *good* answer is a 2xx within the probe's time-out. An operator is *locked out* between two neighbouring good
answers when a request that they sent in between got no good answer. The span begins when the last
good answer arrived and ends when the next one arrives: the longest time for which access was not
proven. A request that the end of the run cut off is neither good nor bad: it proves nothing about access, but its latency is
known to be at least what it had waited. Before any good answer it begins when the first request was sent; without a next good
answer it lasts to the end of the measurement. Good answers that are merely slow lock nobody out: their latency shows it.

With several API servers an operator is locked out while every server locks them out. A server that is added during the run is no way in before it is
there: until then whoever will use it had what the earlier ones gave (``ways_in``).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import takewhile
from typing import Final

from scaletest.analysis.series import Span

__all__ = [
    "UNFINISHED",
    "Observation",
    "clip",
    "intersect",
    "last_good_spell",
    "latency_quantile",
    "lockouts",
    "longest_s",
    "recovered_s",
    "ways_in",
]

UNFINISHED: Final = "unfinished"
"""Outcome of a request that the end of the run cut off: no answer yet, and not yet timed out."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One answer that a probe got, or did not get."""

    sent_s: float
    latency_s: float
    ok: bool
    outcome: str = "ok"
    reason: str | None = None
    late_s: float = 0.0
    """How long after its due time the request was sent."""

    @property
    def answered_s(self) -> float:
        """When the answer, or the failure, arrived."""
        return self.sent_s + self.latency_s

    @property
    def unfinished(self) -> bool:
        """Whether the end of the run cut the request off before its time-out."""
        return self.outcome == UNFINISHED


def lockouts(observations: Iterable[Observation], until_s: float) -> list[Span]:
    """Return the spans locked out, in order, for the observations of one server; an open one ends at ``until_s``."""
    looked_at = [item for item in observations if item.sent_s < until_s and not item.unfinished]
    good_s = sorted(item.answered_s for item in looked_at if item.ok)
    bad_s = sorted(item.sent_s for item in looked_at if not item.ok)
    spans: dict[Span, None] = {}
    for sent_s in bad_s:
        following = bisect_right(good_s, sent_s)
        start_s = good_s[following - 1] if following else bad_s[0]
        end_s = good_s[following] if following < len(good_s) else until_s
        spans[start_s, min(end_s, until_s)] = None
    return list(spans)


def intersect(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """Return the spans that lie in both of two ordered lists of spans."""
    both: list[Span] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start_s, end_s = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start_s < end_s:
            both.append((start_s, end_s))
        if left[i][1] <= right[j][1]:
            i += 1
        else:
            j += 1
    return both


def clip(spans: Sequence[Span], span: Span) -> list[Span]:
    """Return the parts of spans that lie within another span."""
    return intersect(spans, [span])


def longest_s(spans: Iterable[Span]) -> float:
    """Return the length of the longest span; 0 when there is none."""
    return max((end_s - start_s for start_s, end_s in spans), default=0.0)


def ways_in(by_server: Mapping[str, Sequence[Observation]]) -> list[Sequence[Observation]]:
    """Return for each server what an operator met who went there as soon as it was there.

    A server is late if it was first asked after another had been asked twice; before that they were with the one asked first.
    """
    if len(by_server) < 2:
        return list(by_server.values())
    # In the order of their answers, which is not that in which they were sent.
    sent = {server: nsmallest(2, (item.sent_s for item in items)) for server, items in by_server.items() if items}
    if not sent:
        return list(by_server.values())
    first = min(sent, key=lambda server: sent[server][0])
    again_s = min((times[1] for times in sent.values() if len(times) > 1), default=math.inf)
    met: list[Sequence[Observation]] = []
    for server, (began_s, *_) in sent.items():
        before = [item for item in by_server[first] if item.sent_s < began_s] if began_s > again_s else []
        met.append([*before, *by_server[server]])
    return met


def last_good_spell(observations: Iterable[Observation], within_s: float) -> Span | None:
    """Return the spell, up to the latest answer, in which every answer was good and came within ``within_s``.

    From the sending of the first such request to the answer of the last: requests under way prove nothing yet. None when the
    latest answer was not such a one.
    """
    ended = (item for item in observations if not item.unfinished)
    latest_first = sorted(ended, key=lambda item: item.sent_s, reverse=True)
    good = list(takewhile(lambda item: item.ok and item.latency_s <= within_s, latest_first))
    return (good[-1].sent_s, good[0].answered_s) if good else None


def recovered_s(observations: Iterable[Observation], within_s: float) -> float:
    """Return how long the last good spell is; 0 when there is none."""
    spell = last_good_spell(observations, within_s)
    return spell[1] - spell[0] if spell else 0.0


def latency_quantile(observations: Sequence[Observation], q: float) -> float:
    """Return a quantile of the latencies, with a failed observation as infinitely long; NaN for none.

    A probe that fails fast must not look fast, so ``p99`` is infinite as soon as more than 1 % of its requests failed.
    One cut off by the end of the run counts with the time it had waited, which is the least it would have taken.
    """
    if not observations:
        return math.nan
    values = sorted(item.latency_s if item.ok or item.unfinished else math.inf for item in observations)
    return values[max(1, math.ceil(q * len(values))) - 1]
