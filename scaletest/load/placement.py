"""Which node an agent stands on: the one with the fewest agents, in the order in which nodes were named."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

__all__ = ["Placement"]


class Placement:
    """Counts agents by node. A node that is gone gets no more."""

    def __init__(self, nodes: Iterable[str] = ()) -> None:
        self._counts: dict[str, int] = {}
        self._order: dict[str, int] = {}
        # Holds at least one true entry for each node; others are outdated and dropped when they come up.
        self._queue: list[tuple[int, int, str]] = []
        self.add(nodes)

    def add(self, nodes: Iterable[str]) -> None:
        """Add nodes; one that is known already stays as it is."""
        for node in nodes:
            if node not in self._counts:
                self._order[node] = len(self._order)
                self._set(node, 0)

    def remove(self, nodes: Iterable[str]) -> None:
        """Forget nodes."""
        for node in nodes:
            self._counts.pop(node, None)

    def place(self) -> str | None:
        """Return the node of the next agent, None when there is no node."""
        while self._queue:
            count, _, node = heapq.heappop(self._queue)
            if self._counts.get(node) == count:
                self._set(node, count + 1)
                return node
        return None

    def take_away(self, node: str) -> None:
        """Count that an agent left its node."""
        count = self._counts.get(node, 0)
        if count:
            self._set(node, count - 1)

    def _set(self, node: str, count: int) -> None:
        self._counts[node] = count
        heapq.heappush(self._queue, (count, self._order[node], node))
