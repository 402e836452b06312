"""The milestones of an incident: with and without rollout, lever and SLO, killed, with several levers."""

from __future__ import annotations

from typing import Any

import pytest

from scaletest.analysis.incident import Incident, Kind, Milestone, analyse
from scaletest.analysis.state import RunState
from scaletest.core.journal import Record
from tests.analysis.journals import big_run, nodes, probe, record, small_run
from tests.analysis.outages import IDENTITIES, LEASE_TAIL, outage, outage_info

PROFILE = outage_info().profile


def incident(records: list[Record], **profile: object) -> Incident:
    return analyse(RunState().apply_all(records), {**PROFILE, **profile})


def of(found: Incident, kind: Kind) -> list[Milestone]:
    return [item for item in found.milestones if item.kind is kind]


def one(found: Incident, kind: Kind) -> Milestone:
    (item,) = of(found, kind)
    return item


def test_an_outage_that_a_lever_ended() -> None:
    found = incident(outage())

    assert (27.02, "telemetry") == (found.rollout_s, found.flow)
    assert (27.02, 50) == (one(found, Kind.ROLLOUT).t_s, one(found, Kind.ROLLOUT).count)
    assert 37.0 == one(found, Kind.STARTED).t_s
    # The first request that fails is sent at 45.1 s: the first window that has it ends at 46 s.
    assert 46.0 == found.first_breach_s == one(found, Kind.SLO_BROKEN).t_s
    assert [45.0, 65.0] == [item.t_s for item in of(found, Kind.KILLED)]
    assert [1, 2] == [item.count for item in of(found, Kind.KILLED)]
    assert [54.0, 89.0] == [item.until_s for item in of(found, Kind.KILLED)]
    assert (60.0, 60.2) == (one(found, Kind.LEASE_LOST).t_s, one(found, Kind.LEASE_LOST).until_s)
    assert [57.01, 87.02] == [item.t_s for item in of(found, Kind.ROLLBACK)]
    assert pytest.approx(29.98) == 86.99 - (one(found, Kind.ROLLBACK_FAILED).since_s or 0)
    assert (100.0, 87.02) == (one(found, Kind.ROLLBACK_DONE).t_s, one(found, Kind.ROLLBACK_DONE).since_s)
    assert (87.005, "block-agents") == (one(found, Kind.LEVER).t_s, one(found, Kind.LEVER).subject)
    (lever,) = found.levers
    assert (("block-agents",), True, ()) == (lever.levers, lever.recovered, lever.found)


def test_identities_are_followed_one_by_one() -> None:
    found = incident(outage())
    locked = [item for item in of(found, Kind.LOCKOUT) if item.subject == "operator"]

    assert {(identity, number) for identity in IDENTITIES for number in (44, 64)} == {
        (item.identity, int(item.t_s)) for item in locked
    }
    answered = {item.identity: item.t_s for item in of(found, Kind.FIRST_ANSWER)}
    assert {"system:masters": 90.11, "admin": 90.21, "on-call": 90.31} == pytest.approx(answered, abs=0.011)
    assert set(IDENTITIES) == {item.identity for item in of(found, Kind.GOOD_AGAIN)}
    # From the sending of the first good request of the last identity.
    assert found.recovered
    assert 90.3 == pytest.approx(found.recovered_s) == one(found, Kind.RECOVERED).t_s


def test_not_ready_nodes_are_from_first_to_last_with_the_most() -> None:
    records = [
        record("phase.start", 0.0, phase="a"),
        nodes(1.0, 9, 1),
        nodes(2.0, 10),
        nodes(3.0, 6, 4),
        nodes(4.0, 10),
        nodes(5.0, 10),
    ]
    item = one(incident(records), Kind.NOT_READY)

    assert (1.0, 4.0, 4, 10) == (item.t_s, item.until_s, item.count, item.total)
    assert one(incident(records[:4]), Kind.NOT_READY).until_s is None


def test_a_lever_that_does_not_help_leaves_what_stayed_at_its_limit() -> None:
    found = incident(outage(helps=False))

    assert found.recovered is False
    assert not of(found, Kind.RECOVERED)
    assert not of(found, Kind.GOOD_AGAIN)
    (lever,) = found.levers
    assert lever.recovered is False
    # The phase's own actions, not the one that the phase before cut short at its end.
    assert [("block", True), ("deleteRollout", False)] == [
        (item.fields["action"], item.fields["ok"]) for item in lever.did
    ]
    assert (87.0, 146.995) == lever.looked_at
    first = lever.found[0]
    assert ("memory", "kube-apiserver", True, 2.0) == (
        first.resource,
        first.subject,
        first.at_limit,
        first.values["oom_kills"],
    )


def test_without_a_rollout_without_a_lever_and_without_an_slo() -> None:
    found = incident(outage(rollout=False, lever=None), slo={})

    assert (None, None, None, ()) == (found.rollout_s, found.flow, found.first_breach_s, found.levers)
    assert not of(found, Kind.FIRST_ANSWER)
    assert found.happened
    assert 90.3 == pytest.approx(found.recovered_s)


