"""Behind ``scaletest run --matrix`` and ``--repeat``, and of a profile with variants: one run after the other, and the table of them all."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scaletest.cli._cleaning import clean_dead_clusters
from scaletest.cli._reports import read_subject
from scaletest.cli._running import RunRequest, deliver, execute_once, get_binaries
from scaletest.cli._streams import answer, say, tell
from scaletest.controlplane.binaries import Binaries, parse_binary_flags, plan_all
from scaletest.controlplane.host import MemoryGauge, read_host
from scaletest.core.errors import ExitCode, ResourceShortage, RunDirectoryError, ScaletestError, UsageError
from scaletest.core.matrixdir import MatrixInfo, RunEntry
from scaletest.core.units import format_bytes, format_count, format_duration
from scaletest.runner.matrix import Matrix, Variant, make_matrix, parse_axes
from scaletest.runner.matrix_run import begin, check_same, execute_matrix, held, left_to_run, new_info, resumable
from scaletest.runner.plan import refuse_if_too_large
from scaletest.runner.rundirs import default_run_dir, refuse_run_dir
from scaletest.runner.searchplan import plan_search
from scaletest.runner.session import RunResult
from scaletest.runner.versions import refuse_unknown_versions

__all__ = ["MatrixRequest", "run_matrix"]


@dataclass(frozen=True, slots=True)
class MatrixRequest:
    """What the command line asked for."""

    run: RunRequest
    axes: Sequence[str]
    repeat: int
    resume: Path | None


def run_matrix(request: MatrixRequest) -> None:
    """Run all variants to their table; raises SystemExit with the worst exit code."""
    _refuse_options(request)
    run = request.run
    axes = parse_axes(request.axes, run.overrides)
    stored = _stored(request)
    matrix = make_matrix(
        run.reference,
        run.overrides,
        axes,
        size=run.size,
        named=run.variants,
        versions=run.versions,
        repeat=request.repeat,
        host=read_host(),
        limits=stored.limits if stored else None,
    )
    for warning in matrix.warnings:
        tell(f"warning: {warning}")
    for variant in matrix.variants:
        refuse_unknown_versions(variant.loaded)
    directory = _directory(request, matrix)
    wanted = new_info(
        matrix,
        directory,
        reference=run.reference,
        overrides=run.overrides,
        repeat=request.repeat,
        argv=sys.argv[1:],
    )
    if stored is not None:
        check_same(stored, wanted, directory)
    else:
        refuse_run_dir(directory)
    if run.dry_run:
        answer("\n".join(_plan_lines(request, matrix, stored or wanted, directory)))
        raise SystemExit(int(ExitCode.PASS))
    _report(request, directory, _run_all(request, matrix, stored, wanted, directory))


def _refuse_options(request: MatrixRequest) -> None:
    run = request.run
    if run.cluster is not None or run.keep:
        option = "--cluster" if run.cluster is not None else "--keep"
        variants = not request.axes and len(run.variants) > 1
        again = "--resume" if request.resume else "--repeat"
        several = "--matrix" if request.axes else "several variants" if variants else again
        msg = f"{several} and {option} exclude each other: every run gets a control plane of its own"
        raise UsageError(msg, hint=f"Run one of them: --variant {run.variants[0]}" if variants else None)
    if request.resume is not None and run.output is not None and request.resume != run.output:
        msg = "--resume and --output name different directories"
        raise UsageError(msg, hint="Leave one of them out.")


def _stored(request: MatrixRequest) -> MatrixInfo | None:
    if request.resume is not None:
        stored = resumable(request.resume)
        if stored is None:
            raise RunDirectoryError(request.resume, "no such directory", hint="Leave --resume out to begin a matrix.")
        return stored
    return resumable(request.run.output) if request.run.output is not None else None


def _directory(request: MatrixRequest, matrix: Matrix) -> Path:
    given = request.resume or request.run.output
    return given or default_run_dir(
        request.run.results, f"{matrix.variants[0].loaded.profile.name}-matrix", datetime.now(UTC)
    )


def _run_all(
    request: MatrixRequest, matrix: Matrix, stored: MatrixInfo | None, wanted: MatrixInfo, directory: Path
) -> MatrixInfo:
    left = {entry.variant for entry in left_to_run(directory, stored or wanted)}
    binaries = _prepare(request, [variant for variant in matrix.variants if variant.name in left])
    if stored is None:
        begin(directory, wanted)
    variants = {variant.name: variant for variant in matrix.variants}

    def run_one(entry: RunEntry, run_dir: Path) -> RunResult:
        clean_dead_clusters()
        loaded = variants[entry.variant].loaded
        try:
            result = asyncio.run(
                execute_once(request.run, loaded, binaries[_versions(variants[entry.variant])], run_dir)
            )
        except ScaletestError as error:
            tell(f"{entry.directory}: {error.message}")
            raise
        say(f"{entry.directory}: {result.verdict.outcome}")
        return result

    def announce(number: int, entry: RunEntry) -> None:
        say(f"run {number} of {len(wanted.runs)}: {entry.directory}")

    with held(directory):
        # Read once more: another process may have gone on with it before this one held it.
        info = resumable(directory) or wanted
        return execute_matrix(directory, info, run_one, announce)


def _prepare(request: MatrixRequest, variants: Sequence[Variant]) -> dict[tuple[str, str], Binaries]:
    """Get all binaries, and refuse what does not fit, before anything is started."""
    available_bytes = MemoryGauge().available_bytes()
    for variant in variants:
        try:
            refuse_if_too_large(variant.plan, available_bytes)
        except ResourceShortage as shortage:
            msg = f"{variant.name}: {shortage.message}"
            raise ResourceShortage(msg, hint=shortage.hint) from None
    wanted = dict.fromkeys(_versions(variant) for variant in variants)
    return {versions: get_binaries(*versions, request.run.binaries) for versions in wanted}


def _versions(variant: Variant) -> tuple[str, str]:
    spec = variant.loaded.profile.control_plane
    return spec.kubernetes, spec.etcd


def _report(request: MatrixRequest, directory: Path, info: MatrixInfo) -> None:
    subject = read_subject(directory)
    code = deliver(subject, request.run, subject.exit_code)
    if any(entry.status != "finished" for entry in info.runs):
        tell(f"the rest: scaletest run with the same profile and options, and --resume {directory}")
    raise SystemExit(int(code))


def _plan_lines(request: MatrixRequest, matrix: Matrix, info: MatrixInfo, directory: Path) -> Iterator[str]:
    profile = matrix.variants[0].loaded.profile
    left = left_to_run(directory, info)
    times = {variant.name: (_usual_s(variant), variant.plan.longest_s) for variant in matrix.variants}
    repeats = f", {info.repeat} runs each" if info.repeat > 1 else ""
    yield f"{profile.name}: {profile.summary.strip()}"
    yield ""
    yield f"{_counted(len(matrix.variants), 'variant')}{repeats}"
    width = max(len(variant.name) for variant in matrix.variants)
    for variant in matrix.variants:
        plan = variant.plan
        nodes, needed = format_count(plan.most_nodes), format_bytes(plan.all_needed_bytes)
        yield f"  {variant.name:<{width}}  {nodes:>7} nodes, needs about {needed:>9}, {_time(*times[variant.name])}"
    yield ""
    yield "Limits, the same for every variant"
    for name, values in info.limits.items():
        memory = format_bytes(values["memory_bytes"]) if "memory_bytes" in values else "by variant"
        cores = f", {values['cpu_cores']:g} cores" if "cpu_cores" in values else ""
        yield f"  {name:<26} {memory:>9}{cores}"
    yield ""
    yield "Control planes"
    explicit = parse_binary_flags(request.run.binaries)
    versions = dict.fromkeys(_versions(variant) for variant in matrix.variants)
    binaries = [binary for pair in versions for binary in plan_all(*pair, explicit=explicit)]
    yield from dict.fromkeys(f"  {binary.component:<26} {binary.version:<9} {binary.how}" for binary in binaries)
    yield ""
    total = _time(*(sum(times[entry.variant][end] for entry in left) for end in (0, 1)))
    kept = f"; {len(info.runs) - len(left)} are finished and kept" if len(left) < len(info.runs) else ""
    yield f"{_counted(len(left), 'run')}, {total} with set-up{kept}"
    yield f"Results would go to {directory}"


def _usual_s(variant: Variant) -> float:
    """Return the time of a search whose ramp goes to its end and whose steps all settle at once; 0 where a run has none."""
    search = plan_search(variant.loaded, variant.plan.fitting_nodes)
    return 0.0 if search is None else search.shortest_s + variant.plan.set_up_s


def _time(usual_s: float, longest_s: float) -> str:
    about = f"about {format_duration(usual_s)}, " if usual_s else ""
    return f"{about}at most {format_duration(longest_s)}"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
