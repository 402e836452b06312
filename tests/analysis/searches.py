"""Builders of the records of a search."""

from __future__ import annotations

from typing import Any

from scaletest.core.journal import Record
from tests.analysis.journals import record


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
        record("search.step.end", t + 40, step=number, outcome=outcome, **ended),
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
