"""Behind ``scaletest run``: load, find binaries, run, report. Imported only when a run is wanted."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scaletest.cli._blame import blamed_on
from scaletest.cli._cleaning import clean_dead_clusters
from scaletest.cli._formats import Format
from scaletest.cli._options import RESULTS
from scaletest.cli._plan_text import plan_text
from scaletest.cli._reports import ReportFile, Subject, deliver_report, print_text, read_subject, render
from scaletest.cli._streams import answer, detail, is_quiet, say, task_progress, tell
from scaletest.controlplane import registry
from scaletest.controlplane.binaries import Binaries, locate_all, parse_binary_flags, plan_all
from scaletest.controlplane.host import MemoryGauge, read_host
from scaletest.controlplane.record import ClusterRecord
from scaletest.core.errors import ExitCode, UsageError
from scaletest.core.journal import Record
from scaletest.core.units import format_count
from scaletest.observe.hostinfo import host_info
from scaletest.profile.loading import LoadedProfile, load_profile, variant_names
from scaletest.profile.overrides import VersionSetting
from scaletest.report.github import annotation_lines
from scaletest.report.live import LiveView, can_show
from scaletest.report.progress import ProgressWriter
from scaletest.runner.cores import process_overrides
from scaletest.runner.local import LocalEngines, LocalOptions
from scaletest.runner.plan import RunPlan, make_plan, refuse_if_too_large
from scaletest.runner.rundirs import default_run_dir, refuse_run_dir
from scaletest.runner.searchplan import SearchPlan, plan_search
from scaletest.runner.session import RunOptions, RunResult, execute
from scaletest.runner.versions import refuse_unknown_versions

__all__ = [
    "RunRequest",
    "chosen_variants",
    "deliver",
    "execute_once",
    "get_binaries",
    "run_profile",
    "with_processes",
]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the command line asked for."""

    reference: str
    overrides: Sequence[str]
    size: str | None
    output: Path | None
    cluster: str | None
    keep: bool
    binaries: Sequence[str]
    dry_run: bool
    format: Format = Format.TEXT
    """What is printed on stdout at the end."""
    reports: Sequence[ReportFile] = ()
    """What is written into files beside it."""
    variants: Sequence[str] = ()
    """Variants that the profile names; of one alone an ordinary run is made."""
    versions: Sequence[VersionSetting] = ()
    """Versions that settings name in place of the profile's."""
    results: Path = RESULTS
    """Where a directory is made, unless ``output`` names one."""


def chosen_variants(reference: str, option: str | None) -> list[str]:
    """Return the variants that ``--variant NAME,NAME`` chooses; without it, all that the profile names. Raises UsageError."""
    if option is None:
        return variant_names(reference)
    names = [name.strip() for name in option.split(",")]
    if not all(names) or len(set(names)) < len(names):
        msg = f"--variant {option}: {'a name is there twice' if all(names) else 'a name is empty'}"
        raise UsageError(msg, hint="To run every variant several times: --repeat 3")
    return names


def with_processes(reference: str, overrides: tuple[str, ...], size: str | None, wanted: str | None) -> tuple[str, ...]:
    """Return overrides with what ``--processes`` asks for; the profile's own numbers without it. Raises UsageError."""
    if wanted is None:
        return overrides
    flows = load_profile(reference, overrides, size=size).profile.flows
    try:
        more = process_overrides(flows, wanted, read_host().cores)
    except ValueError as error:
        msg = f"--processes: {error}"
        raise UsageError(msg) from None
    if not more:
        msg = f"--processes: profile {reference} has only flows of churn or of a locustfile, which have one process"
        raise UsageError(msg)
    with blamed_on(dict.fromkeys(more, f"--processes {wanted}")):
        load_profile(reference, (*overrides, *more), size=size)
    return (*overrides, *more)


