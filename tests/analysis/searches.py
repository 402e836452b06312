"""Builders of the records of a search."""

from __future__ import annotations

from typing import Any

from scaletest.core.journal import Record
from scaletest.core.rundir import RunInfo
from tests.analysis.journals import (
    GIB,
    MIB,
    apf_level,
    apiserver,
    driver,
    flow,
    probe,
    process,
    record,
    run_info,
    setup_records,
)
from tests.analysis.journals import step as journal_step


def start(t: float = 100.0, **more: Any) -> Record:
    fields = {
        "parameter": "agents", "unit": "", "start": 50.0, "end": 20_000.0, "resolution": 0.05, "whole": True, "factor": 2.0,
        "holds": ["probe.operator.p99 < 1s"], "flows": ["agents"], "back": 0.5, **more,
    }  # fmt: skip
    return record("search.start", t, **fields)


def step(number: int, value: float, outcome: str, t: float, **more: Any) -> list[Record]:
    """A step of 40 s from ``t``, of which the last 30 s were steady."""
    begun = {
        "stage": "search",
        "factor": None,
        "why": "ramp",
        "nodes": 50,
        **_picked(more, "stage", "factor", "why", "nodes"),
    }
    ended = {
        "steady": [t + 10, t + 40], "dropped_s": 5.0, "settled": True, "trends": {}, "health": [], "reason": "",
        "holds": [{"check": "probe.operator.p99 < 1s", "holds": outcome == "held", "said": "0.3 s"}], **more,
    }  # fmt: skip
    return [
        record("search.step.start", t, step=number, value=value, load=f"{value:g}", **begun),
        record("search.step.end", t + 40, step=number, load=f"{value:g}", outcome=outcome, **ended),
    ]


def steps(*tried: tuple[float, str], t: float = 110.0) -> list[Record]:
    """Steps one after the other, 50 s apart."""
    return [
        item for index, (value, outcome) in enumerate(tried) for item in step(index + 1, value, outcome, t + 50 * index)
    ]


def end(t: float, reason: str = "found") -> Record:
    return record("search.end", t, reason=reason)


def _picked(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: fields.pop(name) for name in names if name in fields}


FOUND = [
    (50, "held"), (100, "held"), (200, "held"), (400, "failed"), (280, "held"), (340, "failed"), (310, "failed"),
    (290, "held"), (300, "held"), (300, "held"), (310, "failed"),
]  # fmt: skip
"""The trials of a search that finds 300 to 310."""


CAPACITY_BYTES_PER_S = 100e6
BYTES_PER_AGENT = 10_600.0
PERIOD_S = 10.0


def measured_search(*, returns: bool = True, room_up_to: float = 0.0) -> list[Record]:
    """A whole search of agents that list what stands on their nodes, with what a server of 100 MB/s would have answered.

    Up to ``room_up_to`` agents it has room on average, whatever held.

    The agents law has its limit at √(100 MB/s × 10 s / 10.6 KB) = 307.
    """
    tried: list[tuple[float, str, dict[str, Any]]] = [(value, outcome, {}) for value, outcome in FOUND]
    past: list[tuple[float, str, dict[str, Any]]] = [
        (300 * factor, "failed", {"stage": "past", "factor": factor, "why": "past"}) for factor in (1.25, 1.5, 2.0, 4.0)
    ]
    records, t, cpu_s = (
        [*setup_records(), record("phase.start", 90.0, phase="search"), start(flows=["agents"])],
        110.0,
        0.0,
    )
    for number, (value, outcome, more) in enumerate([*tried, *past], start=1):
        records += step(number, value, outcome, t, **more)
        records += _seconds(value, t + 10, cpu_s, room_up_to=room_up_to)
        cpu_s += 30 * _cores(value, room_up_to)
        t += 50.0
    back: dict[str, Any] = {
        "stage": "back",
        "factor": 0.5,
        "why": "the load goes back",
        "steady": None,
        "waited_s": 60.0,
        "taken_back": True,
    }
    if returns:
        back["recovered_after_s"] = 3.5
    records += step(len(tried) + len(past) + 1, 150, "held" if returns else "failed", t, **back)
    records += _seconds(150 if returns else 1_200, t + 10, cpu_s)
    return [*records, end(700.0), record("phase.end", t + 60, phase="search", reason="done")]


def search_info() -> RunInfo:
    """The ``run.json`` of ``measured_search``."""
    profile: dict[str, Any] = dict(run_info().profile) | {
        "name": "saturation-agents",
        "summary": "How many nodes can have an agent that lists all pods.",
        "flows": {"agents": {"agents": {"perNode": 1, "rollout": "10/s"}, "steps": [{"list": "pods", "every": "10s"}]}},
        "objectives": [{"check": "search.capacity >= 250", "abort": False, "delay": "0s"}],
    }
    return run_info(id="20261130T120000Z-saturation-agents", profile=profile)


def _cores(agents: float, room_up_to: float = 0.0) -> float:
    if agents <= room_up_to:
        return 1.0
    return min(1.45, 0.1 + 1.35 * agents**2 * BYTES_PER_AGENT / PERIOD_S / CAPACITY_BYTES_PER_S)


def _seconds(agents: float, t: float, cpu_s: float, *, room_up_to: float = 0.0) -> list[Record]:
    """Thirty seconds of a step: the server answers what it can, and operators wait where it cannot answer all."""
    size = agents * BYTES_PER_AGENT
    wanted_per_s = agents / PERIOD_S
    answered = round(10 * min(wanted_per_s, CAPACITY_BYTES_PER_S / size))
    slow = wanted_per_s * size > CAPACITY_BYTES_PER_S
    queued = slow and agents > room_up_to
    cores = _cores(agents, room_up_to)
    records = [process(t - 0.01, kube_apiserver=(101, GIB, cpu_s))]
    for second in range(0, 30, 10):
        at = t + second + 10
        list_pods = journal_step([4_000_000 if slow else 300_000] * answered, bytes=round(answered * size))
        records += [
            flow(
                at - 0.01, steps={"list-pods": list_pods}, interval_s=10.0, target=round(agents), started=round(agents)
            ),
            driver(at - 0.01, interval_s=10.0),
            process(at - 0.01, kube_apiserver=(101, GIB + 4 * MIB * agents, cpu_s + cores * (second + 10))),
            apiserver(
                at - 0.01,
                workload_low=apf_level(seats_limit=245, seats_in_use=200 if queued else 20, queued=40 if queued else 0),
            ),
            *(probe(at - 10 + each, 2.0 if slow else 0.05) for each in range(10)),
        ]
    return records
