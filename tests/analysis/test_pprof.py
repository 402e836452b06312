"""Profiles are read as ``go tool pprof`` reads them.

The files in ``data`` are an API server's (1.37.2, busy with LISTs in JSON and protobuf), each with what
``go tool pprof -top -symbolize=none -nodefraction=0 -nodecount=100000 -unit=ns`` (bytes: ``-unit=B``) said of it.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.pprof import Function, functions, parse_profile
from tests.analysis import profiles

DATA = Path(__file__).parent / "data"
_ROW = re.compile(r"\s*(\d+)(?:ns|B)?\s+\S+\s+\S+\s+(\d+)(?:ns|B)?\s+\S+  (.*?)(?: \((?:partial-)?inline\))?")


def recorded(what: str) -> bytes:
    return (DATA / f"apiserver-1.37.2-{what}.pb.gz").read_bytes()


def top(what: str) -> dict[str, Function]:
    lines = (DATA / f"apiserver-1.37.2-{what}.top.txt").read_text().splitlines()
    rows = lines[1 + next(index for index, line in enumerate(lines) if line.split()[:2] == ["flat", "flat%"]) :]
    found = {}
    for row in rows:
        match = _ROW.fullmatch(row)
        assert match is not None, row
        found[match[3]] = Function(match[3], int(match[1]), int(match[2]))
    return found


@pytest.mark.parametrize(
    ("what", "sample_type", "total"),
    [("cpu", "cpu", 2_950_000_000), ("heap", "inuse_space", 96_541_357), ("goroutine", "goroutine", 2_501)],
)
def test_every_function_has_the_figures_of_go_tool_pprof(what: str, sample_type: str, total: int) -> None:
    samples = parse_profile(recorded(what)).samples(sample_type)
    found = functions(samples)

    assert total == sum(value for _, value in samples)
    assert top(what) == {item.name: item for item in found}
    # In the same order, but for functions of equal figures.
    assert [item.flat for item in top(what).values()] == [item.flat for item in found]


def test_a_recorded_profile_says_over_what_it_was_taken() -> None:
    cpu, heap = parse_profile(recorded("cpu")), parse_profile(recorded("heap"))

    assert 4.0 == pytest.approx(cpu.duration_s, abs=0.01)
    assert (("samples", "count"), ("cpu", "nanoseconds")) == cpu.sample_types
    assert 0.0 == heap.duration_s
    assert [name for name, _ in heap.sample_types] == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]


NAMES = st.sampled_from(["main.main", "runtime.mallocgc", "a/b.(*T).f", "c.g[go.shape.int]", "ü.h"])
SAMPLES = st.lists(
    st.tuples(
        st.lists(NAMES | st.lists(NAMES, min_size=1, max_size=3), max_size=5),
        st.tuples(st.integers(0, 2**40), st.integers(-(2**63), 2**63 - 1)),
    ),
    max_size=8,
)


@given(SAMPLES, st.booleans(), st.booleans())
def test_what_was_written_is_read(
    samples: list[tuple[profiles.Frames, tuple[int, int]]], zipped: bool, packed: bool
) -> None:
    data = profiles.profile([("x", "count"), ("y", "bytes")], samples, duration_s=1.5, packed=packed)
    read = parse_profile(gzip.compress(data) if zipped else data)

    flat = [
        tuple(name for frame in frames for name in ([frame] if isinstance(frame, str) else frame))
        for frames, _ in samples
    ]
    assert 1.5 == read.duration_s
    assert flat == [stack.frames for stack in read.stacks]
    assert [tuple(values) for _, values in samples] == [stack.values for stack in read.stacks]


@given(st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=6), st.integers(1, 1000)), max_size=8))
def test_flat_values_sum_up_to_the_whole_and_no_cum_is_more_than_it(samples: list[tuple[list[str], int]]) -> None:
    found, total = functions(samples), sum(value for _, value in samples)

    assert total == sum(item.flat for item in found)
    assert all(item.flat <= item.cum <= total for item in found)
    assert [item.flat for item in found] == sorted((item.flat for item in found), reverse=True)


def test_recursion_counts_once() -> None:
    assert [Function("f", 5, 5), Function("g", 0, 5)] == functions([(["f", "g", "f", "g"], 5)])


@given(st.integers(0, 1_000))
def test_a_file_cut_short_is_refused(length: int) -> None:
    whole = recorded("goroutine")
    with pytest.raises(ValueError):
        parse_profile(whole[: min(length, len(whole) - 1)])


@given(st.binary(max_size=200))
def test_what_is_no_profile_is_refused_with_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        parse_profile(data)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b"Could not enable CPU profiling: cpu profiling already in use\n", "."),
        (profiles.field(2, 7), "a number where bytes are due"),
        (profiles.field(1, profiles.field(1, 0)) + profiles.field(10, b"x") + profiles.field(6, b""), "bytes where"),
        (bytes([0x80] * 11), "more than 64 bits"),
        (profiles.field(6, b"") + bytes([0x0B]), "wire type 3"),
        (profiles.field(6, b""), "no sample types"),
    ],
)
def test_damage_is_told(broken: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_profile(broken)


def test_a_sample_of_an_unknown_location_or_with_too_few_values_is_damage() -> None:
    head = profiles.field(1, profiles.field(1, 0)) + profiles.field(6, b"")
    for sample in (profiles.field(1, b"\x07") + profiles.field(2, b"\x01"), profiles.field(2, b"\x01\x01")):
        with pytest.raises(ValueError, match=r"damaged|values where"):
            parse_profile(head + profiles.field(2, sample))


def test_a_type_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="no samples of type cpu: it has goroutine"):
        parse_profile(recorded("goroutine")).samples("cpu")