def run_profile(request: RunRequest) -> None:
    """Run a profile to its report; raises SystemExit with the verdict's exit code."""
    variant = request.variants[0] if request.variants else None
    loaded = load_profile(
        request.reference, request.overrides, size=request.size, variant=variant, versions=request.versions
    )
    for warning in loaded.warnings:
        tell(f"warning: {warning}")
    run_dir = request.output or default_run_dir(request.results, loaded.profile.name, datetime.now(UTC))
    standing = _standing(request)
    if standing is None:
        refuse_unknown_versions(loaded)
    plan = make_plan(loaded.profile, read_host())
    refuse_run_dir(run_dir)
    if request.dry_run:
        search = plan_search(loaded, plan.fitting_nodes)
        raise SystemExit(int(_print_plan(request, plan, search, standing, run_dir)))
    clean_dead_clusters()
    binaries = _prepare(request, loaded, plan)
    if binaries is not None:
        nodes = format_count(plan.most_nodes)
        say(f"starting Kubernetes {binaries.kubernetes} with etcd {binaries.etcd}, for {nodes} nodes")
    detail(f"results go to {run_dir}")
    result = asyncio.run(execute_once(request, loaded, binaries, run_dir))
    raise SystemExit(int(deliver(read_subject(result.run_dir), request, result.verdict.exit_code)))


def deliver(subject: Subject, request: RunRequest, verdict: ExitCode) -> ExitCode:
    """Write and print the reports that were asked for; return the exit code: the verdict's, if all could be written."""

    def annotate() -> list[str]:
        return annotation_lines([subject.document] if subject.document is not None else [], matrix=subject.matrix)

    return deliver_report(
        lambda form: render([subject], form),
        request.reports,
        annotate,
        request.format,
        lambda: print_text([subject]),
        verdict,
    )


def _standing(request: RunRequest) -> ClusterRecord | None:
    """Return the cluster that the run is to use; None when it makes its own. Raises UsageError when there is none."""
    if request.cluster is None:
        return None
    if request.binaries:
        msg = "--binary and --cluster exclude each other: a running cluster has its binaries"
        raise UsageError(msg)
    return registry.get(request.cluster)


def _print_plan(
    request: RunRequest, plan: RunPlan, search: SearchPlan | None, standing: ClusterRecord | None, run_dir: Path
) -> ExitCode:
    if standing is not None:
        answer(plan_text(plan, search, standing, str(run_dir)))
        return ExitCode.PASS if registry.status_of(standing) == "ready" else ExitCode.ENVIRONMENT
    spec = plan.profile.control_plane
    found = plan_all(spec.kubernetes, spec.etcd, explicit=parse_binary_flags(request.binaries))
    answer(plan_text(plan, search, found, str(run_dir)))
    complete = all(item.source is not None for item in found)
    return ExitCode.PASS if complete else ExitCode.ENVIRONMENT


def _prepare(request: RunRequest, loaded: LoadedProfile, plan: RunPlan) -> Binaries | None:
    """Get binaries, and refuse what does not fit, before anything is started."""
    if request.cluster is not None:
        return None
    refuse_if_too_large(plan, MemoryGauge().available_bytes())
    spec = loaded.profile.control_plane
    return get_binaries(spec.kubernetes, spec.etcd, request.binaries)


def get_binaries(kubernetes: str, etcd: str, flags: Sequence[str]) -> Binaries:
    """Find, download or build the programs of a control plane, and say how far that is."""
    found = locate_all(kubernetes, etcd, explicit=parse_binary_flags(flags), progress=task_progress())
    for name, path in found.paths.items():
        detail(f"{name} {found.versions[name]} is {path} ({found.origin[name]})")
    return found


async def execute_once(
    request: RunRequest, loaded: LoadedProfile, binaries: Binaries | None, run_dir: Path
) -> RunResult:
    """Run a loaded profile into a new directory, with progress; a matrix does so for each of its runs."""
    options = LocalOptions(run_dir=run_dir, binaries=binaries, cluster=request.cluster, keep=request.keep)
    async with _progress(loaded) as progress:
        result = await execute(
            loaded,
            RunOptions(
                run_dir=run_dir,
                argv=sys.argv[1:],
                host=host_info().to_json(),
                most_nodes=make_plan(loaded.profile, read_host()).fitting_nodes,
            ),
            LocalEngines(loaded, options),
            progress,
        )
    if request.keep and request.cluster is None:
        name = options.own_cluster_name
        tell(f"cluster {name} stays up: scaletest run PROFILE --cluster {name}; scaletest cluster down {name}")
    return result


def _progress(loaded: LoadedProfile) -> AbstractAsyncContextManager[Callable[[Record], None]]:
    """Show a run while it lasts: on a terminal in a live view, elsewhere in plain lines."""
    if is_quiet():
        return nullcontext(_silent)
    if can_show(sys.stderr, os.environ):
        return LiveView(loaded.profile, sys.stderr)
    return nullcontext(ProgressWriter(sys.stderr))


def _silent(_record: Record) -> None:
    """Show no progress."""
