"""Run a profile's probes until told to stop: each identity at each API server, open loop, into the journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from scaletest.core.access import ApiAccess
from scaletest.core.apiclient import HttpApiClient
from scaletest.core.journal import Journal
from scaletest.probes.probe import UNFINISHED, Observation, Probe, make_probe
from scaletest.probes.schedule import OpenLoop, most_in_flight, run_open_loop
from scaletest.profile.schema import ProbeSpec

__all__ = ["AccessFor", "ProbeTask", "probe_tasks", "run_probes"]

AccessFor = Callable[[str], ApiAccess]
"""Gives access as an identity (``system:masters``, ``admin``)."""


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """One probe at work: its name, who asks which server, and how often."""

    name: str
    identity: str
    server: str
    probe: Probe
    every_s: float
    timeout_s: float

    async def run(self, journal: Journal, stop: asyncio.Event, *, offset_s: float = 0.0) -> None:
        """Observe every ``every_s``, the first time after ``offset_s``, until ``stop``.

        Every due time becomes one record: ``probe`` (or ``probe.nodes``), or ``probe.missed`` when nothing was sent.
        """

        def record(due_s: float, sent_s: float, observation: Observation) -> None:
            journal.append(
                self.probe.kind,
                probe=self.name, identity=self.identity, server=self.server,
                sent_t=round(sent_s - journal.clock_origin_s, 4), late_s=round(sent_s - due_s, 4),
                **observation.fields(self.probe.kind),
            )  # fmt: skip

        async def send(due_s: float) -> None:
            sent_s = time.monotonic()
            try:
                observation = await self.probe.observe()
            except asyncio.CancelledError:
                record(due_s, sent_s, Observation(UNFINISHED, time.monotonic() - sent_s, None, "the run ended first"))
                raise
            except Exception as error:  # noqa: BLE001 - one broken observation must not end the others
                observation = Observation("error", time.monotonic() - sent_s, None, f"{type(error).__name__}: {error}")
            record(due_s, sent_s, observation)

        def miss(due_s: float, why: str) -> None:
            # Not a `probe` record: that we did not ask says nothing about the API server.
            journal.append(
                "probe.missed",
                probe=self.name, identity=self.identity, server=self.server,
                sent_t=round(due_s - journal.clock_origin_s, 4), reason=why,
            )  # fmt: skip

        await run_open_loop(
            OpenLoop(time.monotonic() + offset_s, self.every_s),
            send,
            miss,
            limit=most_in_flight(self.timeout_s, self.every_s),
            stop=stop,
        )


def probe_tasks(probes: Mapping[str, ProbeSpec], access_for: AccessFor) -> Iterator[ProbeTask]:
    """Yield a task for every probe, identity and server, each with a connection of its own."""
    for name, spec in probes.items():
        for identity in spec.identities:
            access = access_for(identity)
            for server in access.servers:
                # Two and a half periods keep the connection in use; what a slow spell opened beside it goes away.
                client = HttpApiClient(server, access=access, keep_s=2.5 * spec.every_s)
                yield ProbeTask(name, identity, server, make_probe(spec, client), spec.every_s, spec.timeout_s)


async def run_probes(
    probes: Mapping[str, ProbeSpec], access_for: AccessFor, journal: Journal, stop: asyncio.Event
) -> None:
    """Run all probes until ``stop`` is set; then wait up to 5 s for answers under way, and record the rest as cut off.

    Starts are spread over the period, so that the probes do not queue behind each other.
    """
    tasks = list(probe_tasks(probes, access_for))
    try:
        async with asyncio.TaskGroup() as group:
            for index, task in enumerate(tasks):
                group.create_task(task.run(journal, stop, offset_s=task.every_s * index / len(tasks)))
    finally:
        for task in tasks:
            await task.probe.close()
