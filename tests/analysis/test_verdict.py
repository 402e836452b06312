"""Which verdict, which exit code, and why."""

from __future__ import annotations

import json
import math
from itertools import permutations
from typing import Any

import pytest

from scaletest.analysis.state import RunState
from scaletest.analysis.verdict import Outcome, beside, format_measured, judge, worst
from scaletest.core.errors import ExitCode
from scaletest.core.journal import WHOLE, JournalDamage, Record
from scaletest.profile.objectives import Dimension
from tests.analysis.journals import driver, flow, probe, record, run_info, step

GOOD, BAD = "flow.agents.error_rate < 50%", "flow.agents.error_rate > 50%"


def run(*, status: str | None = "finished", lag_us: int = 500, ended: bool = True, **end: Any) -> RunState:
    records: list[Record] = [
        record("phase.start", 0.0, phase="load"),
        record("flow.start", 0.0, flow="agents", target=10),
        *(flow(float(t), steps={"get": step([100])}) for t in range(1, 11)),
        *(driver(float(t), [lag_us] * 50) for t in range(11)),
    ]
    if ended:
        records.append(record("phase.end", 10.0, phase="load", reason="time"))
    if status is not None:
        records.append(record("run.end", 11.0, status=status, reason="because", **end))
    return RunState().apply_all(records)


def profile(*objectives: str) -> Any:
    return run_info(profile={"name": "p", "objectives": [{"check": text} for text in objectives]})


@pytest.mark.parametrize(
    ("state", "objectives", "outcome", "code"),
    [
        (run(), [GOOD], Outcome.PASS, 0),
        (run(), [GOOD, BAD], Outcome.FAIL, 99),
        (run(), [], Outcome.FAIL, 99),
        (run(status="aborted"), [GOOD], Outcome.FAIL, 99),
        (run(lag_us=900_000), [GOOD], Outcome.INVALID, 4),
        (run(lag_us=900_000), [BAD], Outcome.INVALID, 4),
        (run(status="interrupted"), [GOOD], Outcome.INCOMPLETE, 130),
        (run(status="interrupted", lag_us=900_000), [BAD], Outcome.INCOMPLETE, 130),
        (run(status="host_guard"), [GOOD], Outcome.INCOMPLETE, 3),
        (run(status="cluster_lost"), [GOOD], Outcome.INCOMPLETE, 3),
        (run(status="driver_lost"), [GOOD], Outcome.INCOMPLETE, 3),
        (run(status="error"), [GOOD], Outcome.INCOMPLETE, 1),
        (run(status="error", exit_code=3), [GOOD], Outcome.INCOMPLETE, 3),
        (run(status="of-the-future"), [GOOD], Outcome.INCOMPLETE, 1),
        (run(status=None), [GOOD], Outcome.INCOMPLETE, 3),
    ],
)
def test_verdict(state: RunState, objectives: list[str], outcome: Outcome, code: int) -> None:
    verdict = judge(profile(*objectives), state)

    assert (outcome, code) == (verdict.outcome, int(verdict.exit_code))
    assert (verdict.outcome is Outcome.PASS) == (not verdict.reasons)


def test_a_killed_run_says_when_and_where() -> None:
    verdict = judge(profile(GOOD), run(status=None, ended=False), JournalDamage(broken_lines=1, first_broken_line=3))

    assert verdict.reasons[0] == "killed at 10.0 s in phase load; 1 broken line of the journal skipped"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (JournalDamage(found=False), "there is no journal.jsonl: nothing was measured"),
        (WHOLE, "journal.jsonl is empty: nothing was measured"),
        (JournalDamage(True, 1, 1, cut_end=True), "journal.jsonl has no whole line: nothing was measured"),
    ],
)
def test_a_journal_without_a_record_is_told_as_what_it_is(damage: JournalDamage, said: str) -> None:
    verdict = judge(profile(GOOD), RunState(), damage)

    assert (Outcome.INCOMPLETE, ExitCode.ENVIRONMENT) == (verdict.outcome, verdict.exit_code)
    assert said == verdict.reasons[0]
    assert [said] == [check.said for check in verdict.checks if check.name == "journal"]


def test_a_run_that_was_cut_short_says_what_of_its_journal_does_not_count() -> None:
    state = run(status="interrupted")
    state.apply_all([record("probe", 5.0, latency_s=math.nan), record("flow", 5.0)])
    damage = JournalDamage(broken_lines=1, first_broken_line=3)

    said = "; 1 broken line and 2 malformed records of the journal skipped"
    assert judge(profile(GOOD), state, damage).reasons[0].endswith(said)


