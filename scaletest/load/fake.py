"""A load driver that only remembers what it was told, for tests of those who command one."""

from __future__ import annotations

import asyncio

from scaletest.core.journal import Record
from scaletest.core.processes import ProcessId
from scaletest.load import protocol
from scaletest.load.client import DriverExit, OnRecord

__all__ = ["FakeDriver"]


class FakeDriver:
    """Remembers commands in order; ``report`` hands a record to the owner, ``die`` ends it."""

    def __init__(self, on_record: OnRecord = lambda _record: None) -> None:
        self.process_id = ProcessId.current()
        self.exited: asyncio.Future[DriverExit] = asyncio.get_running_loop().create_future()
        self.commands: list[protocol.Command] = []
        self.on_record = on_record
        self.changes: protocol.FlowChanged | None = None
        """What blocking and shrinking end; None: nothing."""

    def report(self, record: Record) -> None:
        """Hand a record to the owner, as a snapshot does."""
        self.on_record(record)

    def die(self, code: int = -9, stderr_tail: str = "") -> None:
        """End as a killed driver does."""
        self.exited.set_result(DriverExit(code, expected=False, stderr_tail=stderr_tail))

    async def start_flow(self, start: protocol.FlowStart) -> None:
        """Remember."""
        self.commands.append(start)

    async def set_target(self, command: protocol.SetTarget) -> protocol.FlowChanged:
        """Remember; answers ``changes``."""
        self.commands.append(command)
        return self.changes or protocol.FlowChanged(command.flow)

    async def set_rate(self, command: protocol.SetRate) -> None:
        """Remember."""
        self.commands.append(command)

    async def set_servers(self, command: protocol.SetServers) -> None:
        """Remember."""
        self.commands.append(command)

    async def stop_flow(self, flow: str) -> None:
        """Remember."""
        self.commands.append(protocol.StopFlow(flow))

    async def block(self, flow: str) -> protocol.FlowChanged:
        """Remember; answers ``changes``."""
        self.commands.append(protocol.Block(flow))
        return self.changes or protocol.FlowChanged(flow)

    async def unblock(self, flow: str) -> None:
        """Remember."""
        self.commands.append(protocol.Unblock(flow))

    async def stop(self) -> None:
        """Remember, and end; a second call does nothing."""
        if not self.exited.done():
            self.commands.append(protocol.Quit())
            self.exited.set_result(DriverExit(0, expected=True, stderr_tail=""))
