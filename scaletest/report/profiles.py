"""Captured profiles as data: read from the run directory, added up over the servers, the largest of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from scaletest.analysis.captures import Capture, Hotspots, Waiting, captures, hotspots, waiting
from scaletest.analysis.pprof import Function, Profile, parse_profile
from scaletest.analysis.state import RunState
from scaletest.report import document as doc
from scaletest.report.rundir import LoadedRun

__all__ = ["tell_captures"]

_KEPT: Final = 20
"""Functions in the report, by flat and by cumulative value; all are in the files."""

_NANO: Final = 1e-9
_Found = TypeVar("_Found")


def tell_captures(run: LoadedRun) -> list[doc.CaptureReport]:
    """Tell the captures of a run, in order of time. What cannot be read is a problem of its capture."""
    return [_tell(run, capture) for capture in captures(run.state.profiles)]


def _tell(run: LoadedRun, capture: Capture) -> doc.CaptureReport:
    problems = [
        f"{item.profile} of {item.server}: {item.reason or item.outcome.replace('_', ' ')}"
        for item in capture.profiles
        if item.path is None
    ]
    read = {kind: _read(run.directory, capture, kind, problems) for kind in ("cpu", "heap", "goroutine")}
    cpu = _added(read["cpu"], lambda each: hotspots(each, "cpu"), problems)
    heap = _added(read["heap"], lambda each: hotspots(each, "heap"), problems)
    parked = _added(read["goroutine"], waiting, problems)
    return doc.CaptureReport(
        capture=capture.name,
        step=capture.step,
        load=_load(run.state, capture.step),
        t_s=capture.t_s,
        took_s=capture.took_s,
        servers=list(dict.fromkeys(item.server for item in capture.profiles)),
        files=[item.path for item in capture.profiles if item.path is not None],
        cpu=None if cpu is None else _cpu(cpu),
        heap=None if heap is None else _heap(heap),
        goroutines=None if parked is None else _goroutines(parked),
        problems=problems,
    )


def _load(state: RunState, step: int | None) -> str | None:
    if state.search is None or step is None:
        return None
    return next((item.load for item in state.search.steps if item.number == step), None)


def _read(directory: Path, capture: Capture, kind: str, problems: list[str]) -> list[Profile]:
    found: list[Profile] = []
    for item in capture.profiles:
        if item.profile != kind or item.path is None:
            continue
        try:
            found.append(parse_profile(_bytes(directory, item.path)))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            problems.append(f"{item.path} cannot be read: {why or error}")
    return found


def _bytes(directory: Path, path: str) -> bytes:
    """Read a file of the run directory. Raises OSError, and ValueError for one that lies elsewhere: the journal may be a stranger's."""
    file = (directory / path).resolve()
    if not file.is_relative_to(directory.resolve()):
        msg = "it lies outside the run directory"
        raise ValueError(msg)
    return file.read_bytes()


def _added(profiles: list[Profile], add: Callable[[Iterable[Profile]], _Found], problems: list[str]) -> _Found | None:
    """Add profiles up; None where there is none, or one is of another kind."""
    if not profiles:
        return None
    try:
        return add(profiles)
    except ValueError as error:
        problems.append(str(error))
        return None


def _cpu(found: Hotspots) -> doc.CpuReport:
    whole = found.total * _NANO
    return doc.CpuReport(
        duration_s=found.duration_s,
        cpu_s=whole,
        cores=whole / found.duration_s if found.duration_s else None,
        groups=_groups(found, _NANO),
        functions=_functions(found.functions[:_KEPT], found.total, _NANO),
        cumulative=_functions(_by_cum(found.functions), found.total, _NANO),
    )


def _heap(found: Hotspots) -> doc.HeapReport:
    return doc.HeapReport(
        bytes=float(found.total),
        groups=_groups(found, 1.0),
        functions=_functions(found.functions[:_KEPT], found.total, 1.0),
        cumulative=_functions(_by_cum(found.functions), found.total, 1.0),
    )


def _by_cum(found: Iterable[Function]) -> list[Function]:
    return sorted(found, key=lambda item: (-item.cum, item.name))[:_KEPT]


def _groups(found: Hotspots, unit: float) -> list[doc.ProfileGroup]:
    values: Mapping[str, int] = found.groups
    return [
        doc.ProfileGroup(group=group, value=value * unit, share=_share(value, found.total))
        for group, value in values.items()
    ]


def _functions(found: Iterable[Function], total: int, unit: float) -> list[doc.FunctionReport]:
    return [
        doc.FunctionReport(
            function=item.name, flat=item.flat * unit, flat_share=_share(item.flat, total), cum=item.cum * unit,
            cum_share=_share(item.cum, total),
        )
        for item in found
    ]  # fmt: skip


def _share(value: int, total: int) -> float | None:
    return value / total if total else None


def _goroutines(found: Waiting) -> doc.GoroutinesReport:
    return doc.GoroutinesReport(
        count=found.total,
        waiting=[
            doc.WaitingReport(function=item.function, waits_in=item.waits_in, count=item.count)
            for item in found.groups[:_KEPT]
        ],
    )
