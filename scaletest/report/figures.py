"""The main numbers of a run as a flat list with names, units and direction: what monitoring and trend charts take.

They are those that the report shows, of the whole measured time, and every probe and search has them. Comparisons have measures of their own
(``analysis.measures``): of the steady part alone, in blocks, and none that rests on too few samples. Neither list can be made from the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from scaletest.report.document import ComponentReport, Document, FlowReport, ProbeReport

__all__ = ["Better", "Figure", "figures"]

Better = Literal["smaller", "bigger"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that a later run can be held against."""

    subject: str
    """As in objectives: ``flow.telemetry.list-pods``."""
    measure: str
    unit: str
    value: float
    better: Better


def figures(document: Document) -> list[Figure]:
    """Return the figures of a run that were measured."""
    found = [*_saturation(document)]
    for flow in document.flows:
        found += _flow(flow)
    for probe in document.probes:
        found += _probe(probe)
    for component in document.components:
        found += _component(component)
    return found


def _saturation(document: Document) -> Iterator[Figure]:
    found = document.saturation
    if found is not None and found.capacity is not None:
        unit = found.unit.strip() or found.parameter
        yield Figure("search", "capacity", unit, found.capacity, "bigger")


def _flow(flow: FlowReport) -> Iterator[Figure]:
    for step in flow.steps:
        subject = f"flow.{flow.flow}.{step.step}"
        yield from _known(subject, "seconds", "smaller", p50=step.p50_s, p99=step.p99_s)
        yield from _known(subject, "seconds", "smaller", event_p99=step.event_p99_s)
        yield from _known(subject, "requests/s", "bigger", rate=step.rate_per_s)
        share = step.failed / step.requests if step.requests else None
        yield from _known(subject, "share", "smaller", error_rate=share)


def _probe(probe: ProbeReport) -> Iterator[Figure]:
    subject = f"probe.{probe.probe}[{probe.identity}]"
    yield from _known(subject, "seconds", "smaller", p50=probe.p50_s, p99=probe.p99_s)
    yield from _known(subject, "seconds", "smaller", locked_out=probe.longest_lockout_s)
    yield from _known(subject, "share", "bigger", success_rate=probe.success_rate)


def _component(component: ComponentReport) -> Iterator[Figure]:
    subject = f"component.{component.component}"
    yield from _known(subject, "bytes", "smaller", memory=component.memory_max_bytes)
    yield from _known(subject, "cores", "smaller", cpu=component.cpu_mean_cores)
    if component.memory_cap_bytes is not None:
        yield from _known(subject, "kills", "smaller", oom_kills=component.oom_kills)


def _known(subject: str, unit: str, better: Better, **values: float | None) -> Iterator[Figure]:
    for measure, value in values.items():
        if value is not None:
            yield Figure(subject, measure, unit, float(value), better)
