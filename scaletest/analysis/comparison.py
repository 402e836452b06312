"""Two sets of runs held against each other: which of their runs count, what beside the numbers differs, which metrics changed.

Runs that are invalid or were cut short are left out; where a side has no other, they are shown and gate nothing.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scaletest.analysis.changes import SETTING, Change, Setting, compare_metrics
from scaletest.analysis.measures import RunMeasures
from scaletest.analysis.metrickinds import Metric, kind_of, split_name
from scaletest.profile.places import dotted, leaves, show

__all__ = [
    "Comparison",
    "Difference",
    "LeftOut",
    "RunSet",
    "What",
    "compare",
    "differences_of",
    "is_of_steady_part",
    "names_of",
    "profile_and_host_differences",
    "why_not_valid",
]


class What(enum.StrEnum):
    """In what two runs can differ beside their numbers."""

    PROFILE = "profile"
    HOST = "host"
    VERSIONS = "versions"
    LIMITS = "limits"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same on both sides."""

    what: What
    key: str
    base: str
    new: str

    def __str__(self) -> str:
        return f"{self.what} {self.key}: {self.base} and {self.new}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that is not counted."""

    run: str
    why: str


@dataclass(frozen=True, slots=True)
class RunSet:
    """What one argument of the command line stands for: at least one run."""

    name: str
    runs: tuple[RunMeasures, ...]
    is_baseline: bool = False
    passed_over: tuple[LeftOut, ...] = ()
    """What a pattern or a directory of runs holds beside them, and that cannot be read."""

    @property
    def valid(self) -> bool:
        """Whether there is a run that means something."""
        return any(run.valid for run in self.runs)

    @property
    def counted(self) -> list[RunMeasures]:
        """The runs whose numbers are compared."""
        return [run for run in self.runs if run.valid] if self.valid else list(self.runs)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sets of runs, held against each other."""

    base: RunSet
    new: RunSet
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    changes: tuple[Change, ...]
    lost: tuple[str, ...]
    """Metrics that the base has and the new side has not."""


def compare(base: RunSet, new: RunSet, setting: Setting = SETTING) -> Comparison:
    """Compare a set of runs with another."""
    notes = [*_left_out(base), *_left_out(new)]
    sides: list[list[Mapping[str, Metric]]] = [[run.metrics for run in side.counted] for side in (base, new)]
    phases = {run.steady_phase for side in (base, new) for run in side.counted}
    if len(phases) > 1:
        names = ", ".join(sorted(phase or "none" for phase in phases))
        notes.append(f"the runs are steady in different phases ({names}): only what happens once is compared")
        sides = [
            [{name: metric for name, metric in run.items() if not is_of_steady_part(name)} for run in side]
            for side in sides
        ]
    base_metrics, new_metrics = sides
    known = {name for run in new_metrics for name in run}
    lost = dict.fromkeys(name for run in base_metrics for name in run if name not in known and kind_of(name))
    differences = differences_of(base.counted, new.counted)
    changes = compare_metrics(base_metrics, new_metrics, setting)
    return Comparison(base, new, differences, tuple(notes), tuple(changes), tuple(lost))


_ONCE: Final = frozenset({"locked_out", "restarts", "oom_kills", "rejected"})


def is_of_steady_part(name: str) -> bool:
    """Whether a metric is taken over the steady part of a run, and not over all of it."""
    scope, measure = split_name(name)[0], split_name(name)[-1]
    return scope not in {"incident", "search"} and measure not in _ONCE


def _left_out(side: RunSet) -> Iterator[str]:
    bad = [run for run in side.runs if not run.valid]
    if bad and side.valid:
        yield f"{side.name}: {len(bad)} of {len(side.runs)} runs left out: {why_not_valid(bad[0])}"
    elif bad:
        yield f"{side.name}: no valid run: {why_not_valid(bad[0])}"


def why_not_valid(run: RunMeasures) -> str:
    """Say why a run is left out."""
    return f"{run.id} is {run.outcome}" + (f" ({run.reason})" if run.reason else "")


_PROFILE_ASIDE: Final = frozenset({"summary", "sizes", "slo", "objectives", "parameters", "gate"})
"""What has no influence on what a run does; parameters have it where they are put in."""

_HOST_KEYS: Final = (
    "cores",
    "usable_cores",
    "memory_bytes",
    "memory_limit_bytes",
    "cpu_model",
    "architecture",
    "kernel",
)
_MEMORY_SHARE: Final = 0.02
"""The same machine shows a little more or less memory with each kernel."""


def differences_of(base: Sequence[RunMeasures], new: Sequence[RunMeasures]) -> tuple[Difference, ...]:
    """Return everything in which any run differs from the first base run, the first value of each key that does."""
    first = base[0]
    found: dict[tuple[What, str], Difference] = {}
    for run in [*base[1:], *new]:
        for difference in _differences(first, run):
            found.setdefault((difference.what, difference.key), difference)
    return tuple(found.values())


def profile_and_host_differences(
    base: RunMeasures, profile: Mapping[str, Any], host: Mapping[str, Any]
) -> list[Difference]:  # fmt: skip
    """Return in what a run that is still to come will differ from a base, as far as that is known."""
    return [
        *_unequal(What.PROFILE, _compared_profile(base.profile), _compared_profile(profile)),
        *_unequal(What.HOST, _compared_host(base.host), _compared_host(host)),
    ]


def _differences(base: RunMeasures, new: RunMeasures) -> Iterator[Difference]:
    yield from profile_and_host_differences(base, new.profile, new.host)
    yield from _unequal(What.VERSIONS, base.versions, new.versions)
    yield from _unequal(What.LIMITS, _flat(base.limits), _flat(new.limits))


def _unequal(what: What, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for key in dict.fromkeys([*before, *after]):
        if not _equal(what, key, before.get(key), after.get(key)):
            yield Difference(what, key, show(before.get(key)), show(after.get(key)))


def _compared_profile(profile: Mapping[str, Any]) -> dict[str, Any]:
    compared = {key: value for key, value in profile.items() if key not in _PROFILE_ASIDE}
    control_plane = compared.get("controlPlane")
    if isinstance(control_plane, Mapping):
        # Limits are compared as they held: a matrix writes its own into the profile.
        compared["controlPlane"] = {key: value for key, value in control_plane.items() if key != "limits"}
    return _flat(compared)


def _compared_host(host: Mapping[str, Any]) -> dict[str, Any]:
    return {key: host.get(key) for key in _HOST_KEYS}


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    return {dotted(path): value for path, value in leaves(dict(values)) if path}


def _equal(what: What, key: str, before: Any, after: Any) -> bool:
    if what is What.HOST and key.startswith("memory") and isinstance(before, int) and isinstance(after, int):
        return math.isclose(before, after, rel_tol=_MEMORY_SHARE)
    return bool(before == after)


def names_of(comparison: Comparison) -> list[str]:
    """Return every metric that either side has."""
    sides = (comparison.base, comparison.new)
    metrics: list[Mapping[str, Metric]] = [run.metrics for side in sides for run in side.counted]
    return list(dict.fromkeys(name for run in metrics for name in run))
