"""The client of a cluster's supervisor: start it, ask it, end it.

The supervisor listens on ``CLUSTER_DIR/control.sock`` (mode 0600). A connection carries one request, a JSON object on
one line (``{"op": "status"}``), and one answer: ``{"ok": true, ...}`` or ``{"ok": false, "error": "..."}``. Only
``events`` keeps its connection and sends journal records, one a line, until the supervisor ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scaletest.controlplane import plan as plans
from scaletest.controlplane.logs import quote_log
from scaletest.controlplane.state import ClusterState, EndReason, read_state
from scaletest.core.errors import ClusterError
from scaletest.core.journal import Record
from scaletest.core.processes import ProcessId

__all__ = ["SupervisorClient", "spawn_supervisor"]

_POLL_S: Final = 0.05
_ANSWER_TIMEOUT_S: Final = 30.0
_LINE_LIMIT_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SupervisorClient:
    """Speaks to the supervisor of one cluster. All methods raise ClusterError when it cannot be reached."""

    cluster_dir: Path

    def state(self) -> ClusterState | None:
        """Return the state last written, whether or not the supervisor still runs; None before the first."""
        return read_state(self.cluster_dir)

    async def status(self) -> ClusterState:
        """Ask for the state."""
        answer = await self._ask({"op": "status"})
        return ClusterState.from_json(answer["state"])

    async def wait_ready(self, timeout_s: float) -> ClusterState:
        """Wait until the cluster is ready. Raises ClusterError with the reason when it ends first or takes too long."""
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while True:
            state = self.state()
            if state is not None and state.status == "ready":
                return state
            if state is not None and state.status == "ended":
                raise _did_not_start(self.cluster_dir, state)
            if state is not None and not state.supervisor.is_alive():
                msg = f"the supervisor of cluster {state.name} died while the cluster started"
                quote = quote_log(plans.supervisor_log_path(self.cluster_dir))
                raise ClusterError(f"{msg}\n{quote}".rstrip(), hint="run: scaletest clean")
            if asyncio.get_running_loop().time() > deadline_s:
                msg = f"cluster {self.cluster_dir.name} was not ready after {timeout_s:g} s"
                raise ClusterError(msg, hint=f"its logs lie in {self.cluster_dir}")
            await asyncio.sleep(_POLL_S)

    async def attach(self, journal: Path, clock_origin_s: float, *, holder: ProcessId | None = None) -> None:
        """Have the cluster's records appended to a run's journal (absolute path) as well, beginning with what runs now.

        The supervisor detaches the journal when ``holder`` (default: the calling process) is gone.
        """
        target = plans.JournalTarget(journal, clock_origin_s).to_json()
        await self._ask({"op": "attach", "journal": target, "holder": (holder or ProcessId.current()).to_json()})

    async def detach(self, journal: Path) -> None:
        """Stop appending to a run's journal; one that is not attached is no error."""
        await self._ask({"op": "detach", "path": str(journal)})

    async def set_owner(self, owner: ProcessId | None) -> None:
        """Tie the cluster's life to a process, or to none."""
        await self._ask({"op": "set_owner", "owner": owner.to_json() if owner else None})

    async def kill(self, component: str) -> None:
        """Kill a component with SIGKILL; it is restarted with the back-off."""
        await self._ask({"op": "kill", "component": component})

    async def freeze(self, component: str) -> None:
        """Stop a component with SIGSTOP."""
        await self._ask({"op": "freeze", "component": component})

    async def thaw(self, component: str) -> None:
        """Let a frozen component go on."""
        await self._ask({"op": "thaw", "component": component})

    async def restart(self, component: str) -> None:
        """End a component with SIGTERM; it is restarted with the back-off."""
        await self._ask({"op": "restart", "component": component})

    async def add_replica(self, name: str, *, of: str, port: int, flags: Mapping[str, str]) -> None:
        """Start one more of a component: same binary, environment and limits, same arguments but for ``flags``.

        It is supervised under ``name``, and ready once ``port`` accepts connections.
        """
        await self._ask({"op": "add_replica", "name": name, "of": of, "port": port, "flags": dict(flags)})

    async def end(self, reason: EndReason = "asked", *, timeout_s: float = 30.0) -> ClusterState:
        """End the cluster and wait until every process of it is gone. A second call is no error."""
        state = self.state()
        if state is None:
            msg = f"{self.cluster_dir} holds no cluster"
            raise ClusterError(msg)
        if state.supervisor.is_alive():
            try:
                await self._ask({"op": "end", "reason": reason})
            except ClusterError:
                if state.supervisor.is_alive() and (self.state() or state).status not in {"ending", "ended"}:
                    raise
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while state.supervisor.is_alive():
            if asyncio.get_running_loop().time() > deadline_s:
                msg = f"cluster {state.name} was still ending after {timeout_s:g} s"
                raise ClusterError(msg, hint=f"see {plans.supervisor_log_path(self.cluster_dir)}")
            await asyncio.sleep(_POLL_S)
        return self.state() or state

    async def events(self) -> AsyncGenerator[Record, None]:
        """Yield records as they happen, until the supervisor ends. Times count from the supervisor's start."""
        reader, writer = await self._connect()
        try:
            writer.write(b'{"op":"events"}\n')
            await writer.drain()
            _check(json.loads(await reader.readline() or b"{}"))
            while line := await reader.readline():
                yield json.loads(line)
        finally:
            writer.close()

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        reader, writer = await self._connect()
        try:
            writer.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
            await writer.drain()
            line = await asyncio.wait_for(reader.readline(), _ANSWER_TIMEOUT_S)
        except (OSError, TimeoutError, ValueError) as error:
            # A ValueError says that the answer is longer than a line may be.
            raise self._unreachable(error) from error
        finally:
            writer.close()
        if not line:
            raise self._unreachable(EOFError())
        return _check(json.loads(line))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # A socket's address holds 107 characters; through the directory's descriptor any path is short enough.
        try:
            directory = os.open(self.cluster_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                address = f"/proc/self/fd/{directory}/{plans.CONTROL_SOCKET}"
                return await asyncio.open_unix_connection(address, limit=_LINE_LIMIT_BYTES)
            finally:
                os.close(directory)
        except OSError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, why: Exception) -> ClusterError:
        msg = f"the supervisor of cluster {self.cluster_dir.name} does not answer: {str(why) or 'it hung up'}"
        return ClusterError(msg, hint="run: scaletest clean")


