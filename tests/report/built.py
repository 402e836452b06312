"""Reports that name no place of this machine, for the tests of everything that is drawn from them."""

from __future__ import annotations

from pathlib import Path

from scaletest.analysis.state import RunState
from scaletest.analysis.verdict import judge
from scaletest.core.journal import Record
from scaletest.core.rundir import RunInfo
from scaletest.report.build import build
from scaletest.report.document import Document
from scaletest.report.rundir import JournalHealth, LoadedRun
from tests.analysis.journals import run_info


def loaded(records: list[Record], info: RunInfo | None = None) -> LoadedRun:
    info, state = info or run_info(), RunState().apply_all(records)
    health = JournalHealth(state.records, 0, 0, growing=False)
    return LoadedRun(Path("results") / info.id, info, state, judge(info, state), health)


def document(records: list[Record], info: RunInfo | None = None) -> Document:
    return build(loaded(records, info))
