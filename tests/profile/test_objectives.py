from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.profile.objectives import MEASURES, Dimension, Objective, Subject, parse_objective

THRESHOLDS = {
    Dimension.DURATION: ("1.5s", 1.5),
    Dimension.SHARE: ("5%", 0.05),
    Dimension.BYTES: ("2GiB", 2.0 * 2**30),
    Dimension.RATE: ("30/m", 0.5),
    Dimension.COUNT: ("20_000", 20_000.0),
}
NAMED = {"flow": "x", "probe": "x", "component": "x", "apf": "x", "sli": "mutating"}


@pytest.mark.parametrize(("scope", "measure"), [(scope, measure) for scope in MEASURES for measure in MEASURES[scope]])
def test_every_measure_is_compared_with_its_own_unit(scope: str, measure: str) -> None:
    text, threshold = THRESHOLDS[MEASURES[scope][measure]]
    name = None if measure == "slo_violations" else NAMED.get(scope)
    subject = ".".join(part for part in (scope, name, measure) if part)

    assert Objective(Subject(scope, name, None, None, measure), "<", threshold) == parse_objective(
        f"{subject} < {text}"
    )


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("sli.mutating.p99", Subject("sli", "mutating", None, None, "p99")),
        ("sli.mutating[5m].p99", Subject("sli", "mutating", None, None, "p99", "5m")),
        ("sli.read_cluster.pods.p99", Subject("sli", "read_cluster", "pods", None, "p99")),
        ("sli.mutating.deployments.apps/scale[5m].p90", Subject("sli", "mutating", "deployments.apps/scale", None, "p90", "5m")),
        ("sli.read_resource.server_p99", Subject("sli", "read_resource", None, None, "server_p99")),
    ],
)  # fmt: skip
def test_an_sli_may_be_of_one_resource_and_in_the_5_minute_form(text: str, subject: Subject) -> None:
    assert parse_objective(f"{text} <= 1s").subject == subject
    assert str(subject) == text


def test_violations_of_all_slos_are_counted_in_either_form() -> None:
    assert parse_objective("sli.slo_violations == 0").subject == Subject("sli", None, None, None, "slo_violations")
    assert parse_objective("sli[5m].slo_violations == 0").subject.window == "5m"


def test_a_step_and_an_identity_are_part_of_the_subject() -> None:
    assert (
        Subject("flow", "agents", "list-pods", None, "p99") == parse_objective("flow.agents.list-pods.p99 < 1s").subject
    )
    account = parse_objective("probe.operator[serviceAccount:kube-system/x].p99 < 1s").subject

    assert Subject("probe", "operator", None, "serviceAccount:kube-system/x", "p99") == account
    assert "probe.operator[serviceAccount:kube-system/x].p99" == str(account)


@pytest.mark.parametrize(
    ("op", "below", "at", "above"),
    [("<", True, False, False), ("<=", True, True, False), (">", False, False, True), (">=", False, True, True),
     ("==", False, True, False), ("!=", True, False, True)],
)  # fmt: skip
def test_an_operator_compares(op: str, below: bool, at: bool, above: bool) -> None:
    objective = parse_objective(f"component.etcd.restarts {op} 5")

    assert (below, at, above) == (objective.holds(4), objective.holds(5), objective.holds(6))
    assert not objective.holds(math.nan)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not an objective"),
        ("flow.a.p99", "is not an objective"),
        ("< 1s", "is not an objective"),
        ("flow.a.p99 <", "is not an objective"),
        ("flow.a.p99 =< 1s", "is not an objective"),
        ("flow.a.p99 < 1", "is compared with a duration (500ms, 1s)"),
        ("flow.a.p99 < 1%", "is compared with a duration (500ms, 1s)"),
        ("flow.a.error_rate < 1s", "is compared with a share (1%)"),
        ("flow.a.error_rate < 200%", "is compared with a share (1%)"),
        ("component.etcd.memory < 5", "is compared with a size (2GiB)"),
        ("flow.a.rate > 5", "is compared with a rate (80/s)"),
        ("flow.a.errors < nan", "is not a number"),
        ("flow.a.errors < inf", "is not a number"),
        ("flow.a.errors < -1", "-1 is too small: at least 0"),
        ("flow.a.errors < 1e5", "is not a number"),
        ("p99 < 1s", "names no measure"),
        ("fow.a.p99 < 1s", "unknown scope 'fow'"),
        ("flow.p99 < 1s", "write flow.NAME.MEASURE"),
        ("probe.a.b.p99 < 1s", "write probe.NAME.MEASURE"),
        ("host.a.cpu_idle < 1%", "write host.MEASURE"),
        ("flow.a[admin].p99 < 1s", "only a probe takes an identity"),
        ("flow.a/b.p99 < 1s", "write flow.NAME.MEASURE"),
        ("sli.p99 < 1s", "write sli.SLI.MEASURE; SLIs are mutating, read_resource,"),
        ("sli.mutate.p99 < 1s", "unknown SLI 'mutate': did you mean 'mutating'? There are mutating, read_resource"),
        ("sli.readnamespace.p99 < 1s", "did you mean 'read_namespace'?"),
        ("sli.mutating[10m].p99 < 1s", "an SLI takes [5m] in brackets"),
        ("sli.mutating.p98 < 1s", "sli has no measure 'p98'"),
        ("sli.mutating.slo_violations == 0", "write sli.slo_violations"),
        ("flow.a.p98 < 1s", "flow has no measure 'p98': use one of p50,"),
    ],
)
def test_what_is_no_objective_says_why(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_objective(text)

    assert said in str(caught.value)


@given(st.text(max_size=40) | st.text(alphabet="flowprbe.p9[]<>=! 1s%", max_size=30))
def test_any_text_is_an_objective_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_objective(text)
