"""``--matrix``: how values are split, which variants they make, and that all variants get the same limits."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.controlplane.host import Host
from scaletest.core.errors import ExitCode, ProfileError, UsageError
from scaletest.runner.matrix import Matrix, make_matrix, parse_axes, run_names, split_values

GIB = 1 << 30
HOST = Host(16 * GIB, 4.0)


def matrix_of(*flags: str, overrides: tuple[str, ...] = (), repeat: int = 1) -> Matrix:
    return make_matrix("smoke", overrides, parse_axes(flags, overrides), repeat=repeat, host=HOST)


def caps(matrix: Matrix, component: str = "kube-apiserver") -> list[int | None]:
    return [
        variant.loaded.profile.control_plane.limits[component].memory_bytes  # type: ignore[index]
        for variant in matrix.variants
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("none,block-agents", ["none", "block-agents"]),
        ("1.31", ["1.31"]),
        (" 5s , 10s ", ["5s", "10s"]),
        ('"a,b",c', ['"a,b"', "c"]),
        ("'it''s, so',c", ["'it''s, so'", "c"]),
        ('"say \\", so",c', ['"say \\", so"', "c"]),
        ("[a, b],[]", ["[a, b]", "[]"]),
        ("{a: [1, 2], b: '}'},{}", ["{a: [1, 2], b: '}'}", "{}"]),
        ("probe.operator[admin].p99 < 1s,probe.operator.p99 < 2s", ["probe.operator[admin].p99 < 1s", "probe.operator.p99 < 2s"]),
        ("it's,fine", ["it's", "fine"]),
    ],
)  # fmt: skip
def test_commas_separate_values_outside_quotes_and_brackets(text: str, values: list[str]) -> None:
    assert values == split_values(text)


plain = st.text(st.characters(codec="utf-8", exclude_characters=",\"'[]{}", exclude_categories=["C", "Z"]), min_size=1)
quoted = st.text(st.characters(codec="utf-8", exclude_characters="\"\\'")).map(lambda text: f'"{text}"')
bracketed = st.recursive(plain | quoted, lambda inner: st.lists(inner).map(lambda items: f"[{', '.join(items)}]"))


@given(st.lists(plain | quoted | bracketed.filter(lambda text: text[0] == "["), min_size=1))
def test_values_that_are_joined_by_commas_are_split_again(values: list[str]) -> None:
    assert values == split_values(",".join(values))


@pytest.mark.parametrize(
    ("flags", "overrides", "message"),
    [
        (["nodes"], (), "not KEY=VALUE"),
        (["=5"], (), "not KEY=VALUE"),
        (["nodes="], (), "no values"),
        (["nodes=5,,6"], (), "a value is empty"),
        (["nodes=5,"], (), "a value is empty"),
        (["nodes=5,6,5"], (), "5 is there twice"),
        (["phases.steady.do=[{a"], (), "} is missing"),
        (['kubernetes="1.31'], (), '" is missing'),
        (["nodes=5", "nodes=6"], (), "--matrix nodes is given twice"),
        (["nodes=5", "parameters.nodes=6"], (), "--matrix parameters.nodes is given twice"),
        (["nodes=5"], ("nodes=6",), "given by --set and by --matrix"),
    ],
)
def test_what_is_no_list_of_values_is_refused(flags: list[str], overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_axes(flags, overrides)
    assert message in caught.value.message
    assert caught.value.hint
    assert ExitCode.USAGE is caught.value.exit_code


def test_an_unknown_key_is_said_once_as_it_was_written_with_a_suggestion() -> None:
    with pytest.raises(ProfileError) as caught:
        matrix_of("nods=5,10", "kubernetes=1.31,1.37")
    (problem,) = caught.value.problems
    assert "--matrix nods=5,10" == problem.file
    assert "did you mean 'nodes'" in problem.what


def test_a_value_that_does_not_fit_is_named() -> None:
    with pytest.raises(ProfileError) as caught:
        matrix_of("nodes=5,many")
    assert "--matrix nodes=many: nodes: nodes is a whole number" in caught.value.message


def test_values_that_mean_the_same_are_refused() -> None:
    with pytest.raises(UsageError, match=r"steady.for=5s and phases.steady.for=5000ms make the same profile"):
        matrix_of("phases.steady.for=5s,5000ms")


@pytest.mark.parametrize(("count", "repeat"), [(101, 1), (34, 3)])
def test_more_than_a_hundred_runs_are_refused(count: int, repeat: int) -> None:
    with pytest.raises(UsageError, match="at most 100"):
        matrix_of(f"nodes={','.join(str(number + 1) for number in range(count))}", repeat=repeat)


def test_the_variants_are_the_cross_product_the_first_axis_slowest() -> None:
    matrix = matrix_of("nodes=5,10", "kubernetes=1.31,1.37")
    assert [
        "nodes=5,kubernetes=1.31", "nodes=5,kubernetes=1.37", "nodes=10,kubernetes=1.31", "nodes=10,kubernetes=1.37",
    ] == [variant.name for variant in matrix.variants]  # fmt: skip
    last = matrix.variants[-1].loaded.profile
    assert (10, "1.37") == (last.fleet.node_count, last.control_plane.kubernetes)


def test_one_value_makes_one_variant() -> None:
    assert ["nodes=5"] == [variant.name for variant in matrix_of("nodes=5").variants]


def test_names_are_good_for_directories_and_different() -> None:
    matrix = matrix_of('summary="x","x y","x/y",..')
    names = [variant.name for variant in matrix.variants]
    assert ["summary=x", "summary=x_y", "summary=x_y~2", "summary="] == names
    assert not any("/" in name or " " in name for name in names)


def test_keys_are_shortened_as_far_as_they_stay_different() -> None:
    matrix = matrix_of(
        "controlPlane.limits.etcd.memory=1GiB", "controlPlane.limits.kube-scheduler.memory=1GiB", "phases.steady.for=9s"
    )
    assert "etcd.memory=1GiB,kube-scheduler.memory=1GiB,for=9s" == matrix.variants[0].name


NAMED = """\
name: named
summary: For tests.
parameters: {nodes: 5, period: 1s}
variants:
  plain: {summary: As it is.}
  slow: {summary: Asks less often., set: {period: 2s}}
  wrong: {summary: A mistake., set: {period: often}}
