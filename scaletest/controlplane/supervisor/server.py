"""The supervisor's side of the control socket; the protocol is told in ``scaletest.controlplane.control``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any, Final, Protocol

from scaletest.controlplane.plan import CONTROL_SOCKET, JournalTarget
from scaletest.controlplane.state import ClusterState, EndReason
from scaletest.controlplane.supervisor.recorder import Recorder
from scaletest.core.processes import ProcessId

__all__ = ["ControlServer", "Controlled", "bind_socket"]

_LINE_LIMIT_BYTES: Final = 1 << 20
_SIGNALS: Final = {
    "kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "thaw": signal.SIGCONT, "restart": signal.SIGTERM,
}  # fmt: skip


class Controlled(Protocol):
    """What the server controls."""

    recorder: Recorder
    state: ClusterState

    def attach(self, target: JournalTarget, holder: ProcessId | None) -> None:
        """Add a run's journal."""

    def set_owner(self, owner: ProcessId | None) -> None:
        """Tie the cluster's life to a process, or to none."""

    def ask_end(self, reason: EndReason) -> None:
        """Begin to end the cluster."""

    def signal_component(self, name: str, signum: int) -> None:
        """Signal a component. Raises ValueError when there is none of that name, or it does not run."""

    def add_replica(self, name: str, of: str, port: int, flags: dict[str, str]) -> None:
        """Start one more of a component. Raises ValueError when there is none of that name, OSError."""


def bind_socket(cluster_dir: Path) -> socket.socket:
    """Listen on the control socket (mode 0600). The working directory must be ``cluster_dir``: paths may be long."""
    path = cluster_dir / CONTROL_SOCKET
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(CONTROL_SOCKET)
    finally:
        os.umask(before)
    listening.listen(64)
    return listening


class ControlServer:
    """Answers requests, one a connection."""

    def __init__(self, controlled: Controlled) -> None:
        self._controlled = controlled
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, listening: socket.socket) -> None:
        """Begin to answer."""
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_LINE_LIMIT_BYTES)

    async def stop(self) -> None:
        """Stop listening; connections under way get a moment to be answered."""
        if self._server is not None:
            self._server.close()
        if self._connections:
            await asyncio.wait(self._connections, timeout=1.0)
        for task in self._connections:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, ValueError):
            # The client went away, or sent more than a line may hold.
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        if not line:
            return
        try:
            request = json.loads(line)
            op = request["op"]
            if op == "events":
                await self._stream(reader, writer)
                return
            answer = {"ok": True, **self._do(op, request)}
        except (KeyError, TypeError, ValueError, OSError, RecursionError) as error:
            answer = {
                "ok": False,
                "error": str(error) if isinstance(error, ValueError | OSError) else f"bad request: {error!r}",
            }
        await _send(writer, answer)

    def _do(self, op: str, request: dict[str, Any]) -> dict[str, Any]:
        controlled = self._controlled
        match op:
            case "status":
                return {"state": controlled.state.to_json()}
            case "attach":
                holder = request.get("holder")
                target = JournalTarget.from_json(request["journal"])
                controlled.attach(target, ProcessId.from_json(holder) if holder else None)
            case "detach":
                controlled.recorder.detach(Path(request["path"]))
            case "set_owner":
                owner = request["owner"]
                controlled.set_owner(ProcessId.from_json(owner) if owner else None)
            case "end":
                controlled.ask_end(request["reason"])
            case "kill" | "freeze" | "thaw" | "restart":
                controlled.signal_component(request["component"], _SIGNALS[op])
            case "add_replica":
                controlled.add_replica(request["name"], request["of"], request["port"], request["flags"])
            case _:
                msg = f"unknown request {op!r}"
                raise ValueError(msg)
        return {}

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue = self._controlled.recorder.listen()
        hung_up = asyncio.create_task(reader.read())
        try:
            await _send(writer, {"ok": True})
            while True:
                following = asyncio.create_task(queue.get())
                await asyncio.wait({following, hung_up}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    return
                record = following.result()
                if record is None:
                    return
                await _send(writer, record)
        finally:
            hung_up.cancel()
            self._controlled.recorder.unlisten(queue)


async def _send(writer: asyncio.StreamWriter, value: Any) -> None:
    writer.write(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    await writer.drain()
