"""What the live view knows of a run: the state that the records fold into, its last events, and its trail.

The *trail* has one value a second from the first phase on, for the sparklines. *Events* are those that records tell, and
three that only the state shows: lock-outs, their ends, and rollouts that are complete. Time is that of the records, so the same
journal gives the same view.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from scaletest.analysis.state import RunState
from scaletest.core.journal import Record
from scaletest.core.units import format_duration
from scaletest.profile.schema import Profile
from scaletest.report.document import StoryLine
from scaletest.report.live_figures import api_server_bytes, last_good_s, latest_interval, locked_since_s, totals
from scaletest.report.story import Level, tell_event

__all__ = ["EVENTS_KEPT", "LiveState", "Trail"]

EVENTS_KEPT: Final = 60
"""As many as a tall terminal has rows for."""

_STALE_S: Final = 2.5
"""A report of a flow stands for the seconds up to its end, not for later ones: they come once a second."""


@dataclass(slots=True)
class Trail:
    """One value a second; None where nothing was measured."""

    requests_per_s: list[float | None] = field(default_factory=list)
    latency_p99_s: list[float | None] = field(default_factory=list)
    api_server_memory_bytes: list[float | None] = field(default_factory=list)


class LiveState:
    """Takes in the records of a journal as they come."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.run = RunState()
        self.trail = Trail()
        self.events: deque[StoryLine] = deque(maxlen=EVENTS_KEPT)
        self.newest_sample_s = -math.inf
        """Time of the newest sample of processes."""
        self._next_look_s = math.inf
        self._locked: dict[tuple[str, str], float] = {}
        self._rolled_out: set[str] = set()

    def apply(self, record: Record) -> None:
        """Take in one record; a malformed one changes nothing."""
        self.run.apply(record)
        try:
            t_s, kind = float(record["t"]), record["kind"]
        except (KeyError, TypeError, ValueError):
            return
        if kind == "process":
            self.newest_sample_s = max(self.newest_sample_s, t_s)
        elif kind == "phase.start":
            self._next_look_s = min(self._next_look_s, t_s + 1.0)
            self._tell(t_s, "info", f"phase {record.get('phase')}")
        elif (told := tell_event(record)) is not None:
            self._tell(t_s, *told)
        while t_s >= self._next_look_s:
            self._look(self._next_look_s)
            self._next_look_s += 1.0

    def _tell(self, t_s: float, level: Level, text: str) -> None:
        self.events.append(StoryLine(t_s=t_s, level=level, text=text))

    def _look(self, t_s: float) -> None:
        self._look_at_flows(t_s)
        self.trail.api_server_memory_bytes.append(api_server_bytes(self.run, self.newest_sample_s))
        for probe, series in self.run.probes.items():
            for identity in dict.fromkeys(identity for identity, _ in series):
                self._look_at_probe(probe, identity, t_s)

    def _look_at_flows(self, t_s: float) -> None:
        found = [(flow, latest_interval(self.run, flow)) for flow in self.run.flows]
        fresh = [(flow, item) for flow, item in found if item is not None and item.end_s > t_s - _STALE_S]
        rates = [
            totals([item]).requests / (item.end_s - item.start_s) for _, item in fresh if item.end_s > item.start_s
        ]
        latency = totals([item for _, item in fresh]).latency_us
        self.trail.requests_per_s.append(sum(rates) if rates else None)
        self.trail.latency_p99_s.append(latency.quantile(0.99) / 1e6 if latency.count else None)
        for flow, item in fresh:
            if flow not in self._rolled_out and item.arrivals is None and 0 < item.target <= item.started:
                self._rolled_out.add(flow)
                self._tell(
                    item.end_s,
                    "good",
                    f"flow {flow}: all {item.started:,} {self.run.flow_units.get(flow, 'agents')} started",
                )

    def _look_at_probe(self, probe: str, identity: str, t_s: float) -> None:
        key = probe, identity
        since_s = locked_since_s(self.run, probe, identity, t_s)
        if since_s is not None and key not in self._locked:
            self._locked[key] = since_s
            self._tell(t_s, "bad", f"{probe} locked out as {identity} since {since_s:.1f} s")
        elif since_s is None and key in self._locked:
            answered_s = last_good_s(self.run, probe, identity) or t_s
            length = format_duration(answered_s - self._locked.pop(key))
            self._tell(answered_s, "good", f"{probe} answered again as {identity} after {length}")