fleet: {pools: [{name: gpu, nodes: "{nodes}"}]}
flows:
  f: {agents: {perNode: 1, rollout: 1/s}, steps: [{list: pods, every: "{period}"}]}
phases: [{name: a, start: [f], for: 1s}]
objectives: [host.cpu_idle > 1%]
"""


def named(directory: Path, *flags: str, variants: tuple[str, ...] = ("plain", "slow")) -> Matrix:
    path = directory / "named.yaml"
    path.write_text(NAMED)
    return make_matrix(str(path), (), parse_axes(flags), named=variants, repeat=1, host=HOST)


def test_variants_of_the_profile_are_the_first_axis(tmp_path: Path) -> None:
    matrix = named(tmp_path, "nodes=5,10")

    assert ["variant", "nodes"] == [axis.key for axis in matrix.axes]
    assert [
        "variant=plain,nodes=5", "variant=plain,nodes=10", "variant=slow,nodes=5", "variant=slow,nodes=10",
    ] == [variant.name for variant in matrix.variants]  # fmt: skip
    assert [1.0, 1.0, 2.0, 2.0] == [variant.loaded.profile.flows["f"].steps[0].every_s for variant in matrix.variants]
    assert {"parameters.period": "2s", "flows.f.steps.0.every": "2s"} == matrix.entries[2].changes


def test_a_mistake_in_a_variant_is_blamed_on_it_and_not_on_an_axis(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"--variant wrong: period=often: flows.f.steps.0.every"):
        named(tmp_path, "nodes=5,10", variants=("plain", "wrong"))


def test_a_variant_that_an_axis_makes_the_same_as_another_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="variant=plain period=3s and variant=slow period=3s make the same profile"):
        named(tmp_path, "period=3s")


def test_an_axis_called_variant_is_no_choice_of_variants_unless_the_profile_has_some() -> None:
    with pytest.raises(ProfileError, match="--matrix variant=a,b: variant: there is no 'variant'"):
        matrix_of("variant=a,b")


def test_all_variants_run_once_before_any_runs_again() -> None:
    matrix = matrix_of("nodes=5,10", repeat=2)
    assert [
        ("nodes=5", 1, "nodes=5-r1"), ("nodes=10", 1, "nodes=10-r1"),
        ("nodes=5", 2, "nodes=5-r2"), ("nodes=10", 2, "nodes=10-r2"),
    ] == run_names(matrix, 2)  # fmt: skip


def test_limits_of_the_host_are_written_into_every_variant() -> None:
    matrix = matrix_of("nodes=5,1000")
    assert 1 == len(set(caps(matrix)))
    assert caps(matrix) == [matrix.limits["kube-apiserver"]["memory_bytes"]] * 2
    for variant in matrix.variants:
        assert dict(variant.plan.limits) == dict(matrix.variants[0].plan.limits)


def test_a_limit_that_is_an_axis_stays_and_the_others_follow_the_most_demanding_variant() -> None:
    matrix = matrix_of("controlPlane.limits.etcd.memory=1GiB,4GiB")
    assert [GIB, 4 * GIB] == caps(matrix, "etcd")
    assert 1 == len(set(caps(matrix)))
    alone = matrix_of("nodes=5", overrides=("controlPlane.limits.etcd.memory=4GiB",))
    assert caps(alone)[0] == caps(matrix)[0]
    assert "memory_bytes" not in matrix.limits.get("etcd", {})


def test_limits_of_a_matrix_that_is_resumed_are_taken_over() -> None:
    axes = parse_axes(["nodes=5,10"])
    given = {"kube-apiserver": {"memory_bytes": 2 * GIB, "cpu_cores": 1.25}}
    matrix = make_matrix("smoke", (), axes, repeat=1, host=HOST, limits=given)
    for variant in matrix.variants:
        limits = variant.plan.limits["kube-apiserver"]
        assert (2 * GIB, 1.25) == (limits.memory_bytes, limits.cpu_cores)


@settings(max_examples=20)
@given(st.integers(8, 512), st.integers(1, 64))
def test_written_limits_are_exactly_those_of_the_rule(memory_gib: int, cores: int) -> None:
    matrix = make_matrix(
        "smoke", (), parse_axes(["nodes=5"]), repeat=1, host=Host(memory_gib * GIB + 12_345, float(cores))
    )
    for name, values in matrix.limits.items():
        limits = matrix.variants[0].plan.limits[name]  # type: ignore[index]
        assert values["memory_bytes"] == limits.memory_bytes
        assert math.isclose(values.get("cpu_cores", 0.0), limits.cpu_cores or 0.0)


def test_changes_of_a_variant_are_those_against_the_first() -> None:
    first, second = matrix_of("nodes=5,10").entries
    assert {} == first.changes
    assert (10, 10) == (second.changes["parameters.nodes"], second.changes["fleet.pools.0.nodes"])
    assert "name" not in second.changes
