"""Sparklines, rulers, bars."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scaletest.report.glyphs import bar, phase_ruler, sparkline, to_ascii


def test_a_sparkline_goes_from_nothing_to_the_most() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8], width=20) == "▁▂▃▄▅▆▇██"


def test_a_gap_is_blank_and_no_value_at_all_is_blank_too() -> None:
    assert sparkline([1, None, 1], width=9) == "█ █"
    assert sparkline([None, None], width=9) == "  "
    assert sparkline([], width=9) == ""


def test_a_flat_nothing_is_the_lowest_line() -> None:
    assert sparkline([0, 0], width=9) == "▁▁"


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=100), st.integers(1, 80))
def test_a_spike_is_never_squeezed_away(values: list[float | None], width: int) -> None:
    line = sparkline(values, width=width)

    assert len(line) == min(width, len(values))
    known = [value for value in values if value is not None]
    assert ("█" in line) == (bool(known) and max(known) > 0)


def test_a_ruler_puts_names_where_phases_begin_and_cuts_them_where_the_next_does() -> None:
    phases = [("baseline", 0.0), ("rollout", 10.0), ("relief", 12.0)]

    assert phase_ruler(phases, start_s=0.0, end_s=40.0, width=40) == "│baseline │r│relief"


@given(st.lists(st.floats(0, 100), max_size=10), st.integers(1, 60))
def test_a_ruler_is_never_too_wide(starts: list[float], width: int) -> None:
    phases = [(f"phase-{index}", at_s) for index, at_s in enumerate(sorted(starts))]

    assert len(phase_ruler(phases, start_s=0.0, end_s=100.0, width=width)) <= width


def test_a_bar_stays_within_its_width() -> None:
    assert bar(0.5, width=4) == "██░░"
    assert bar(7.0, width=4) == "████"
    assert bar(-1.0, width=4) == "░░░░"


def test_ascii_replaces_every_character_by_one() -> None:
    assert to_ascii("✓ 850 µs ▁█ naïve") == "+ 850 us _# na?ve"
