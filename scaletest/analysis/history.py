"""Many runs of a profile in time order: each metric as a series, where its level shifted, and what else changed about then.

Runs that are invalid or were cut short are left out. Metrics of the steady part are of the runs that are steady in the commonest phase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from scaletest.analysis.changepoints import Segmenter, Shift, find_shifts, why_untold
from scaletest.analysis.changes import SETTING, Setting
from scaletest.analysis.comparison import Difference, LeftOut, differences_of, is_of_steady_part, why_not_valid
from scaletest.analysis.measures import RunMeasures
from scaletest.analysis.metrickinds import MetricKind, kind_of

__all__ = ["History", "MetricHistory", "MetricShift", "Nearby", "histories", "in_time_order", "metrics_of"]

_NEAR: Final = 2
"""A shift may be found so many runs before or after the place where it is."""


@dataclass(frozen=True, slots=True)
class Nearby:
    """Something beside the numbers that changed at a shift, or close to it."""

    runs_after: int
    """From the shift to the first run that has the new value: 0 at the shift, −1 one run before it."""
    difference: Difference


@dataclass(frozen=True, slots=True)
class MetricShift:
    """A shift of a metric, and the runs around it."""

    shift: Shift
    run: int
    """Index of the first run of the new level among the counted ones."""
    nearby: tuple[Nearby, ...]


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """One metric over all counted runs."""

    metric: str
    kind: MetricKind
    values: tuple[float | None, ...]
    """One for each run; None where it was not measured."""
    shifts: tuple[MetricShift, ...]
    why: str | None
    """Why no shift could be told."""


@dataclass(frozen=True, slots=True)
class History:
    """All runs of one profile."""

    profile: str
    runs: tuple[RunMeasures, ...]
    """Those that count, in time order."""
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    metrics: tuple[MetricHistory, ...]


def in_time_order(runs: Sequence[RunMeasures]) -> list[RunMeasures]:
    """Return runs by the time of their start; one that comes twice (in a directory and in a baseline) once."""
    once = {(run.id, run.started_at): run for run in reversed(runs)}
    return sorted(once.values(), key=lambda run: (_time(run.started_at), run.id))


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def metrics_of(runs: Sequence[RunMeasures]) -> list[str]:
    """Return every metric that any of some runs has, as far as this version of scaletest knows its kind."""
    return [name for name in dict.fromkeys(name for run in runs for name in run.metrics) if kind_of(name) is not None]


def histories(
    runs: Sequence[RunMeasures],
    segment: Segmenter,
    wanted: Callable[[str], bool] = lambda _: True,
    setting: Setting = SETTING,
) -> list[History]:
    """Return the history of each profile, those first whose first run is older; ``wanted`` picks metrics by name."""
    by_profile: dict[str, list[RunMeasures]] = {}
    for run in in_time_order(runs):
        by_profile.setdefault(str(run.profile.get("name")), []).append(run)
    return [_history(profile, found, segment, wanted, setting) for profile, found in by_profile.items()]


def _history(
    profile: str,
    runs: Sequence[RunMeasures],
    segment: Segmenter,
    wanted: Callable[[str], bool],
    setting: Setting,
) -> History:
    counted = tuple(run for run in runs if run.valid)
    phases = Counter(run.steady_phase for run in counted).most_common()
    names = [name for name in metrics_of(counted) if wanted(name)]
    series = [_Series(name, counted, _indices(name, counted, phases[0][0])) for name in names]
    having = [item for item in series if item.indices]
    metrics = [_metric(item, segment, len(having), setting) for item in having]
    return History(
        profile=profile,
        runs=counted,
        left_out=tuple(LeftOut(run.id, why_not_valid(run)) for run in runs if not run.valid),
        notes=tuple(_notes(counted, phases)),
        metrics=tuple(metrics),
    )


def _notes(counted: Sequence[RunMeasures], phases: Sequence[tuple[str | None, int]]) -> Iterator[str]:
    if len(phases) > 1:
        others = ", ".join(f"{count} in {phase or 'none'}" for phase, count in phases[1:])
        yield (
            f"metrics of the steady part are of the {phases[0][1]} runs that are steady in {phases[0][0] or 'no phase'}; others: {others}"
        )
    differences = differences_of(counted[:1], counted[1:]) if counted else ()
    for what in dict.fromkeys(item.what for item in differences):
        keys = [item.key for item in differences if item.what is what]
        more = f" and {len(keys) - 4} more" if len(keys) > 4 else ""
        yield f"the runs are not all of the same {what}: {', '.join(keys[:4])}{more}"


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    runs: Sequence[RunMeasures]
    indices: Sequence[int]
    """Of the runs that have the metric, in a phase that is comparable."""


def _indices(name: str, runs: Sequence[RunMeasures], phase: str | None) -> list[int]:
    anywhere = not is_of_steady_part(name)
    return [
        index for index, run in enumerate(runs) if name in run.metrics and (anywhere or run.steady_phase == phase)
    ]  # fmt: skip


def _metric(series: _Series, segment: Segmenter, count: int, setting: Setting) -> MetricHistory:
    kind = kind_of(series.name)
    assert kind is not None
    having = [series.runs[index] for index in series.indices]
    values = [run.metrics[series.name].value for run in having]
    why = why_untold(kind, values, setting)
    shifts = [] if why else find_shifts(kind, values, segment, series=count, setting=setting)
    of_run = dict(zip(series.indices, values, strict=True))
    return MetricHistory(
        metric=series.name,
        kind=kind,
        values=tuple(of_run.get(index) for index in range(len(series.runs))),
        shifts=tuple(
            MetricShift(shift, series.indices[shift.at], tuple(_nearby(having, shift.at))) for shift in shifts
        ),
        why=why,
    )


def _nearby(runs: Sequence[RunMeasures], at: int) -> list[Nearby]:
    """Return what differs between neighbours around a shift, what is closest first; each key once."""
    found: dict[tuple[str, str], Nearby] = {}
    for runs_after in sorted(range(-_NEAR, _NEAR + 1), key=abs):
        first_new = at + runs_after
        if 0 < first_new < len(runs):
            for item in differences_of(runs[first_new - 1 : first_new], runs[first_new : first_new + 1]):
                found.setdefault((item.what, item.key), Nearby(runs_after, item))
    return list(found.values())
