"""Samples for the tests of the live view: a profile, and a program that shows a synthetic run on its terminal.

``python -m tests.report.live_run HOW`` feeds the small run's records ten times as fast as they were written, and prints
``the final report`` to stdout at the end. HOW is ``finish``, ``fail`` (an error in the middle), ``print`` (others print
meanwhile), ``break`` (the clock of the view fails) or ``interrupt`` (goes on until SIGINT).
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time

from scaletest.core.journal import Record
from scaletest.profile.schema import Profile
from scaletest.profile.yamlfile import parse_text
from scaletest.report.live import LiveView
from tests.analysis.journals import record, small_run

PROFILE = """\
name: smoke
summary: Fifty nodes, one agent on each.
fleet:
  pools:
    - {name: default, nodes: 50, podsPerNode: 2}
flows:
  agents:
    agents: {perNode: 1, rollout: 10/s}
    identity: serviceAccount:telemetry/agent
    steps:
      - {list: pods, every: 5s}
probes:
  operator: {get: apps/v1/daemonsets, identities: [system:masters, admin]}
  readiness: {nodeReadiness: true, every: 1s}
phases:
  - {name: baseline, for: 10s}
  - {name: rollout, start: [agents], until: flow.agents.started >= 50, atMost: 30s}
  - {name: after, for: 8s}
objectives:
  - flow.agents.error_rate < 1%
"""

SPEED = 10.0


def profile() -> Profile:
    return Profile.model_validate(parse_text(PROFILE, "smoke.yaml").data)


def clock() -> float:
    return SPEED * time.monotonic()


def records(how: str) -> list[Record]:
    if how != "interrupt":
        return small_run()
    return [*small_run(finished=False), *(record("note", t, level="info", text=f"at {t}") for t in range(41, 600))]


async def play(how: str) -> None:
    interrupted = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
    origin_s = clock()
    began = {"t": 0.0}

    def clock_of_view() -> float:
        assert how != "break" or began["t"] < 20, "no time any more"
        return clock()

    async with LiveView(profile(), sys.stderr, clock_of_view) as view:
        for item in records(how):
            with contextlib.suppress(TimeoutError):
                wait_s = (item["t"] - (clock() - origin_s)) / SPEED
                await asyncio.wait_for(interrupted.wait(), max(0.001, wait_s))
            if interrupted.is_set():
                view(record("run.end", item["t"], status="interrupted", reason="SIGINT"))
                return
            began["t"] = item["t"]
            view(item)
            if item["t"] > 20:
                meddle(how, item)


def meddle(how: str, item: Record) -> None:
    if how == "fail":
        msg = "it broke"
        raise RuntimeError(msg)
    if how == "print" and item["kind"] == "note":
        print("a warning from elsewhere", file=sys.stderr)
        print("and from stdout, without a newline", end="")


def main() -> int:
    try:
        asyncio.run(play(sys.argv[1]))
    except RuntimeError as error:
        print(f"scaletest: {error}", file=sys.stderr)
        return 1
    print("the final report")
    return 0


if __name__ == "__main__":
    sys.exit(main())
