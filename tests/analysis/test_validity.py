"""Is the generator the bottleneck? Each check, on both sides of its limit."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scaletest.analysis.state import RunState
from scaletest.analysis.validity import Check, Grade, check_validity
from scaletest.core.journal import JournalDamage, Record
from tests.analysis import searches
from tests.analysis.journals import driver, flow, host, probe, process, record, small_run

PROFILE: dict[str, Any] = {"flows": {"agents": {"agents": {"count": 100, "rollout": "10/s"}}}}


def run(*more: Record, drivers: list[Record] | None = None, started: int = 100) -> RunState:
    """A minute with one flow whose agents all start at once."""
    records = [
        record("phase.start", 0.0, phase="one"),
        record("flow.start", 0.0, flow="agents", target=100),
        *(flow(float(t), target=100, started=started, steps={}) for t in range(1, 61)),
        *(drivers if drivers is not None else [driver(float(t)) for t in range(61)]),
        *more,
        record("flow.stop", 60.0, flow="agents"),
        record("phase.end", 60.0, phase="one", reason="time"),
        record("driver.end", 60.1, "driver", reason="asked"),
        record("run.end", 61.0, status="finished", reason=""),
    ]
    return RunState().apply_all(records)


def find(name: str, state: RunState, **options: Any) -> Check:
    return next(item for item in check_validity(state, PROFILE, **options) if item.name == name)


def test_a_healthy_run_passes_every_check() -> None:
    checks = check_validity(RunState().apply_all(small_run()), PROFILE)

    assert [item.grade for item in checks] == [Grade.GOOD] * len(checks)
    assert {item.name for item in checks} == {
        "journal", "host steal", "other processes", "own cost", "probes", "driver", "event-loop lag", "driver CPU", "unread answers", "rollout of agents",
    }  # fmt: skip


@pytest.mark.parametrize(("cores", "grade"), [(0.04, Grade.GOOD), (0.06, Grade.WARNING)])
def test_what_the_command_itself_takes_is_said_and_never_a_reason(cores: float, grade: Grade) -> None:
    phase = [record("phase.start", 0.0, phase="only"), record("phase.end", 100.0, phase="only", reason="time")]
    samples = [process(float(t), cli=(99, 80e6, cores * t)) for t in range(1, 90)]

    (check,) = [
        item for item in check_validity(RunState().apply_all([*phase, *samples]), {}) if item.name == "own cost"
    ]

    assert check.grade is grade
    assert f"took {round(100 * cores)} % of a core" in check.said


def test_a_run_without_flows_needs_no_driver() -> None:
    checks = check_validity(RunState().apply_all([probe(1.0)]), {})

    assert {item.name for item in checks} == {"journal", "probes"}


@pytest.mark.parametrize(("lag_us", "grade"), [(90_000, Grade.GOOD), (110_000, Grade.BAD)])
def test_event_loop_lag(lag_us: int, grade: Grade) -> None:
    check = find("event-loop lag", run(drivers=[driver(float(t), [lag_us] * 100) for t in range(61)]))

    assert grade == check.grade
    assert (check.remedy is not None) == (grade is Grade.BAD)


def test_a_stall_of_one_phase_does_not_hide_in_a_long_run() -> None:
    drivers = [driver(float(t), [300_000] * 100 if 1000 < t < 1006 else [500] * 100) for t in range(2000)]
    phases = [
        record("phase.start", 0.0, phase="quiet"),
        record("phase.end", 1000.0, phase="quiet", reason="time"),
        record("phase.start", 1000.0, phase="storm"),
        record("phase.end", 1010.0, phase="storm", reason="time"),
        record("phase.start", 1010.0, phase="calm"),
        record("flow.start", 0.0, flow="agents", target=1),
    ]
    check = find("event-loop lag", RunState().apply_all([*phases, *drivers]))

    assert check.grade is Grade.BAD
    assert "in phase storm" in check.said


@pytest.mark.parametrize(
    ("cores_of_second", "grade"),
    [
        (lambda t: 0.85, Grade.GOOD),
        (lambda t: 0.95, Grade.BAD),
        (lambda t: 1.0 if t < 8 else 0.2, Grade.GOOD),
    ],
)
def test_driver_cpu_counts_when_it_is_sustained(cores_of_second: Any, grade: Grade) -> None:
    used, drivers = 0.0, []
    for t in range(61):
        used += cores_of_second(t)
        drivers.append(driver(float(t), cpu_s=used))

    assert grade == find("driver CPU", run(drivers=drivers)).grade


@pytest.mark.parametrize(
    ("share_of_second", "grade"),
    [
        (lambda t: 0.04, Grade.GOOD),
        (lambda t: 0.06, Grade.BAD),
        (lambda t: 0.9 if t % 9 else 0.0, Grade.GOOD),
        (lambda t: 1.0 if t % 3 else None, Grade.GOOD),  # no socket waited for bytes: none had any
    ],
)
def test_unread_answers_count_when_they_are_sustained(share_of_second: Any, grade: Grade) -> None:
    drivers = [driver(float(t), unread_share=share_of_second(t)) for t in range(61)]

    assert grade == find("unread answers", run(drivers=drivers)).grade


def test_a_driver_that_fell_silent_makes_the_run_invalid() -> None:
    check = find("driver", run(drivers=[driver(float(t)) for t in range(61) if not 20 < t < 30]))

    assert check.grade is Grade.BAD
    assert check.said == "the load driver said nothing for 10.0 s from 20.0 s on"


def test_a_driver_that_died_in_mid_run_makes_it_invalid() -> None:
    assert find("driver", run(drivers=[driver(float(t)) for t in range(30)])).grade is Grade.BAD


def test_a_driver_that_never_reported_makes_the_run_invalid() -> None:
    assert find("driver", run(drivers=[])).grade is Grade.BAD


def test_a_driver_that_ended_unasked_makes_the_run_invalid() -> None:
    state = RunState().apply_all(
        [
            record("flow.start", 0.0, flow="agents", target=1),
            record("driver.end", 5.0, "driver", reason="owner_gone"),
        ]
    )

    assert find("driver", state).said == "the load driver ended at 5.0 s: owner_gone"


def test_agents_that_start_later_than_asked_make_the_run_invalid() -> None:
    """100 agents at 10/s are there after ten seconds; here 40 never come."""
    check = find("rollout of agents", run(started=60))

    assert check.grade is Grade.BAD
    assert check.said.startswith("60 of 100 agents at")


def test_a_rollout_cut_short_by_its_phase_is_as_asked() -> None:
    state = RunState().apply_all(
        [
            record("flow.start", 0.0, flow="agents", target=100),
            *(flow(float(t), target=100, started=10 * t, steps={}) for t in range(1, 6)),
        ]
    )

    assert find("rollout of agents", state).grade is Grade.GOOD


def test_agents_of_nodes_that_come_later_are_due_from_then_on() -> None:
    state = RunState().apply_all(
        [
            record("flow.start", 0.0, flow="agents", target=50),
            *(flow(float(t), target=50, started=min(50, 10 * t), steps={}) for t in range(1, 100)),
            *(flow(100.0 + t, target=100, started=min(100, 50 + 10 * t), steps={}) for t in range(9)),
        ]
    )

    assert find("rollout of agents", state).grade is Grade.GOOD


def test_a_blocked_flow_starts_nobody_and_is_as_asked() -> None:
    state = RunState().apply_all(
        [
            record("flow.start", 0.0, flow="agents", target=100),
            *(flow(float(t), target=100, started=0, blocked=True, steps={}) for t in range(1, 60)),
        ]
    )

    assert find("rollout of agents", state).grade is Grade.GOOD


@pytest.mark.parametrize("rollout", ["10/s", 10.0, "600/m"])
def test_the_rate_is_read_as_the_profile_spells_it(rollout: Any) -> None:
    profile = {"flows": {"agents": {"agents": {"rollout": rollout}}}}
    check = next(item for item in check_validity(run(), profile) if item.name == "rollout of agents")

    assert check.said == "10 agents/s, as asked"


@pytest.mark.parametrize(
    ("steal", "grade"), [(0.001, Grade.GOOD), (0.05, Grade.WARNING), (0.2, Grade.BAD)]
)  # fmt: skip
def test_stolen_cpu(steal: float, grade: Grade) -> None:
    hosts = [host(float(t), busy=(1 - steal) * t, idle=float(t), steal=2 * steal * t) for t in range(10)]

    assert grade == find("host steal", run(*hosts)).grade


@pytest.mark.parametrize(("own_cores", "grade"), [(1.4, Grade.GOOD), (0.8, Grade.WARNING)])
def test_cpu_taken_by_others_is_said(own_cores: float, grade: Grade) -> None:
    """Two cores, of which 1.6 are busy."""
    hosts = [host(float(t), busy=1.6 * t, idle=0.4 * t) for t in range(10)]
    processes = [process(float(t), etcd=(1, 1, own_cores * t)) for t in range(10)]

    assert grade == find("other processes", run(*hosts, *processes)).grade


@pytest.mark.parametrize(("broken", "grade"), [(0, Grade.GOOD), (1, Grade.WARNING), (20, Grade.BAD)])
def test_broken_lines(broken: int, grade: Grade) -> None:
    check = find("journal", run(), damage=JournalDamage(broken_lines=broken, first_broken_line=7))

    assert grade == check.grade
    assert (grade is not Grade.GOOD) == check.said.startswith(f"{broken} broken (first in line 7) of ")
    assert "disk space" not in (check.remedy or "")


def test_malformed_records_are_told_with_their_number_kind_and_first_line() -> None:
    state = run()
    whole = state.records
    for number, kind in enumerate(("probe", "flow", "probe", "note", "host"), start=300):
        state.apply(record(kind, math.nan), number)
    check = find("journal", state)

    said = "5 malformed (probe 2, flow 1, note 1, …; first in line 300)"
    assert f"{said} of {whole + 5} records" == check.said
    assert "changed or damaged later" in (check.remedy or "")


def test_a_file_that_ends_within_a_line_had_no_room() -> None:
    check = find("journal", run(), damage=JournalDamage(broken_lines=1, first_broken_line=9, cut_end=True))

    assert check.said.startswith("1 broken (first in line 9; the end is cut) of ")
    assert "Free disk space and run again." == check.remedy


def test_lost_records() -> None:
    check = find("journal", run(record("note", 5.0, text="", lost_records=50)))

    assert check.grade is Grade.BAD
    assert check.remedy == "Free disk space and run again."


@pytest.mark.parametrize(("late_s", "grade"), [(0.05, Grade.GOOD), (0.5, Grade.BAD)])
def test_probes_sent_late(late_s: float, grade: Grade) -> None:
    assert grade == find("probes", run(*(probe(float(t)) | {"late_s": late_s} for t in range(60)))).grade


@pytest.mark.parametrize(("skips", "grade"), [(2, Grade.GOOD), (10, Grade.BAD)])
def test_probes_not_sent(skips: int, grade: Grade) -> None:
    probes = [probe(float(t), outcome="skipped" if t < skips else "ok") for t in range(60)]

    assert grade == find("probes", run(*probes)).grade


@pytest.mark.parametrize(
    ("space", "grade"),
    [
        ({}, Grade.BAD),
        ({"made_end": 100.0, "beyond": "period"}, Grade.WARNING),
        # Of what is made as it is, not everything was tried.
        ({"made_end": 150.0, "beyond": "period"}, Grade.BAD),
    ],
)
def test_the_generator_may_end_a_search_among_derived_loads_only(space: dict[str, Any], grade: Grade) -> None:
    tried = [
        (50.0, "held"),
        (100.0, "held"),
        *[(value, "not counted") for value in (200.0, 200.0, 140.0, 140.0, 120.0, 120.0)],
    ]
    state = run(searches.start(t=1.0, resolution=0.1, **space), *searches.steps(*tried, t=2.0))

    assert grade is find("search", state).grade


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"generator": [6, 7], "control_plane": [0, 1, 2, 3, 4, 5], "all": 8, "kept": False}, "the load driver has CPU 6-7, the control plane 0-5"),
        ({"generator": [], "control_plane": [], "all": 2, "kept": False}, "load driver and control plane share 2 (apart from 4 on)"),
        ({"generator": [], "control_plane": [], "all": 8, "kept": True}, "share 8: the cluster was there before the run"),
    ],
)  # fmt: skip
def test_who_has_which_cores_is_said_and_makes_nothing_invalid(fields: dict[str, Any], said: str) -> None:
    (check,) = [
        item
        for item in check_validity(RunState().apply_all([record("cores", 1.0, **fields)]), {})
        if item.name == "cores"
    ]

    assert said in check.said
    assert Grade.GOOD is check.grade
