"""Counting Ready nodes from the table that ``kubectl get nodes`` shows.

The table holds a few hundred bytes for each node where the objects hold kilobytes, and its STATUS column is
what people look at: ``Ready``, ``NotReady``, ``Unknown`` (no Ready condition yet), each perhaps with
``,SchedulingDisabled`` (printNode in kubernetes/pkg/printers/internalversion/printers.go).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["TABLE_ACCEPT", "TABLE_PATH", "NodeCounts", "count_nodes"]

TABLE_ACCEPT: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
TABLE_PATH: Final = "/api/v1/nodes?includeObject=None&resourceVersion=0"


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """Nodes by what their STATUS says; everything that is not Ready is not ready."""

    ready: int
    not_ready: int

    @property
    def total(self) -> int:
        """All nodes."""
        return self.ready + self.not_ready


def count_nodes(body: bytes) -> NodeCounts:
    """Count the rows of a table of nodes. Raises ValueError when it is none."""
    try:
        table: Any = json.loads(body)
        columns = [str(column["name"]).lower() for column in table["columnDefinitions"]]
        status = columns.index("status")
        states = [str(row["cells"][status]) for row in table.get("rows") or []]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        msg = f"not a table of nodes: {type(error).__name__}: {error}"
        raise ValueError(msg) from None
    ready = sum(state == "Ready" or state.startswith("Ready,") for state in states)
    return NodeCounts(ready, len(states) - ready)