def test_a_rollout_alone_is_no_incident() -> None:
    assert not incident(big_run(nodes_count=100, minutes=0.5)).happened
    assert not incident([]).happened


def test_a_run_killed_in_the_outage_has_not_recovered() -> None:
    found = incident([item for item in outage() if item["t"] < 80])

    assert found.recovered is False
    assert {None} == {item.until_s for item in of(found, Kind.LOCKOUT) if item.t_s > 60}
    assert not found.levers
    assert of(found, Kind.KILLED)[-1].until_s is None


@pytest.mark.parametrize("count", range(0, 1200, 37))
def test_a_run_killed_anywhere_can_be_analysed(count: int) -> None:
    found = incident(outage(helps=False)[:count])

    assert [item.t_s for item in found.milestones] == sorted(item.t_s for item in found.milestones)


def test_a_first_answer_belongs_to_the_lever_pulled_last_before_it() -> None:
    more = [
        record("action.start", 88.0, action="lever", detail="apf"),
        record("action.start", 120.0, action="lever", detail="scale-down"),
    ]
    found = incident(sorted([*outage(), *more], key=lambda item: float(item["t"])))

    assert ["block-agents", "apf", "scale-down"] == [item.subject for item in of(found, Kind.LEVER)]
    assert {("apf", 88.0)} == {(item.said, item.since_s) for item in of(found, Kind.FIRST_ANSWER)}
    assert [("block-agents", "apf", "scale-down")] == [item.levers for item in found.levers]


@pytest.mark.parametrize(
    ("name", "fields", "kind"),
    [
        ("kube-controller-manager", {"code": 1}, Kind.LEASE_LOST),
        ("kube-scheduler", {"code": 1, "log_tail": "E Leaderelection lost"}, Kind.LEASE_LOST),
        ("kube-scheduler", {"code": 255, "log_tail": LEASE_TAIL}, Kind.LEASE_LOST),
        ("kube-scheduler", {"code": 1, "log_tail": "unable to read its configuration"}, Kind.ENDED),
        ("kube-scheduler", {"code": 255}, Kind.ENDED),
        ("kube-scheduler", {"reason": "signal", "signal": 9}, Kind.ENDED),
        ("kube-apiserver", {"code": 1, "log_tail": LEASE_TAIL}, Kind.ENDED),
        ("kube-scheduler", {"reason": "oom", "signal": 9}, Kind.KILLED),
    ],
)
def test_a_lost_lease_is_told_by_the_log_or_without_one_by_exit_code_1(
    name: str, fields: dict[str, Any], kind: Kind
) -> None:
    gone = record("component.exit", 5.0, **{"component": name, "reason": "exit", **fields})

    assert kind is one(incident([gone]), kind).kind


def test_an_end_of_a_component_without_a_breach_needs_no_recovery() -> None:
    found = incident(
        [
            record("phase.start", 0.0, phase="a"),
            *(probe(float(t)) for t in range(20)),
            record("component.exit", 5.0, component="etcd", reason="exit", code=1),
        ]
    )

    assert (True, None) == (found.happened, found.recovered)
    assert not of(found, Kind.RECOVERED)


def test_the_rollout_is_the_flow_that_an_action_names() -> None:
    first = record("flow.start", 10.0, flow="background", target=5)
    found = incident(sorted([first, *outage()], key=lambda item: float(item["t"])))

    assert ("telemetry", 27.02) == (found.flow, found.rollout_s)
    assert "background" == incident([first, record("flow.start", 11.0, flow="telemetry", target=5)]).flow


def test_operators_that_are_slow_at_the_end_of_a_lever_have_not_recovered() -> None:
    def relief(latency_s: float) -> bool | None:
        records = [
            record("phase.start", 0.0, phase="relief"),
            record("action.start", 0.1, action="lever", detail="apf"),
            *(probe(float(t), 0.1) for t in range(20)),
            *(probe(float(t), latency_s) for t in range(20, 25)),
            record("phase.end", 30.0, phase="relief", reason="time"),
        ]
        (lever,) = incident(records).levers
        return lever.recovered

    assert relief(0.9)
    assert relief(1.5) is False


def test_where_no_operator_asks_nothing_is_said_of_recovery() -> None:
    records = [
        record("phase.start", 0.0, phase="relief"),
        record("action.start", 0.1, action="lever", detail="apf"),
        nodes(1.0, 5),
        record("phase.end", 30.0, phase="relief", reason="time"),
    ]
    (lever,) = incident(records).levers

    assert (None, ()) == (lever.recovered, lever.found)


def test_the_small_run_is_an_incident_by_its_kill() -> None:
    found = incident(small_run(), slo={})

    assert one(found, Kind.KILLED).subject == "kube-apiserver"
    assert found.flow == "agents"
