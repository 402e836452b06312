"""Truths that a search for the saturation point must tell, on real control planes. By command, on a quiet machine.

    python -m benchmarks.truths half-cpu --profile saturation-get   half the CPU is about half the saturation point, and CPU is blamed
    python -m benchmarks.truths repeat                              the same search five times: how far the results are apart
    python -m benchmarks.truths starved                             a starved generator is an invalid run, never a saturation point
    python -m benchmarks.truths slow-disk                           a slow disk under etcd is blamed on fsync
    python -m benchmarks.truths tiny-level                          a small priority level is blamed on that level
    python -m benchmarks.truths apf                                 what is said of API Priority and Fairness, confirmed or refuted
    python -m benchmarks.truths open --rates 500,1000               an open model at given rates: achieved, start lag, validity

Each prints what it saw beside the bound, and ends with 99 when one does not hold. ``--set`` is passed on to every run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import apf
from scaletest.controlplane.slowdisk import SlowDisk
from scaletest.core.errors import ExitCode
from scaletest.report.rundir import load_run

HERE: Final = Path(__file__).resolve().parent
HALF_RATIO: Final = (0.40, 0.65)
REPEAT_SPREAD: Final = 0.15
ACHIEVED_SHARE: Final = 0.995
START_LAG_S: Final = 0.010

_STOPPED_S: Final = 0.180
_RUNNING_S: Final = 0.020
"""A generator that has a tenth of its time: late by up to 180 ms for nine requests of ten."""

Document = dict[str, Any]
During = Callable[[Path], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that must hold, with what was seen."""

    held: bool
    said: str


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth", choices=sorted(TRUTHS))
    parser.add_argument("--profile", default="saturation-get", help="profile that half-cpu and repeat search")
    parser.add_argument("--cpu", type=float, default=1.0, help="cores of the API server of which half-cpu takes half")
    parser.add_argument("--times", type=int, default=5, help="searches of repeat, runs of open at each rate")
    parser.add_argument("--rates", default="500,1000", help="rates of open, per second")
    parser.add_argument("--set", action="append", default=[], dest="sets", help="passed on to every run")
    parser.add_argument("--output", type=Path, required=True, help="directory for the runs' directories")
    options = parser.parse_args()
    options.output.mkdir(parents=True)
    claims = await TRUTHS[options.truth](options)
    for claim in claims:
        print("✓" if claim.held else "✗", claim.said)
    return ExitCode.PASS if all(claim.held for claim in claims) else ExitCode.FAILED


async def half_cpu(options: argparse.Namespace) -> list[Claim]:
    found: dict[float, Document] = {}
    for cores in (options.cpu, options.cpu / 2):
        limit = f"controlPlane.limits.kube-apiserver.cpu={cores:g}"
        found[cores] = await run(options, f"cpu-{cores:g}", options.profile, sets=[limit, "search.past=[]"])
    whole, half = (capacity_of(document) for document in found.values())
    ratio = half / whole
    claims = [
        Claim(
            HALF_RATIO[0] <= ratio <= HALF_RATIO[1],
            f"{options.profile}: {half:g} of {whole:g} with half the CPU, {ratio:.2f} of it (0.40 to 0.65)",
        )
    ]
    for cores, document in found.items():
        claims.append(blamed(document, "cpu", "kube-apiserver", f"with {cores:g} cores"))
    return claims


async def repeat(options: argparse.Namespace) -> list[Claim]:
    found = []
    for number in range(options.times):
        document = await run(options, f"search-{number}", options.profile, sets=["search.past=[]"])
        found.append(capacity_of(document))
    spread = (max(found) - min(found)) / statistics.median(found)
    listed = ", ".join(f"{value:g}" for value in found)
    return [Claim(spread <= REPEAT_SPREAD, f"{options.profile}: {listed}: (max − min) / median {spread:.1%} (≤ 15 %)")]


async def starved(options: argparse.Namespace) -> list[Claim]:
    document = await run(options, "starved", "saturation-get", sets=["search.past=[]"], during=_throttled)
    verdict, reason = document["verdict"]["outcome"], document["saturation"]["reason"]
    return [
        Claim(verdict == "invalid", f"the verdict is {verdict} (invalid)"),
        Claim(reason != "found", f"the search says: {document['saturation']['said']}"),
    ]


async def slow_disk(options: argparse.Namespace) -> list[Claim]:
    document = await run(options, "slow-disk", HERE / "truths/slow-disk.yaml", during=_slowed)
    return [blamed(document, "etcd_fsync", "etcd", "with a slow disk")]


async def tiny_level(options: argparse.Namespace) -> list[Claim]:
    document = await run(options, "tiny-level", HERE / "truths/tiny-level.yaml")
    return [blamed(document, "apf", "scaletest-agents", "with a level of a few seats")]


