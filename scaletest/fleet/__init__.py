"""The fleet: fake nodes and the objects that stand on them.

``seed_fleet`` creates the first object of each kind as real components do, and stamps the others straight into etcd
(see ``stamping`` and docs/decisions/005). Nothing heavy is imported before it is used.
"""

from scaletest.fleet.fleet import FleetState, FleetTarget, Progress, seed_fleet
from scaletest.fleet.names import node_names
from scaletest.fleet.ready import wait_nodes_ready
from scaletest.fleet.shrinking import ShrinkResult

__all__ = ["FleetState", "FleetTarget", "Progress", "ShrinkResult", "node_names", "seed_fleet", "wait_nodes_ready"]
