"""The observer of a run: ``/metrics`` of every API server and of etcd, processes, and the host, into the journal.

Every source has a task of its own. A scrape has its own connection and a short time-out, because
``/metrics`` dies when it matters most: what cannot be had is a ``metrics.gap``, never a wait. Processes and
host come from ``/proc`` and do not depend on anything that is under test.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scaletest.core.access import ApiAccess
from scaletest.core.apiclient import Answer, ApiClient, HttpApiClient
from scaletest.core.journal import Journal
from scaletest.observe.families import apiserver_fields, etcd_fields
from scaletest.observe.histograms import LatencyDeltas
from scaletest.observe.periodic import periodically
from scaletest.observe.procfs import host_usage, process_usage, tree_usage
from scaletest.profile.schema import ObserveSpec

__all__ = ["Observer", "Pids", "Scrape", "Targets"]

Pids = Callable[[], Mapping[str, int | None]]
"""Gives the pids as they are now by the name used in the journal: components, ``supervisor``, ``driver``."""

SCRAPE_TIMEOUT_S: Final = 3.0
"""A healthy API server answers ``/metrics`` in 30 to 60 ms."""

_TREES: Final = frozenset({"driver"})
"""Processes whose descendants are counted with them. The supervisor's are the components, which count for themselves."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What there is to observe."""

    access: ApiAccess | None
    """The API servers, as ``system:masters``: exempt from API Priority and Fairness, so that a scrape never queues."""
    etcd_urls: tuple[str, ...]
    """Client URLs of etcd's members (``http://127.0.0.1:PORT``)."""
    pids: Pids


@dataclass(frozen=True, slots=True)
class Scrape:
    """One source of metrics: what its records are called and how its text becomes their fields."""

    kind: str
    target: str
    server: str
    client: ApiClient
    fields: Callable[[bytes], dict[str, Any]]
    deltas: LatencyDeltas | None = None
    """Of an API server."""

    async def once(self, journal: Journal, timeout_s: float) -> None:
        """Scrape and append what was found, or a gap."""
        answer = await self.client.get("/metrics", timeout_s=timeout_s, accept="text/plain")
        if not answer.ok:
            self.gap(journal, answer)
            return
        fields = self.fields(answer.body)
        journal.append(self.kind, server=self.server, latency_s=round(answer.latency_s, 4), **fields)
        grown = self.deltas.take(answer.body) if self.deltas is not None else None
        if grown is not None:
            journal.append("metrics.latency", server=self.server, families=grown)

    def gap(self, journal: Journal, answer: Answer) -> None:
        """Append a gap."""
        journal.append(
            "metrics.gap", target=self.target, server=self.server, outcome=answer.outcome, reason=answer.reason
        )


class Observer:
    """Observes until told to stop; its tasks survive every error and say what they missed."""

    def __init__(
        self, spec: ObserveSpec, targets: Targets, journal: Journal, *, scrape_timeout_s: float = SCRAPE_TIMEOUT_S
    ) -> None:
        self._spec = spec
        self._targets = targets
        self._journal = journal
        self._scrape_timeout_s = scrape_timeout_s

    async def run(self, stop: asyncio.Event) -> None:
        """Observe until ``stop`` is set."""
        scrapes = self._scrapes()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._sample_processes(stop))
                for scrape in scrapes:
                    group.create_task(self._scrape(scrape, stop))
        finally:
            for scrape in scrapes:
                await scrape.client.close()

    async def run_server(self, server: str, stop: asyncio.Event) -> None:
        """Observe one more API server, added during the run, until ``stop`` is set."""
        scrape = self._server_scrape(server)
        try:
            await self._scrape(scrape, stop)
        finally:
            await scrape.client.close()

    def _server_scrape(self, server: str) -> Scrape:
        client = HttpApiClient(server, access=self._targets.access, keep_s=2.5 * self._spec.metrics_every_s)
        return Scrape("metrics.apiserver", "kube-apiserver", server, client, apiserver_fields, LatencyDeltas())

    def _scrapes(self) -> list[Scrape]:
        keep_s = 2.5 * self._spec.metrics_every_s
        access = self._targets.access
        servers = [self._server_scrape(server) for server in (access.servers if access is not None else ())]
        members = [
            Scrape("metrics.etcd", "etcd", url, HttpApiClient(url, keep_s=keep_s), etcd_fields)
            for url in self._targets.etcd_urls
        ]
        return [*servers, *members]

    async def _scrape(self, scrape: Scrape, stop: asyncio.Event) -> None:
        def failed(error: Exception) -> None:
            scrape.gap(self._journal, Answer("error", 0.0, reason=f"{type(error).__name__}: {error}"))

        await periodically(
            self._spec.metrics_every_s, lambda: scrape.once(self._journal, self._scrape_timeout_s), failed, stop
        )

    async def _sample_processes(self, stop: asyncio.Event) -> None:
        def failed(error: Exception) -> None:
            reason = f"{type(error).__name__}: {error}"
            self._journal.append("metrics.gap", target="processes", server=None, outcome="error", reason=reason)

        async def sample() -> None:
            self._journal.append("host", **host_usage().to_json())
            self._journal.append("process", processes=sample_processes(self._targets.pids()))

        await periodically(self._spec.processes_every_s, sample, failed, stop)


def sample_processes(pids: Mapping[str, int | None]) -> dict[str, dict[str, Any]]:
    """Return usage by name of the processes that are there now, and of this one as ``cli``."""
    found: dict[str, dict[str, Any]] = {}
    for name, pid in {**pids, "cli": os.getpid()}.items():
        usage = None if pid is None else tree_usage(pid) if name in _TREES else process_usage(pid)
        if usage is not None:
            found[name] = usage.to_json()
    return found
