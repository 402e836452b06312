"""One run, from a resolved profile to a verdict.

The body of a run (start, phases) is one task; whatever ends it early (a signal, the host guard, a lost
cluster or driver, an objective with ``abort``) cuts that task, and the same orderly end follows in every
case: engines stopped, the journal closed with ``run.end``, the verdict written. Nothing is kept in
memory that is not in the journal already: conditions are evaluated on what is read back from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scaletest.analysis.evaluate import holds, measure
from scaletest.analysis.series import Span
from scaletest.analysis.state import RunState
from scaletest.analysis.verdict import Verdict, judge
from scaletest.core.errors import ScaletestError, of_the_machine
from scaletest.core.journal import JOURNAL_NAME, JournalFile, JournalReader, Record
from scaletest.core.rundir import VERDICT_NAME, RunInfo, write_json, write_run_info
from scaletest.observe.pprof import Capture
from scaletest.profile.loading import LoadedProfile
from scaletest.profile.objectives import parse_objective
from scaletest.profile.schema import Phase, Profile
from scaletest.profile.search_checks import SEARCH_PHASE
from scaletest.profile.stepping import StepChange
from scaletest.runner.actions import Actions
from scaletest.runner.cut import Cut, CutReason, on_signals
from scaletest.runner.engines import Engines
from scaletest.runner.rundirs import create_run_dir
from scaletest.runner.searching import Pace, Searcher
from scaletest.runner.searchplan import SearchPlan, plan_search

__all__ = ["RunOptions", "RunResult", "execute"]

_FOLLOW_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where a run goes and how it was asked for."""

    run_dir: Path
    argv: Sequence[str]
    host: dict[str, Any]
    most_nodes: int | None = None
    """Nodes that fit in memory; a search goes no further."""
    pace: Pace = field(default_factory=Pace)
    """How often a search looks."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to."""

    run_dir: Path
    verdict: Verdict


async def execute(
    loaded: LoadedProfile, options: RunOptions, engines: Engines, on_record: Callable[[Record], None]
) -> RunResult:
    """Run a profile and judge it.

    Every record of the journal, whoever wrote it, is handed to ``on_record`` as it appears. Raises
    ScaletestError when the run could not take place; its directory then says how far it got.
    """
    create_run_dir(options.run_dir)
    clock_origin_s = time.monotonic()
    info = RunInfo(
        id=options.run_dir.name,
        profile=loaded.resolved,
        provenance={key: str(origin) for key, origin in loaded.provenance.items()},
        versions={},
        host=options.host,
        limits={},
        argv=list(options.argv),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        clock_origin_s=clock_origin_s,
    )
    write_run_info(options.run_dir, info)
    journal = JournalFile(options.run_dir / JOURNAL_NAME, src="runner", clock_origin_s=clock_origin_s)
    try:
        return await _Session(
            loaded=loaded, options=options, info=info, engines=engines, journal=journal, on_record=on_record
        ).run()
    finally:
        journal.close()


