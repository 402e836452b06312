"""What kind of number a metric is: its unit, which way is better, how two values are compared, and how much is much.

Metrics have the names of objectives (``flow.telemetry.p99``); the kind follows from scope and measure, so that a saved baseline needs
names and numbers only.

``least`` is the smallest change worth a word. ``run_sd`` is how much the same run, done again on the same machine, differs: it is
assumed where a side has too few runs to show its own spread. ``floor_sd`` is the least spread that is believed of repeats: five equal values of
a histogram with a resolution of 0.1 % prove no certainty. All three are of the logarithm for ratios, and in the metric's unit for
differences. The figures are frozen with the gate (docs/decisions/021-comparison.md says what they were tried on).
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["ANY", "MEASURES", "Better", "Metric", "MetricKind", "Scale", "Unit", "kind_of", "section_of", "split_name"]

Unit = Literal["seconds", "share", "bytes", "per_second", "cores", "count"]
Better = Literal["lower", "higher"]

ANY: Final = "*"
"""Stands for anything in the name of a metric: in a rule, and in names that only a run will fill."""

_PARTS: Final = re.compile(r"(?:[^.\[]|\[[^\]]*\])+")


class Scale(enum.StrEnum):
    """How two values are compared."""

    RATIO = "ratio"
    """New by base: what is always more than 0."""
    DIFFERENCE = "difference"
    """New less base: shares and counts, which may be 0, and times that may be none."""


@dataclass(frozen=True, slots=True)
class MetricKind:
    """One kind of metric."""

    unit: Unit
    better: Better
    scale: Scale
    least: float
    run_sd: float
    floor_sd: float
    least_share: float = 0.0
    """Of differences: the smallest change also as a share of the base."""
    least_step: float = 0.0
    """Of ratios: the smallest change also in the unit itself."""

    def least_change(self, base: float) -> float:
        """Return the smallest change that is called, beside a base value; of ratios their distance from 1."""
        if self.scale is Scale.DIFFERENCE:
            return max(self.least, self.least_share * abs(base))
        return max(self.least, self.least_step / max(base, self.least_step / 100)) if self.least_step else self.least

    def is_large(self, change: float, base: float) -> bool:
        """Whether a change beside a base value is one that is called; of exactly the smallest size it may round to just under it."""
        return abs(change) >= self.least_change(base) * (1 - 1e-9)


def _ratio(unit: Unit, least: float, run_sd: float, better: Better = "lower", *, step: float = 0.0) -> MetricKind:
    return MetricKind(unit, better, Scale.RATIO, least, run_sd, 0.01, least_step=step)


def _share(better: Better) -> MetricKind:
    return MetricKind("share", better, Scale.DIFFERENCE, 0.01, 0.005, 0.002)


_TYPICAL: Final = _ratio("seconds", 0.10, 0.12)
_TAIL: Final = _ratio("seconds", 0.15, 0.20)
_DISK: Final = _ratio("seconds", 0.25, 0.30)
_TIME: Final = MetricKind("seconds", "lower", Scale.DIFFERENCE, 5.0, 3.0, 0.5, least_share=0.10)
_COUNT: Final = MetricKind("count", "lower", Scale.DIFFERENCE, 1.0, 0.5, 0.2)

_KINDS: Final[dict[str, MetricKind]] = {
    **dict.fromkeys(("p50", "p90", "event_p50", "service_p50"), _TYPICAL),
    **dict.fromkeys(("p99", "event_p99", "service_p99"), _TAIL),
    **dict.fromkeys(("fsync_p99", "commit_p99"), _DISK),
    **dict.fromkeys(("locked_out", "recovery", "slo_recovery"), _TIME),
    **dict.fromkeys(("restarts", "oom_kills"), _COUNT),
    "recovered": MetricKind("share", "higher", Scale.DIFFERENCE, 0.5, 0.2, 0.1),
    "error_rate": _share("lower"),
    "success_rate": _share("higher"),
    "rate": _ratio("per_second", 0.05, 0.03, "higher"),
    "answer_bytes": _ratio("bytes", 0.05, 0.02),
    "memory": _ratio("bytes", 0.10, 0.06),
    # The kernel counts CPU in ticks of 10 ms: an idle process has one more or less in ten seconds, which is half or twice as much.
    "cpu": _ratio("cores", 0.10, 0.12, step=0.02),
    "rejected": MetricKind("count", "lower", Scale.DIFFERENCE, 10.0, 10.0, 2.0, least_share=0.25),
    "db_size": _ratio("bytes", 0.10, 0.05),
    "capacity": _ratio("count", 0.05, 0.05, "higher"),
}
"""Kinds by measure. ``recovered`` is 1 for a run that had recovered at its end, else 0."""

MEASURES: Final = tuple(_KINDS)
"""What metrics measure: the ends of their names."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one run."""

    value: float
    """Over the whole, in base units; NaN when not measured, infinite when there was no answer."""
    blocks: tuple[float, ...] = ()
    """The same over equal blocks of time of the steady part, those in which it was measured; empty where that makes no sense."""


def kind_of(name: str) -> MetricKind | None:
    """Return the kind of a metric by its name; None for one that this version of scaletest does not know."""
    return _KINDS.get(split_name(name)[-1])


def split_name(name: str) -> list[str]:
    """Split a name at its dots, those within brackets aside: ``probe``, ``operator[system:masters]``, ``p99``."""
    return _PARTS.findall(name) or [name]


def section_of(name: str) -> tuple[str, str]:
    """Return the section of a table in which a metric stands, and what it is called there."""
    scope, *rest = split_name(name)
    if len(rest) < 2:
        return _title(scope), ".".join(rest) or scope
    return f"{_title(scope)} {rest[0]}", ".".join(rest[1:])


def _title(scope: str) -> str:
    return {"apf": "Priority level", "etcd": "etcd"}.get(scope, scope.capitalize())
