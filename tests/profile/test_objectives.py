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
NAMED = {"flow": "x", "probe": "x", "component": "x", "apf": "x"}


@pytest.mark.parametrize(("scope", "measure"), [(scope, measure) for scope in MEASURES for measure in MEASURES[scope]])
def test_every_measure_is_compared_with_its_own_unit(scope: str, measure: str) -> None:
    text, threshold = THRESHOLDS[MEASURES[scope][measure]]
    subject = ".".join(part for part in (scope, NAMED.get(scope), measure) if part)

    assert Objective(Subject(scope, NAMED.get(scope), None, None, measure), "<", threshold) == parse_objective(
        f"{subject} < {text}"
    )


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
        ("flow.a.errors < -1", "is not a number"),
        ("flow.a.errors < 1e5", "is not a number"),
        ("p99 < 1s", "names no measure"),
        ("fow.a.p99 < 1s", "unknown scope 'fow'"),
        ("flow.p99 < 1s", "write flow.NAME.MEASURE"),
        ("probe.a.b.p99 < 1s", "write probe.NAME.MEASURE"),
        ("host.a.cpu_idle < 1%", "write host.MEASURE"),
        ("flow.a[admin].p99 < 1s", "only a probe takes an identity"),
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
