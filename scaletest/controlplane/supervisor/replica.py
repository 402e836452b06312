"""One more of a component that runs: a further API server on the same etcd.

It is started as the first one was, from the arguments that the first one's shim recorded, with a few flags changed. From then on it is
a component like any other: with a shim, control groups, limits and restarts of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scaletest.controlplane.plan import ComponentPlan

__all__ = ["replica_plan", "with_flags"]


def replica_plan(original: ComponentPlan, name: str, port: int) -> ComponentPlan:
    """Return the plan of a replica: its log lies next to that of the original."""
    return replace(original, name=name, log=str(Path(original.log).with_name(f"{name}.log")), tcp_ports=(port,))


def with_flags(args: Sequence[str], flags: Mapping[str, str]) -> tuple[str, ...]:
    """Return arguments of the form ``--flag=value`` with some flags given other values, or added."""
    kept = [arg for arg in args if arg.partition("=")[0].lstrip("-") not in flags]
    return (*kept, *(f"--{flag}={value}" for flag, value in flags.items()))
