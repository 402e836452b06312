from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.core import units

POSITIVE = st.floats(1e-9, 1e12, allow_nan=False, allow_infinity=False)
PARSERS: list[Callable[[str], float]] = [
    units.parse_duration_s,
    units.parse_bytes,
    units.parse_rate_per_s,
    units.parse_share,
]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("20s", 20.0), ("1m30s", 90.0), ("2h", 7200.0), ("0.8s", 0.8), (".5s", 0.5), ("0", 0.0), ("0s", 0.0),
     ("100us", 1e-4), (" 5s ", 5.0), ("1h1m1s1ms", 3661.001)],
)  # fmt: skip
def test_durations_are_read(text: str, seconds: float) -> None:
    assert pytest.approx(seconds) == units.parse_duration_s(text)


@pytest.mark.parametrize(
    "value",
    ["5", "s", "", "5 s", "-5s", "5S", "5sec", "1e3s", "5s 5s", "5d", "nan", "infs", "5..s", 5, 0.5, True, False, None, [], {}, "\u0665s",
     "9" * 400 + "s", "999999999999999999h"],
)  # fmt: skip
def test_what_is_no_duration_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|is too large"):
        units.parse_duration_s(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("512B", 512), ("3KB", 3_000), ("3.1KB", 3_100), ("64MiB", 64 << 20), ("2GiB", 2 << 30), ("2Gi", 2 << 30), ("2 GiB", 2 << 30), ("1TiB", 1 << 40), ("1.5Ti", 3 << 39), ("2TB", 2 * 10**12),
     ("0", 0), ("1.5KiB", 1536)],
)  # fmt: skip
def test_sizes_are_read(text: str, size_bytes: int) -> None:
    assert size_bytes == units.parse_bytes(text)


@pytest.mark.parametrize(
    "value", ["5", "B", "", "-1B", "1PB", "1kb", "1e3B", 5, True, False, None, "9" * 400 + "B", "9" * 18 + "GiB"]
)
def test_what_is_no_size_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a size|is too large"):
        units.parse_bytes(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "per_s"), [("80/s", 80.0), ("4800/m", 80.0), ("36/h", 0.01), ("0.5 / s", 0.5)])
def test_rates_are_read(text: str, per_s: float) -> None:
    assert pytest.approx(per_s) == units.parse_rate_per_s(text)


@pytest.mark.parametrize("value", ["80", "/s", "80/d", "80s", "-1/s", "80/ms", 80, 0, True, None])
def test_what_is_no_rate_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match="is not a rate"):
        units.parse_rate_per_s(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "share"),
    [("1%", 0.01), ("99.5 %", 0.995), ("100%", 1.0), (0.25, 0.25), ("0.25", 0.25), (1, 1.0), (0, 0.0)],
)
def test_shares_are_read(text: str | float, share: float) -> None:
    assert pytest.approx(share) == units.parse_share(text)


@pytest.mark.parametrize("value", ["101%", "-1%", "2", 2, -0.1, math.nan, math.inf, True, False, None, "half", "%"])
def test_what_is_no_share_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match="is not a share"):
        units.parse_share(value)  # type: ignore[arg-type]


@given(POSITIVE)
def test_a_duration_that_was_written_reads_back_exactly(seconds: float) -> None:
    assert seconds == units.parse_duration_s(units.write_duration(seconds))


@given(st.integers(0, 10**15))
def test_a_size_that_was_written_reads_back_exactly(size_bytes: int) -> None:
    assert size_bytes == units.parse_bytes(units.write_bytes(size_bytes))


@given(POSITIVE)
def test_a_rate_that_was_written_reads_back_exactly(per_s: float) -> None:
    assert per_s == units.parse_rate_per_s(units.write_rate(per_s))


@given(st.floats(0, 1))
def test_a_share_that_was_written_reads_back_exactly(share: float) -> None:
    assert share == units.parse_share(units.write_share(share))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_was_written_has_no_exponent_and_reads_back_exactly(value: float) -> None:
    text = units.write_number(value)

    assert "e" not in text.lower()
    assert value == float(text)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (units.write_duration(90.0), "90s"),
        (units.write_duration(0.8), "800ms"),
        (units.write_duration(0.00025), "250us"),
        (units.write_duration(0.0), "0s"),
        (units.write_bytes(2 << 30), "2GiB"),
        (units.write_bytes(3_100), "3.1KB"),
        (units.write_bytes(2_000_000_000), "2GB"),
        (units.write_bytes(1 << 44), "16TiB"),
        (units.write_bytes(77), "77B"),
        (units.write_rate(80.0), "80/s"),
        (units.write_rate(1 / 60), "1/m"),
        (units.write_share(0.01), "1%"),
        (units.write_number(5.0), "5"),
    ],
)
def test_quantities_are_written_as_people_would(written: str, expected: str) -> None:
    assert expected == written


@given(st.text(max_size=30) | st.text(alphabet="0123456789.smhBKGi%/ -e", max_size=12))
def test_any_text_is_a_finite_quantity_or_a_value_error(text: str) -> None:
    for parse in PARSERS:
        with contextlib.suppress(ValueError):
            assert math.isfinite(parse(text))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (850e-6, "850 µs"), (0.0123, "12.3 ms"), (0.9996, "1.00 s"), (1.25, "1.25 s"), (99.96, "1m40s"), (125, "2m05s"),
     (7325, "2h02m05s"), (-1.25, "-1.25 s")],
)  # fmt: skip
def test_durations_are_formatted_with_three_digits(seconds: float, text: str) -> None:
    assert text == units.format_duration(seconds)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (65_745_715, "62.7 MiB"), (-2048, "-2.00 KiB")],
)
def test_sizes_are_formatted_in_binary_units(size_bytes: float, text: str) -> None:
    assert text == units.format_bytes(size_bytes)


@pytest.mark.parametrize(("count", "text"), [(20_000, "20,000"), (1234.5, "1,234"), (0.5, "0.50"), (3.0, "3")])
def test_counts_are_formatted_with_separators(count: float, text: str) -> None:
    assert text == units.format_count(count)


@pytest.mark.parametrize(
    ("share", "text"), [(0.994, "99.4 %"), (1, "100 %"), (0.99996, "100.00 %"), (0.9996, "99.96 %"), (0, "0 %")]
)
def test_shares_are_formatted_so_that_nearly_all_is_not_all(share: float, text: str) -> None:
    assert text == units.format_share(share)


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((3,), "3"), ((0, 1, 2), "0-2"), ((0, 1, 3, 5, 6), "0-1, 3, 5-6")]
)
def test_numbers_are_written_as_spans(numbers: tuple[int, ...], text: str) -> None:
    assert text == units.format_numbers(numbers)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("999999999", 999_999_999), ("1000000000", None), ("²", None), ("٣", None), ("-1", None), ("", None), ("1.0", None)],
)  # fmt: skip
def test_a_whole_number_is_plain_digits(text: str, number: int | None) -> None:
    assert number == units.whole_number(text)
