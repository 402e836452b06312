"""Delaying the fdatasync calls of a real process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaletest.controlplane.slowdisk import SlowDisk, strace_argv
from scaletest.core.errors import ClusterError

SYNCING = """
    import os, sys, threading, time
    def sync():
        with open(sys.argv[1], "w") as file:
            while True:
                began = time.monotonic()
                os.fdatasync(file.fileno())
                print(time.monotonic() - began, flush=True)
                time.sleep(0.01)
    threading.Thread(target=sync).start()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process one thread of which syncs a file again and again, and prints how long each took."""
    script = [sys.executable, "-c", textwrap.dedent(SYNCING), str(tmp_path / "data")]
    process = subprocess.Popen(script, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def least_s(store: subprocess.Popen[str], count: int = 5) -> float:
    assert store.stdout is not None
    return min(float(store.stdout.readline()) for _ in range(count))


def drain(store: subprocess.Popen[str], seconds: float) -> None:
    """Read away what was measured before now."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        least_s(store, 1)


def test_the_delay_holds_for_all_threads_until_it_is_taken_back(store: subprocess.Popen[str]) -> None:
    async def run() -> tuple[float, float, bool]:
        disk = await SlowDisk.start(store.pid, 0.2)
        await asyncio.to_thread(drain, store, 0.5)
        slow_s = await asyncio.to_thread(least_s, store)
        held = await disk.stop()
        await asyncio.to_thread(drain, store, 0.5)
        return slow_s, await asyncio.to_thread(least_s, store), held

    slow_s, quick_s, held = asyncio.run(run())

    assert slow_s >= 0.2
    assert quick_s < 0.2
    assert held
    assert store.poll() is None


def test_it_ends_with_the_process_and_says_so(store: subprocess.Popen[str]) -> None:
    async def run() -> bool:
        disk = await SlowDisk.start(store.pid, 0.01)
        store.kill()
        await disk.process.wait()
        return await disk.stop()

    assert not asyncio.run(run())


def test_it_ends_with_the_process_that_started_it(store: subprocess.Popen[str]) -> None:
    start = f"""
        import asyncio, os, signal
        from scaletest.controlplane.slowdisk import SlowDisk
        async def main():
            await SlowDisk.start({store.pid}, 0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        asyncio.run(main())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(start)], check=False)

    status = Path(f"/proc/{store.pid}/status")
    until_s = time.monotonic() + 20
    while "TracerPid:\t0\n" not in status.read_text():
        assert time.monotonic() < until_s, "strace outlived its parent"
        time.sleep(0.05)
    assert store.poll() is None


def test_a_process_that_is_not_there_is_an_error(store: subprocess.Popen[str]) -> None:
    store.kill()
    store.wait()

    with pytest.raises(ClusterError, match="could not attach"):
        asyncio.run(SlowDisk.start(store.pid, 0.01))


def test_without_strace_the_error_says_what_is_missing(
    store: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ClusterError, match="needs strace"):
        asyncio.run(SlowDisk.start(store.pid, 0.01))


def test_the_delay_is_given_in_microseconds() -> None:
    assert "inject=fdatasync:delay_enter=20000" in strace_argv("strace", 1, 0.02)
