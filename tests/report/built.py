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
from tests.analysis.journals import flow, hist, run_info, small_run, step
from tests.analysis.test_churn import churn


def loaded(records: list[Record], info: RunInfo | None = None) -> LoadedRun:
    info, state = info or run_info(), RunState().apply_all(records)
    health = JournalHealth(state.records, 0, 0, growing=False)
    return LoadedRun(Path("results") / info.id, info, state, judge(info, state), health)


def every_flow() -> list[Record]:
    """The small run with a flow of each kind: agents, arrivals, churn, watchers."""
    paced = {
        "rate_per_s": 10.0,
        "due": 10,
        "sent": 9,
        "dropped": 1,
        "behind": 0,
        "in_flight": 2,
        "waiting": 0,
        "lag_us": hist([100] * 10),
    }
    watched = step([1_000], events=5, event_us=hist([2_000] * 5), reconnects=3, early_us=hist([9e6] * 30))
    return [
        *small_run(),
        flow(18.0, "lists", target=4, started=4, steps={"list": step([1_000], [5_000], {"200": 1, "429": 1}, service_us=hist([900]))}, arrivals=paced),
        flow(18.0, "churn", target=60, started=58, connected=4, steps={"scale": step([3_000] * 10)}, arrivals=paced, churn=churn([1e6] * 99, moved=12)),
        flow(18.0, "watchers", target=10, started=10, connected=10, steps={"watch": watched}),
    ]  # fmt: skip


def document(records: list[Record], info: RunInfo | None = None) -> Document:
    return build(loaded(records, info))