def test_a_run_killed_before_its_first_phase_says_so() -> None:
    verdict = judge(profile(GOOD), RunState().apply_all([record("cluster.ready", 4.0, seconds=3.0)]))

    assert verdict.reasons[0] == "killed at 4.0 s before the first phase"


def test_an_interrupted_run_names_the_phase_that_was_cut() -> None:
    state = RunState().apply_all(
        [
            record("phase.start", 0.0, phase="load"),
            record("phase.end", 5.0, phase="load", reason="cut"),
            record("run.end", 6.0, status="interrupted", reason="SIGINT"),
        ]
    )

    assert judge(profile(GOOD), state).reasons[0] == "interrupted at 6.0 s in phase load: SIGINT"


def test_all_reasons_are_given_the_deciding_one_first() -> None:
    verdict = judge(profile(BAD), run(status="interrupted", lag_us=900_000))

    assert [reason.split(" ")[0] for reason in verdict.reasons] == [
        "interrupted",
        "event-loop",
        BAD.split(" ", maxsplit=1)[0],
    ]


def test_what_was_never_measured_fails() -> None:
    verdict = judge(profile("probe.operator.p99 < 1s"), run())

    assert verdict.outcome is Outcome.FAIL
    assert verdict.reasons == (
        "probe.operator.p99 < 1s: not measured: probe operator observed nothing in this run; none was measured",
    )


def test_an_objective_of_another_version_fails() -> None:
    verdict = judge(profile("flow.agents.karma > 3"), run())

    assert verdict.reasons == ("flow.agents.karma > 3: not measured: not understood by this version of scaletest",)


def test_an_abort_fails_although_the_objective_holds_at_the_end() -> None:
    assert judge(profile(GOOD), run(status="aborted")).reasons == ("aborted at 11.0 s: because",)


def test_a_probe_without_any_answer_is_said_so() -> None:
    state = run()
    state.apply_all([probe(1.0, outcome="timeout")])
    verdict = judge(profile("probe.operator.p99 < 1s"), state)

    assert verdict.reasons == ("probe.operator.p99 < 1s: no answer",)


@pytest.mark.parametrize(
    ("objective", "value", "said"),
    [
        ("probe.operator.max < 1s", 1.0004, "1.0004 s"),
        ("probe.operator.max < 1s", 0.99996, "0.99996 s"),
        ("probe.operator.max < 1s", 1.0, "1.00 s"),
        ("probe.operator.max < 1s", 1.2, "1.20 s"),
        ("probe.operator.max < 125s", 125.3, "125.3 s"),
    ],
)
def test_a_value_that_rounds_to_the_threshold_is_given_the_digits_that_tell_them_apart(
    objective: str, value: float, said: str
) -> None:
    state = run()
    state.apply_all([probe(1.0, value)])

    assert [said] == [format_measured(result) for result in judge(profile(objective), state).objectives]


@pytest.mark.parametrize(
    ("value", "threshold", "dimension", "said"),
    [
        (0.010004, 0.01, Dimension.SHARE, "1.0004 %"),
        (2**31 + 1, 2**31, Dimension.BYTES, "2,147,483,649 B"),
        (80.001, 80.0, Dimension.RATE, "80.001/s"),
        (7000.4, 7000.0, Dimension.COUNT, "7,000.4"),
    ],
)
def test_digits_are_given_in_every_dimension(value: float, threshold: float, dimension: Dimension, said: str) -> None:
    assert said == beside(threshold, value, dimension)


def test_objectives_written_as_text_are_read_too() -> None:
    assert judge(run_info(profile={"objectives": [GOOD]}), run()).outcome is Outcome.PASS


@pytest.mark.parametrize("odd", [{}, {"objectives": None}, {"objectives": [3]}, {"flows": 3, "objectives": [GOOD]}])
def test_a_profile_of_another_shape_is_judged_all_the_same(odd: dict[str, Any]) -> None:
    assert judge(run_info(profile=odd), run()).outcome in set(Outcome)


def test_the_json_of_a_verdict_has_no_number_that_json_lacks() -> None:
    state = run()
    state.apply_all([probe(1.0, outcome="timeout")])
    verdict = judge(profile("probe.operator.p99 < 1s", "etcd.fsync_p99 < 1s", GOOD), state)
    data = json.loads(json.dumps(verdict.to_json(), allow_nan=False))

    assert data["outcome"] == "fail"
    assert data["exit_code"] == 99
    assert [item["value"] for item in data["objectives"]] == [None, None, 0.0]


def test_of_several_exit_codes_the_documented_precedence_decides() -> None:
    order = [ExitCode(code) for code in (130, 1, 3, 4, 99, 0)]
    for length in range(1, 4):
        for codes in permutations(order, length):
            assert worst(codes) == min(codes, key=order.index)
    assert worst([]) is ExitCode.PASS