async def open_model(options: argparse.Namespace) -> list[Claim]:
    claims = []
    for rate in (float(word) for word in options.rates.split(",")):
        good = 0
        for number in range(options.times):
            name = f"open-{rate:g}-{number}"
            document = await run(options, name, HERE / "truths/open.yaml", sets=[f"rate={rate:g}/s"])
            arrivals = next(flow["arrivals"] for flow in document["flows"] if flow["flow"] == "gets")
            achieved, lag_s = arrivals["achieved"], arrivals["start_lag_p99_s"]
            valid = document["verdict"]["outcome"] != "invalid"
            good += valid and achieved >= ACHIEVED_SHARE and lag_s <= START_LAG_S
            print(
                f"  {rate:g}/s: {document['verdict']['outcome']}, achieved {achieved:.2%}, start lag p99 {lag_s * 1e3:.2f} ms",
                flush=True,
            )
        claims.append(
            Claim(
                3 * good >= 2 * options.times,
                f"{rate:g}/s: {good} of {options.times} runs are valid, on time and complete (2 of 3)",
            )
        )
    return claims


async def flow_control(options: argparse.Namespace) -> list[Claim]:
    states = {}
    for name in apf.PROFILES:
        document = await run(options, name, HERE / f"truths/{name}.yaml")
        states[name] = load_run(options.output / name).state
        # A prediction that comes out otherwise on a busy machine says nothing.
        print(f"  {name}: {document['verdict']['outcome']}", *document["verdict"]["reasons"], sep="\n    ", flush=True)
    seen = [(prediction, prediction.look(states[prediction.profile])) for prediction in apf.PREDICTIONS]
    print(apf.table(seen), flush=True)
    claims = []
    for prediction, item in seen:
        came, known = ("confirmed" if each else "refuted" for each in (item.confirmed, prediction.known))
        claims.append(Claim(came == known, f"({prediction.letter}) {prediction.said}: {came} ({known} is known)"))
    return claims


TRUTHS: Final = {
    "apf": flow_control,
    "half-cpu": half_cpu,
    "repeat": repeat,
    "starved": starved,
    "slow-disk": slow_disk,
    "tiny-level": tiny_level,
    "open": open_model,
}


def capacity_of(document: Document) -> float:
    """Return the saturation load. Raises SystemExit when the search found none: then there is nothing to compare."""
    saturation = document["saturation"]
    print(f"  {saturation['said']} {saturation['limit_said'] or ''}", flush=True)
    if saturation["reason"] != "found" or document["verdict"]["outcome"] == "invalid":
        msg = f"no saturation point: {saturation['said']} ({document['verdict']['outcome']})"
        raise SystemExit(msg)
    return float(saturation["capacity"])


def blamed(document: Document, resource: str, subject: str, when: str) -> Claim:
    """Claim that a resource is the one that gave out."""
    limits = [item for item in document["saturation"]["limits"] if item["at_limit"]]
    first = f"{limits[0]['resource']} of {limits[0]['subject']}" if limits else "nothing"
    held = bool(limits) and limits[0]["resource"] == resource and limits[0]["subject"].startswith(subject)
    return Claim(held, f"{when} {first} is blamed ({resource} of {subject}): {document['saturation']['limit_said']}")


async def run(
    options: argparse.Namespace,
    name: str,
    profile: str | Path,
    *,
    sets: list[str] | None = None,
    during: During | None = None,
) -> Document:
    """Run a profile to its end; return its report."""
    directory = options.output / name
    words = [word for item in [*(sets or []), *options.sets] for word in ("--set", item)]
    argv = [
        sys.executable,
        "-m",
        "scaletest",
        "run",
        str(profile),
        *words,
        "--output",
        str(directory),
        "--format",
        "json",
    ]
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=(options.output / f"{name}.log").open("w")
    )
    async with during(directory) if during is not None else nullcontext():
        output, _ = await process.communicate()
    if process.returncode not in {ExitCode.PASS, ExitCode.INVALID, ExitCode.FAILED}:
        msg = f"{name} ended with {process.returncode}: see {options.output / name}.log"
        raise SystemExit(msg)
    document: Document = json.loads(output)
    return document


async def _pid(directory: Path, kind: str, **fields: str) -> int:
    """Wait until the search has begun; return the process that a record tells of."""
    while True:
        await asyncio.sleep(0.5)
        journal = directory / "journal.jsonl"
        records = [json.loads(line) for line in journal.read_text().splitlines()[:5000]] if journal.exists() else []
        if any(record["kind"] == "search.start" for record in records):
            return next(int(r["pid"]) for r in records if r["kind"] == kind and fields.items() <= r.items())


@asynccontextmanager
async def _alongside(work: Callable[[], Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _throttled(directory: Path) -> AbstractAsyncContextManager[None]:
    async def work() -> None:
        pid = await _pid(directory, "driver.ready")
        while True:
            os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(_STOPPED_S)
            finally:
                os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(_RUNNING_S)

    return _alongside(work)


def _slowed(directory: Path) -> AbstractAsyncContextManager[None]:
    async def work() -> None:
        disk = await SlowDisk.start(await _pid(directory, "component.start", component="etcd"), 0.150)
        try:
            await asyncio.Event().wait()
        finally:
            await disk.stop()

    return _alongside(work)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
