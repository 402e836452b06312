"""Behind ``scaletest gate``: what is run, in turns, and when it is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from scaletest.analysis.changes import Setting
from scaletest.analysis.comparison import Comparison, RunSet, What, compare, profile_and_host_differences
from scaletest.analysis.gatelooks import DEFAULT_REPEAT, looks, setting_of
from scaletest.analysis.gating import Despite, Gate, Rule, decide, is_clear, refuse_unknown
from scaletest.analysis.measures import RunMeasures, possible_metrics
from scaletest.cli._blame import blamed_on
from scaletest.cli._cleaning import clean_dead_clusters
from scaletest.cli._comparisons import deliver_comparison
from scaletest.cli._formats import Format
from scaletest.cli._gating import rules_for
from scaletest.cli._reports import ReportFile
from scaletest.cli._running import RunRequest, execute_once, get_binaries
from scaletest.cli._settings import versions_of
from scaletest.cli._streams import answer, say, tell
from scaletest.controlplane.binaries import Binaries
from scaletest.controlplane.host import MemoryGauge, read_host
from scaletest.core.errors import BaselineError, ExitCode, Interrupted, UsageError
from scaletest.core.rundir import write_json
from scaletest.core.settings import MOST_REPEATS, Settings
from scaletest.core.units import format_duration
from scaletest.observe.hostinfo import host_info
from scaletest.profile.loading import LoadedProfile, load_profile
from scaletest.report.baselines import Baseline, baseline_path, read_baseline
from scaletest.report.comparison_build import document_of
from scaletest.report.sides import read_run
from scaletest.runner.matrix import common_limits, limit_overrides
from scaletest.runner.plan import make_plan, refuse_if_too_large
from scaletest.runner.rundirs import default_run_dir, refuse_run_dir
from scaletest.runner.versions import refuse_unknown_versions

__all__ = ["COMPARISON_NAME", "GateRequest", "Rounds", "parse_against", "run_gate"]

COMPARISON_NAME: Final = "comparison.json"
"""The document of the comparison, beside the runs."""

SideName = Literal["base", "new"]
RunOne = Callable[[SideName, int], RunMeasures]
"""Does one run of a side, by its number from 1 on. Raises Interrupted."""

_SHORT: Final = ("kubernetes", "etcd")
_ASKED: Final[frozenset[Despite]] = frozenset({"profile", "versions", "limits"})
"""What --against makes different."""


@dataclass(frozen=True, slots=True)
class GateRequest:
    """What the command line asked for."""

    reference: str
    overrides: Sequence[str]
    size: str | None
    baseline: str | None
    against: Sequence[str]
    repeat: int | None
    fail: Sequence[str]
    despite: frozenset[Despite]
    output: Path | None
    binaries: Sequence[str]
    dry_run: bool
    baselines: Path | None
    format: Format
    reports: Sequence[ReportFile]
    results: Path
    settings: Settings


@dataclass(slots=True)
class Rounds:
    """Runs in turns, and a look now and then whether the answer is clear."""

    base: RunSet | None
    """A saved baseline; None when the base is run too."""
    rules: Sequence[Rule]
    despite: frozenset[Despite]
    most: int
    names: tuple[str, str] = ("base", "new")

    def run(self, run_one: RunOne, told: Callable[[str], None]) -> tuple[Comparison, Gate, Setting]:
        """Run until the answer is clear, or as often as allowed. Raises what ``run_one`` raises."""
        setting = setting_of(self.most)
        runs: dict[SideName, list[RunMeasures]] = {"base": [], "new": []}
        for number in range(1, self.most + 1):
            # Who goes first changes: a machine that grows warm or busy must not make one side look worse.
            pair: tuple[SideName, ...] = ("base", "new") if number % 2 else ("new", "base")
            for side in pair if self.base is None else ("new",):
                runs[side].append(run_one(side, number))
            if number == 1 or number in looks(self.most):
                compared, gate = self._look(runs, setting)
            if number == 1 and gate.kept and compared.base.valid and compared.new.valid:
                told("no number of runs can decide: the sides differ")
                break
            if number not in looks(self.most):
                continue
            if number < self.most and (gate.outcome == "fail" or is_clear(gate)):
                told(f"clear after {number} of at most {self.most} runs: {gate.outcome}")
                break
        return compared, gate, setting

    def _look(self, runs: Mapping[SideName, list[RunMeasures]], setting: Setting) -> tuple[Comparison, Gate]:
        base = self.base or RunSet(self.names[0], tuple(runs["base"]))
        compared = compare(base, RunSet(self.names[1], tuple(runs["new"])), setting)
        return compared, decide(compared, self.rules, despite=self.despite, setting=setting)


def run_gate(request: GateRequest) -> None:
    """Run, compare and decide; raises SystemExit with the exit code of the gate."""
    sides = _loaded(request)
    new = sides["new"]
    most = _most(request, new)
    rules = rules_for(request.fail, request.settings, new.resolved, asked=True)
    baseline = None
    if request.baseline is not None:
        baseline = read_baseline(baseline_path(request.baseline, request.baselines or request.settings.baselines))
        _refuse_other(baseline, new, request.despite)
        refuse_unknown(rules, [name for run in baseline.runs.runs for name in run.metrics], f"baseline {baseline.name}")
    else:
        refuse_unknown(rules, possible_metrics(new.profile), f"runs of {new.profile.name}")
    directory = request.output or default_run_dir(request.results, f"{new.profile.name}-gate", datetime.now(UTC))
    refuse_run_dir(directory)
    if request.dry_run:
        answer("\n".join(_plan_lines(sides, baseline, rules, most, directory)))
        raise SystemExit(int(ExitCode.PASS))
    rounds = Rounds(
        base=baseline.runs if baseline else None,
        rules=rules,
        despite=request.despite | (_ASKED if request.against else frozenset()),
        most=most,
        names=(f"{directory}/base-*", f"{directory}/new-*"),
    )
    compared, gate, setting = rounds.run(_runner(request, sides, directory), say)
    document = document_of([compared], [gate], setting)
    write_json(directory / COMPARISON_NAME, document.model_dump(mode="json"))
    raise SystemExit(int(deliver_comparison(document, request.reports, request.format)))


def parse_against(texts: Sequence[str]) -> list[str]:
    """Return the ``--set`` texts of ``--against``: kubernetes=1.31, etcd=3.5, set:KEY=VALUE. Raises UsageError."""
    overrides: list[str] = []
    for text in texts:
        key, equals, value = (part.strip() for part in text.removeprefix("set:").partition("="))
        plain = text.startswith("set:")
        if not equals or not value or not all(key.split(".")) or not (plain or key in _SHORT):
            msg = f"--against {text}: not kubernetes=VERSION, etcd=VERSION or set:KEY=VALUE"
            raise UsageError(msg, hint="For example: --against kubernetes=1.36, --against 'set:nodes=100'")
        overrides.append(f"{key}={value}" if plain else f"controlPlane.{key}={value}")
    return overrides


def _loaded(request: GateRequest) -> dict[SideName, LoadedProfile]:
    """Load the profile, and that of the base, under the same limits."""
    if (request.baseline is None) == (not request.against):
        msg = "a gate compares with one of --baseline NAME, --against KEY=VALUE"
        raise UsageError(msg, hint="Save a baseline: scaletest baseline save NAME RUN...")
    against = parse_against(request.against)
    texts: dict[SideName, list[str]] = {"new": list(request.overrides)}
    if against:
        texts["base"] = [*request.overrides, *against]
    versions = versions_of(request.settings)
    blamed: dict[SideName, dict[str, str]] = {
        "new": {},
        "base": {given: f"--against {text}" for given, text in zip(against, request.against, strict=True)},
    }
    sides: dict[SideName, LoadedProfile] = {}
    for side, sets in texts.items():
        with blamed_on(blamed[side]):
            sides[side] = load_profile(request.reference, sets, size=request.size, versions=versions)
    if len(sides) == 2:
        if sides["base"].resolved == sides["new"].resolved:
            msg = f"--against {' '.join(request.against)}: base and new are the same profile"
            raise UsageError(msg, hint="To see how much equal runs differ, compare two sets of runs of it.")
        limits = common_limits([loaded.profile for loaded in sides.values()], read_host())
        sides = {
            side: load_profile(
                request.reference,
                [*texts[side], *limit_overrides(loaded.profile, limits)],
                size=request.size,
                versions=versions,
            )
            for side, loaded in sides.items()
        }
    for warning in sides["new"].warnings:
        tell(f"warning: {warning}")
    for side, loaded in sides.items():
        with blamed_on(blamed[side]):
            refuse_unknown_versions(loaded)
    return sides


def _most(request: GateRequest, loaded: LoadedProfile) -> int:
    most = request.repeat or loaded.profile.gate.repeat or DEFAULT_REPEAT
    if request.repeat is not None and not 1 <= request.repeat <= MOST_REPEATS:
        msg = f"--repeat {request.repeat}: from 1 to {MOST_REPEATS}"
        raise UsageError(msg)
    return most


def _refuse_other(baseline: Baseline, loaded: LoadedProfile, despite: frozenset[Despite]) -> None:
    """Refuse what could not gate in the end, before anything is run."""
    if baseline.profile != loaded.profile.name:
        what = f"a baseline of the profile {baseline.profile}, not of {loaded.profile.name}"
        raise BaselineError(baseline.path, what)
    found = profile_and_host_differences(baseline.runs.runs[0], loaded.resolved, host_info().to_json())
    refused = [item for item in found if item.what.value not in despite]
    if refused:
        first = refused[0]
        word = "profile" if first.what is What.PROFILE else "host"
        more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
        what = f"of another {word}: {first.key} was {first.base} and is {first.new}{more}"
        raise BaselineError(baseline.path, what, hint=f"Save a new one, or compare all the same: --despite {word}")


def _runner(request: GateRequest, sides: Mapping[SideName, LoadedProfile], directory: Path) -> RunOne:
    """Get all binaries, refuse what does not fit, and return what does one run."""
    available_bytes = MemoryGauge().available_bytes()
    binaries: dict[SideName, Binaries] = {}
    for side, loaded in sides.items():
        refuse_if_too_large(make_plan(loaded.profile, read_host()), available_bytes)
        spec = loaded.profile.control_plane
        binaries[side] = get_binaries(spec.kubernetes, spec.etcd, request.binaries)

    run = RunRequest(
        reference=request.reference,
        overrides=request.overrides,
        size=request.size,
        output=None,
        cluster=None,
        keep=False,
        binaries=request.binaries,
        dry_run=False,
    )

    def run_one(side: SideName, number: int) -> RunMeasures:
        clean_dead_clusters()
        run_dir = directory / f"{side}-{number}"
        say(f"run {run_dir.name}")
        result = asyncio.run(execute_once(run, sides[side], binaries[side], run_dir))
        if result.verdict.exit_code is ExitCode.INTERRUPTED:
            msg = "interrupted"
            raise Interrupted(msg, hint=f"What was run is kept under {directory}/.")
        return read_run(run_dir)

    return run_one


def _plan_lines(
    sides: Mapping[SideName, LoadedProfile],
    baseline: Baseline | None,
    rules: Sequence[Rule],
    most: int,
    directory: Path,
) -> Iterator[str]:
    longest_s = sum(make_plan(loaded.profile, read_host()).longest_s for loaded in sides.values())
    yield f"{sides['new'].profile.name}: at most {most} runs of {'each side, in turns' if baseline is None else 'it'}, {format_duration(most * longest_s)} with set-up"
    if baseline is not None:
        yield f"against the baseline {baseline.name}: {len(baseline.runs.runs)} runs, saved {baseline.saved_at}"
    yield f"looks after {', '.join(str(look) for look in looks(most))} runs, and stops when the answer is clear"
    yield "fails when"
    yield from (f"  {rule.text}  ({rule.given_by})" for rule in rules)
    yield f"Results would go to {directory}"
