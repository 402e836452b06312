"""Which cores make load and which are under test: apart, where there are enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from scaletest.core.units import whole_number
from scaletest.profile.schema import FlowSpec, Profile

__all__ = ["APART_FROM_CORES", "AUTO", "CorePlan", "plan_cores", "process_overrides", "processes_of"]

AUTO: Final = "auto"

APART_FROM_CORES: Final = 4
"""With fewer, a core taken from a control plane is a third or half of what is measured."""

_AUTO_SHARE: Final = 4
"""One core in so many makes load: a LIST costs the generator 2.4 ms of CPU per MB (decision 013), and the API server 6 (1.31) to 10 (1.37)."""

_MOST_PROCESSES: Final = 64
"""As the profile's schema has it."""

_SEVERAL: Final = {"agents", "watchers", "arrivals", "etcd"}
"""Kinds of flows that several processes can make. A churn is one client, and a locustfile's users know nothing of each other's process."""


@dataclass(frozen=True, slots=True)
class CorePlan:
    """CPUs by number, as the kernel counts them. Both empty: everybody shares all of them."""

    generator: tuple[int, ...] = ()
    control_plane: tuple[int, ...] = ()


def plan_cores(cpus: Iterable[int], usable_cores: float, processes: int) -> CorePlan:
    """Give the last CPUs to the generator, one for each process and half of them at most, and the others to the control plane.

    ``usable_cores`` is less than the number of ``cpus`` where a quota lets nobody use them all: then those that are apart would not be to spare.
    """
    there = sorted(cpus)
    if min(len(there), usable_cores) < APART_FROM_CORES:
        return CorePlan()
    count = min(max(1, processes), len(there) // 2)
    return CorePlan(tuple(there[-count:]), tuple(there[:-count]))


def processes_of(profile: Profile) -> int:
    """Return the processes that make load at one time, at most: those of each flow's own, and the load driver where it makes some."""
    flows = profile.flows.values()
    own = sum(spec.processes for spec in flows if spec.has_own_processes)
    return max(1, own + any(not spec.has_own_processes for spec in flows))


def process_overrides(flows: Mapping[str, FlowSpec], wanted: str, usable_cores: float) -> list[str]:
    """Return as ``--set`` would say it that each flow that can have several processes is made by so many.

    ``flows`` are those of a resolved profile. ``auto`` is one for each four cores. Raises ValueError for what is no number of processes.
    """
    if wanted == AUTO:
        count = max(1, min(_MOST_PROCESSES, int(usable_cores) // _AUTO_SHARE))
    else:
        number = whole_number(wanted)
        if number is None or not 1 <= number <= _MOST_PROCESSES:
            msg = f"{wanted!r} is no number of processes: write 1 to {_MOST_PROCESSES}, or {AUTO}"
            raise ValueError(msg)
        count = number
    return [f"flows.{name}.{flow.kind}.processes={count}" for name, flow in flows.items() if flow.kind in _SEVERAL]
