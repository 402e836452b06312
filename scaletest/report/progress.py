"""Progress of a run in plain lines: one for every event, and one every few seconds with the main numbers.

Records of the journal go in, lines come out. Time is that of the records, so the same journal gives the same lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TextIO

from scaletest.analysis.flows import is_good
from scaletest.core.journal import Record
from scaletest.core.texts import printable
from scaletest.core.units import format_bytes, format_count, format_duration, format_share
from scaletest.report.glyphs import to_ascii
from scaletest.report.story import tell_event

__all__ = ["STATUS_EVERY_S", "ProgressLines", "ProgressWriter"]

STATUS_EVERY_S: Final = 5.0
"""Often enough to see a rollout move, rare enough for the log of a CI job."""

_API_SERVER: Final = "kube-apiserver"


@dataclass(slots=True)
class _Flow:
    target: int = 0
    started: int = 0
    stopped: bool = False


class ProgressLines:
    """Turns records into lines; keeps only what the next status line needs."""

    def __init__(self, status_every_s: float = STATUS_EVERY_S) -> None:
        self._every_s = status_every_s
        self._next_s: float | None = None
        self._since_s = 0.0
        self._phase: str | None = None
        self._flows: dict[str, _Flow] = {}
        self._requests = 0
        self._failed = 0
        self._probes_s: list[float] = []
        self._probes_failed = 0
        self._memory_bytes: int | None = None

    def feed(self, record: Record) -> list[str]:
        """Take in a record and return the lines it gives rise to. A malformed record gives none."""
        try:
            t_s = float(record["t"])
            self._note(record)
            lines = self._event(t_s, record)
        except (KeyError, TypeError, ValueError, AttributeError):
            return []
        if self._phase is not None and self._next_s is not None and t_s >= self._next_s:
            lines.append(_line(t_s, self._status(t_s)))
            self._begin_interval(t_s)
        return lines

    def _event(self, t_s: float, record: Record) -> list[str]:
        kind = record["kind"]
        if kind == "phase.start":
            self._phase = str(record["phase"])
            self._begin_interval(t_s)
            return [_line(t_s, f"phase {self._phase}")]
        if kind == "phase.end":
            self._phase = None
            return []
        told = tell_event(record)
        return [] if told is None else [_line(t_s, told[1], mark="! " if told[0] in {"bad", "warning"} else "")]

    def _begin_interval(self, t_s: float) -> None:
        self._since_s, self._next_s = t_s, t_s + self._every_s
        self._requests = self._failed = self._probes_failed = 0
        self._probes_s = []

    def _note(self, record: Record) -> None:
        match record["kind"]:
            case "flow":
                self._note_flow(record)
            case "flow.start":
                # A search stops a flow after a load that failed and starts it again.
                self._flows[str(record["flow"])] = _Flow()
            case "flow.stop":
                self._flows.setdefault(str(record["flow"]), _Flow()).stopped = True
            case "probe":
                if record["ok"]:
                    self._probes_s.append(float(record["latency_s"]))
                elif record.get("outcome") not in {"skipped", "unfinished"}:
                    self._probes_failed += 1
            case "process":
                usage: Any = record["processes"].get(_API_SERVER)
                self._memory_bytes = int(usage["rss_bytes"]) if usage else None

    def _note_flow(self, record: Record) -> None:
        flow = self._flows.setdefault(str(record["flow"]), _Flow())
        if "arrivals" not in record:
            flow.target, flow.started = int(record["target"]), int(record["started"])
        for step in record["steps"].values():
            for outcome, count in step["outcomes"].items():
                self._requests += count
                self._failed += 0 if is_good(outcome) else count

    def _status(self, t_s: float) -> str:
        parts = [f"{self._phase}:"]
        running = [flow for flow in self._flows.values() if not flow.stopped]
        if running:
            started, target = sum(flow.started for flow in running), sum(flow.target for flow in running)
            if target:
                parts.append(f"{started:,} of {target:,} agents,")
            parts.append(f"{format_count(self._requests / (t_s - self._since_s))} req/s,")
            failed = self._failed / self._requests if self._requests else 0.0
            parts.append(f"{format_share(failed)} failed,")
        if self._probes_s or self._probes_failed:
            parts.append(f"probes {self._probes()},")
        memory = "down" if self._memory_bytes is None else format_bytes(self._memory_bytes)
        parts.append(f"API server {memory}")
        return " ".join(parts)

    def _probes(self) -> str:
        if not self._probes_s:
            return "without an answer"
        slowest = f"up to {format_duration(max(self._probes_s))}"
        return f"{slowest}, {self._probes_failed} failed" if self._probes_failed else slowest


def _line(t_s: float, text: str, *, mark: str = "") -> str:
    return f"{t_s:7.1f} s  {mark}{text}"


class ProgressWriter:
    """Writes progress to a stream, as plain text; a stream that went away ends the progress, not the run."""

    def __init__(self, stream: TextIO, lines: ProgressLines | None = None) -> None:
        self._stream: TextIO | None = stream
        self._lines = lines or ProgressLines()
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower()
        self._ascii = not encoding.replace("-", "").startswith("utf")

    def __call__(self, record: Record) -> None:
        """Write the lines that a record gives rise to."""
        for line in self._lines.feed(record):
            self._write(to_ascii(printable(line)) if self._ascii else printable(line))

    def _write(self, line: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None
