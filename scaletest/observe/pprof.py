"""Profiles of the API servers, by Go's own profiler: CPU for some seconds, then the heap in use, then all goroutines.

Each server is asked on a connection of its own, as ``system:masters`` (exempt from API Priority and Fairness), and ``/debug/pprof/`` counts as
long-running there, so that no request time-out ends it. What a server does not give in time is told in the journal, and the rest is asked for
all the same. Files are as the server sent them, for ``go tool pprof`` too: gzipped protocol buffers.

A CPU profile samples the server 100 times a second of its CPU; heap and goroutines are a walk over what it keeps anyway. At 2,500 goroutines
each took 8 ms, and the three files had 140 KB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from scaletest.core.access import ApiAccess
from scaletest.core.apiclient import Answer, ApiClient, HttpApiClient
from scaletest.core.journal import Journal
from scaletest.core.rundir import PROFILES_DIR

__all__ = ["CPU_S", "PROFILES", "TIMEOUT_S", "Capture", "capture_profiles", "longest_s"]

CPU_S: Final = 10
"""Length of a CPU profile, where nothing asks for less: 1,000 samples of each core in use."""

TIMEOUT_S: Final = 10.0
"""How long a server may take beyond the time of the profile; ``system:masters`` is answered within seconds or not at all."""

PROFILES: Final = {
    "cpu": "/debug/pprof/profile?seconds={seconds}",
    "heap": "/debug/pprof/heap",
    "goroutine": "/debug/pprof/goroutine",
}
"""What is captured, in this order, and where a server has it."""

_GZIP: Final = b"\x1f\x8b"

Connect = Callable[[str, ApiAccess], ApiClient]


@dataclass(frozen=True, slots=True)
class Capture:
    """One look at all API servers."""

    name: str
    """What its files begin with: ``step-4``."""
    cpu_s: int
    """Length of the CPU profile, in whole seconds: the server takes no others."""
    step: int | None = None
    """Step of a search."""


def longest_s(cpu_s: int) -> float:
    """Return the longest that a capture can take."""
    return cpu_s + 3 * TIMEOUT_S


def _connect(server: str, access: ApiAccess) -> ApiClient:
    return HttpApiClient(server, access=access)


async def capture_profiles(
    capture: Capture, access: ApiAccess, run_dir: Path, journal: Journal, *, connect: Connect = _connect,
    timeout_s: float = TIMEOUT_S,
) -> list[str]:  # fmt: skip
    """Capture the profiles of all API servers at once; return why each that is missing is. Never raises for what a server does.

    For each profile one ``pprof`` record: ``path`` within the run directory, ``bytes`` and ``seconds``, or ``outcome`` and ``reason``.
    """

    async def of_server(server: str) -> list[str]:
        client, problems = connect(server, access), []
        try:
            for profile, form in PROFILES.items():
                seconds, path = (capture.cpu_s if profile == "cpu" else 0), form.format(seconds=capture.cpu_s)
                answer = await client.get(path, timeout_s=seconds + timeout_s, accept="application/octet-stream")
                name = f"{PROFILES_DIR}/{capture.name}-{urlsplit(server).port}-{profile}.pb.gz"
                outcome, reason = _kept(answer, run_dir / name)
                ok = outcome == "ok"
                journal.append(
                    "pprof",
                    capture=capture.name, step=capture.step, profile=profile, server=server, ok=ok, outcome=outcome, reason=reason,
                    path=name if ok else None, bytes=len(answer.body) if ok else None, seconds=seconds,
                    latency_s=round(answer.latency_s, 3),
                )  # fmt: skip
                if not ok:
                    problems.append(f"{profile} of {server}: {reason or outcome}")
        finally:
            await client.close()
        return problems

    each = await asyncio.gather(*(of_server(server) for server in access.servers))
    return [problem for problems in each for problem in problems]


def _kept(answer: Answer, path: Path) -> tuple[str, str | None]:
    """Write a profile down; return what came of it, and why."""
    if not answer.ok:
        return answer.outcome, answer.reason
    if not answer.body.startswith(_GZIP):
        return "error", "the answer is no profile"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(answer.body)
    except OSError as error:
        return "error", f"not written: {error.strerror or error}"
    return "ok", None
