"""A slow disk under etcd: strace delays each fdatasync of its process.

strace stops a thread at every traced call, so etcd pays a few microseconds more for each fdatasync than the delay alone. It lets go of etcd,
unharmed, when it is ended; and it ends by itself when etcd does, or the process that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scaletest.core.errors import ClusterError

__all__ = ["SlowDisk", "strace_argv"]

_END_WITH_PARENT: Final = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
os.execv(sys.argv[1], sys.argv[1:])
"""

_ATTACH_WITHIN_S: Final = 5.0
_DETACH_WITHIN_S: Final = 5.0
_POLL_S: Final = 0.05


def strace_argv(program: str, pid: int, delay_s: float) -> list[str]:
    """Return the command that delays the fdatasync calls of all threads of a process."""
    delay_us = max(1, round(delay_s * 1e6))
    inject = f"inject=fdatasync:delay_enter={delay_us}"
    return [program, "-f", "-q", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", inject, "-p", str(pid)]


@dataclass(slots=True)
class SlowDisk:
    """A delay that is in force until ``stop``."""

    process: asyncio.subprocess.Process

    @classmethod
    async def start(cls, pid: int, delay_s: float) -> SlowDisk:
        """Attach to a process. Raises ClusterError when strace is missing or may not attach."""
        program = shutil.which("strace")
        if program is None:
            msg = "slowDisk needs strace, which is not on the PATH"
            raise ClusterError(msg, hint="apt-get install strace")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-S", "-c", _END_WITH_PARENT),
            *strace_argv(program, pid, delay_s),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            # A Ctrl-C in the terminal is for us.
            start_new_session=True,
        )
        disk = cls(process)
        try:
            await disk._attached(pid)
        except BaseException:
            await disk.stop()
            raise
        return disk

    async def _attached(self, pid: int) -> None:
        for _ in range(round(_ATTACH_WITHIN_S / _POLL_S)):
            if self.process.returncode is not None:
                assert self.process.stderr is not None
                said = (await self.process.stderr.read()).decode(errors="replace").strip()
                msg = f"strace could not attach to etcd (pid {pid}): {said}"
                raise ClusterError(msg)
            if _is_traced(pid):
                return
            await asyncio.sleep(_POLL_S)
        msg = f"strace has not attached to etcd (pid {pid}) within {_ATTACH_WITHIN_S:g} s"
        raise ClusterError(msg)

    async def stop(self) -> bool:
        """Let go of the process; says whether the delay had been in force until now."""
        if self.process.returncode is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), _DETACH_WITHIN_S)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        return True


def _is_traced(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status.splitlines())
