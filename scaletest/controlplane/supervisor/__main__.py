"""``python -m scaletest.controlplane.supervisor CLUSTER_DIR``: start a supervisor and return once it has taken over.

Three processes, one after the other out of the other:

    starter      what the caller runs; exits with 0 once the supervisor has written its state
    guardian     waits for the supervisor; when it is killed, ends what it has left behind: without its watchdog a component
                 could take all memory of the host
    supervisor   does the work
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def main() -> None:
    """Fork guardian and supervisor; the starter waits for the word of the supervisor."""
    cluster_dir = Path(sys.argv[1]).absolute()
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        os._exit(0 if os.read(reading, 1) else 1)
    os.close(reading)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    supervisor = os.fork()
    if supervisor:
        os.close(writing)
        _guard(cluster_dir, supervisor)
        os._exit(0)
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_DFL)
    _supervise(cluster_dir, writing)


def _guard(cluster_dir: Path, supervisor: int) -> None:
    _, status = os.waitpid(supervisor, 0)
    if status == 0:
        return
    # Imported only now: the guardian stays as small as the interpreter.
    from scaletest.controlplane import cleaning  # noqa: PLC0415
    from scaletest.controlplane.state import read_state  # noqa: PLC0415

    state = read_state(cluster_dir)
    if state is not None and state.supervisor.pid == supervisor:
        for done in cleaning.clean_dead_cluster(cluster_dir):
            print(f"the supervisor died: {done.said}", file=sys.stderr, flush=True)  # noqa: T201


def _supervise(cluster_dir: Path, ready: int) -> None:
    import asyncio  # noqa: PLC0415

    from scaletest.controlplane import plan as plans  # noqa: PLC0415
    from scaletest.controlplane.host import MemoryGauge  # noqa: PLC0415
    from scaletest.controlplane.supervisor import reaper, server, supervise  # noqa: PLC0415

    plan = plans.read_plan(cluster_dir)
    if plan.cpus:
        # Before any thread of ours, or component, is there: they inherit it, also those that are started again.
        os.sched_setaffinity(0, plan.cpus)

    async def run() -> None:
        os.chdir(cluster_dir)
        listening = server.bind_socket(cluster_dir)
        reaper.become_subreaper()
        gauge = MemoryGauge()
        supervisor = supervise.Supervisor(cluster_dir, plan, gauge.available_bytes)
        control = server.ControlServer(supervisor)
        await control.start(listening)
        os.write(ready, b".")
        os.close(ready)
        await supervisor.run(control)

    asyncio.run(run())


if __name__ == "__main__":
    main()