def spawn_supervisor(cluster_dir: Path, plan: plans.ClusterPlan) -> SupervisorClient:
    """Write the plan and start a detached supervisor for it; returns once the supervisor has taken over.

    ``cluster_dir`` must exist and hold no living cluster. Raises ClusterError when the supervisor itself fails to start.
    """
    cluster_dir = cluster_dir.absolute()
    for old in (plans.state_path(cluster_dir), plans.supervisor_journal_path(cluster_dir)):
        old.unlink(missing_ok=True)
    plans.write_plan(cluster_dir, plan)
    log = plans.supervisor_log_path(cluster_dir)
    with log.open("ab") as output:
        # The process that is started here exits as soon as its child, the supervisor proper, has written its state.
        done = subprocess.run(  # noqa: S603, RUF100
            [sys.executable, "-m", "scaletest.controlplane.supervisor", str(cluster_dir)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            check=False,
        )
    client = SupervisorClient(cluster_dir)
    if done.returncode != 0 or client.state() is None:
        msg = f"the supervisor of cluster {plan.name} did not start (exit code {done.returncode})\n{quote_log(log)}"
        raise ClusterError(msg.rstrip())
    return client


def _did_not_start(cluster_dir: Path, state: ClusterState) -> ClusterError:
    if state.reason == "start_failed":
        return ClusterError(state.error or f"cluster {state.name} did not start", hint=f"its logs lie in {cluster_dir}")
    why = {
        "host_guard": "the host ran out of memory",
        "owner_gone": "its owner is gone",
        "signal": "its supervisor was told to stop",
        "supervisor_gone": "its supervisor was killed",
    }
    return ClusterError(f"cluster {state.name} ended before it was ready: {why.get(state.reason or '', state.reason)}")


def _check(answer: dict[str, Any]) -> dict[str, Any]:
    if not answer.get("ok"):
        raise ClusterError(str(answer.get("error") or "the supervisor hung up"))
    return answer