class _Session:
    def __init__(
        self,
        *,
        loaded: LoadedProfile,
        options: RunOptions,
        info: RunInfo,
        engines: Engines,
        journal: JournalFile,
        on_record: Callable[[Record], None],
    ) -> None:
        self.loaded = loaded
        self.profile = loaded.profile
        self.options = options
        self.info = info
        self.engines = engines
        self.journal = journal
        self.on_record = on_record
        self.cut = Cut()
        self.state = RunState()
        self.reader = JournalReader(journal.path)
        self.running: set[str] = set()
        self.actions = Actions(engines, self.profile, journal)

    async def run(self) -> RunResult:
        """Run the body, then the end, whatever happened."""
        self.journal.append("run.start", profile=self.profile.name, argv=list(self.options.argv))
        undo_signals = on_signals(self._on_signal)
        follower = asyncio.create_task(self._follow())
        failure: BaseException | None = None
        try:
            await self.cut.guard(asyncio.create_task(self._body()))
        except BaseException as error:  # noqa: BLE001 - raised again once everything is ended
            failure = of_the_machine(error) or error
        await self._end(follower, failure)
        undo_signals()
        verdict = judge(self.info, self.state, self.reader.damage)
        # A full disk may not take it; the report makes it again from the journal, and is worth more than the file.
        with contextlib.suppress(OSError):
            write_json(self.options.run_dir / VERDICT_NAME, verdict.to_json())
        if failure is not None:
            raise failure
        return RunResult(self.options.run_dir, verdict)

    async def _end(self, follower: asyncio.Task[None], failure: BaseException | None) -> None:
        # Logs and facts may find no space any more. What was measured is in the journal, and the run has to end in order.
        try:
            await self.engines.stop()
        except OSError as error:
            text = f"the logs of the components are not all here: {_refused(error)}"
            self.journal.append("note", level="warning", text=text)
        try:
            self._note_facts()
        except OSError as error:
            text = f"run.json lacks what was known last: {_refused(error)}"
            self.journal.append("note", level="warning", text=text)
        end = self.cut.why or _end_of(failure)
        exit_code = int(failure.exit_code) if isinstance(failure, ScaletestError) else None
        self.journal.append(
            "run.end", status=end.status, reason=end.reason, exit_code=exit_code, lost_records=self.journal.lost_records
        )
        follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await follower
        self.read_back()

    async def _body(self) -> None:
        await self.engines.start(self.journal, self.cut)
        self._note_facts()
        for number, phase in enumerate(self.profile.phases):
            await self._phase(number, phase)
        plan = plan_search(self.loaded, self.options.most_nodes)
        if plan is not None:
            await self._search(plan)
        for flow in sorted(self.running):
            await self.stop_flow(flow)

    async def _search(self, plan: SearchPlan) -> None:
        self.journal.append("phase.start", phase=SEARCH_PHASE)
        reason = "cut"
        try:
            await Searcher(self.loaded, plan, _SessionLoads(self), self.journal, self.options.pace).run()
            reason = "done"
        finally:
            self.journal.append("phase.end", phase=SEARCH_PHASE, reason=reason)

    async def _phase(self, number: int, phase: Phase) -> None:
        # A condition looks at this phase alone: what an earlier one has seen must not end it.
        span = (self.journal.append("phase.start", phase=phase.name)["t"], math.inf)
        reason = "cut"
        try:
            for flow in phase.stop:
                await self.stop_flow(flow)
            await self.actions.begin(number)
            for flow in phase.start:
                await self.start_flow(flow)
            reason = await self._wait_for_end(phase, span)
        finally:
            try:
                await self.actions.end()
            finally:
                self.journal.append("phase.end", phase=phase.name, reason=reason)

    async def _wait_for_end(self, phase: Phase, span: Span) -> str:
        until = None if phase.until is None else parse_objective(phase.until)
        deadline_s = time.monotonic() + phase.longest_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            if until is not None and holds(until, self.state, span):
                return "condition"
            await asyncio.sleep(min(left_s, _FOLLOW_EVERY_S))
        return "time" if until is None else "at_most"

    async def start_flow(self, flow: str) -> None:
        """Start a flow and say so in the journal."""
        target = await self.engines.start_flow(flow)
        self.running.add(flow)
        self.journal.append("flow.start", flow=flow, target=target, unit=self.profile.flows[flow].unit)

    async def stop_flow(self, flow: str) -> None:
        """Stop a flow and say so in the journal."""
        await self.engines.stop_flow(flow)
        self.running.discard(flow)
        self.journal.append("flow.stop", flow=flow)

    async def _follow(self) -> None:
        while True:
            self.read_back()
            self._check_aborts()
            await asyncio.sleep(_FOLLOW_EVERY_S)

    def read_back(self) -> None:
        """Take in what was journalled since, by whomever."""
        for line, record in self.reader.read_numbered():
            self.state.apply(record, line)
            self.on_record(record)

    def _check_aborts(self) -> None:
        elapsed_s = time.monotonic() - self.info.clock_origin_s
        for spec in self.profile.objectives:
            if not spec.abort or elapsed_s < spec.delay_s:
                continue
            objective = parse_objective(spec.check)
            measured = measure(self.state, objective.subject)
            if measured.samples and not objective.holds(measured.value):
                value = objective.subject.dimension.format(measured.value)
                self.cut("aborted", f"{objective} does not hold: {value}")

    def _note_facts(self) -> None:
        self.info = replace(self.info, **self.engines.facts())
        write_run_info(self.options.run_dir, self.info)

    def _on_signal(self, signum: signal.Signals) -> None:
        if self.cut.why is None:
            self.journal.append("note", level="info", text=f"{signum.name}: ending the run; results so far are kept")
        self.cut("interrupted", signum.name)


class _SessionLoads:
    """What a search does with a run, of a session."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    async def start_flow(self, flow: str) -> None:
        await self._session.start_flow(flow)

    async def stop_flow(self, flow: str) -> None:
        await self._session.stop_flow(flow)

    async def step_to(self, profile: Profile, change: StepChange) -> None:
        await self._session.engines.step_to(profile, change)

    async def capture(self, capture: Capture) -> list[str]:
        return await self._session.engines.capture(capture)

    def state(self) -> RunState:
        self._session.read_back()
        return self._session.state


def _refused(error: OSError) -> str:
    problem = of_the_machine(error)
    return str(error) if problem is None else problem.message


def _end_of(failure: BaseException | None) -> CutReason:
    if failure is None:
        return CutReason("finished", "")
    if isinstance(failure, ScaletestError):
        return CutReason("error", failure.message)
    return CutReason("error", f"{type(failure).__name__}: {failure}")
