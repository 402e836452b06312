"""How often fake nodes renew their leases, what that costs, and how long a silent node stays Ready.

A kubelet renews its lease every 10 s. Seven thousand idle nodes at that rate cost 1.25 cores (measured:
660–700 lease writes a second; API server 0.7, etcd 0.25, kwok 0.2, controller-manager 0.15 of a core),
which is most of a small host. The *heartbeat factor* makes everything about heartbeats that many
times slower, as ``kwokctl --heartbeat-factor`` does; the report says which factor a run had.

The cost is that of heartbeats alone. In the minutes after 7,000 nodes were seeded, with controllers that meet them and a LIST of
nodes and leases every third of a renewal, the whole control plane took 1.80 cores at factor 1 and 0.88 at factor 5
(``benchmarks/seeding.py hold``): the difference is the heartbeats', the rest is not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from scaletest.core.units import format_duration

__all__ = ["AUTO_FACTORS", "Heartbeat", "heartbeat_for"]

AUTO_FACTORS: Final = (1, 2, 5, 10, 20)
"""The factors that ``auto`` chooses from."""

AUTO_SHARE_OF_CORES: Final = 0.15
"""The share of the host's cores that heartbeats may take when the factor is chosen by ``auto``."""

CORES_PER_NODE: Final = 1.25 / 7_000
"""Cost of one node's heartbeats at factor 1, in cores: measured at 7,000 idle nodes on 2 cores."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The heartbeat of a fleet. Times are what kwokctl 0.8 sets; at factor 1 they are a kubelet's."""

    factor: int
    lease_duration_s: int
    """Length of a node's lease: 40 s × factor."""
    renew_interval_s: float
    """Time between two renewals, with 4 % jitter: a quarter of the lease, as a kubelet."""
    grace_period_s: int
    """Silence after which the controller-manager calls a node not ready (``--node-monitor-grace-period``)."""
    monitor_period_s: int
    """How often the controller-manager looks at the nodes (``--node-monitor-period``)."""
    cost_cores: float
    """Estimated cost for the whole control plane, in cores."""

    def __str__(self) -> str:
        every, grace = format_duration(self.renew_interval_s), format_duration(self.grace_period_s)
        return f"every {every} (factor {self.factor}, about {self.cost_cores:.2f} cores), not ready after {grace}"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Heartbeat:
        """Read what ``to_json`` gave."""
        return cls(**data)


def heartbeat_for(*, nodes: int, cores: float, factor: int | Literal["auto"]) -> Heartbeat:
    """Return the heartbeat of ``nodes`` fake nodes on a host with ``cores`` cores.

    ``auto`` is the smallest of ``AUTO_FACTORS`` whose cost stays within ``AUTO_SHARE_OF_CORES``, else the largest.
    """
    chosen = _auto_factor(nodes, cores) if factor == "auto" else factor
    return Heartbeat(
        factor=chosen,
        lease_duration_s=40 * chosen,
        renew_interval_s=10.0 * chosen,
        grace_period_s=40 * chosen,
        monitor_period_s=5 * chosen,
        cost_cores=_cost_cores(nodes, chosen),
    )


def _auto_factor(nodes: int, cores: float) -> int:
    allowed_cores = AUTO_SHARE_OF_CORES * cores
    return next((factor for factor in AUTO_FACTORS if _cost_cores(nodes, factor) <= allowed_cores), AUTO_FACTORS[-1])


def _cost_cores(nodes: int, factor: int) -> float:
    return nodes * CORES_PER_NODE / factor
