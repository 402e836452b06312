"""The live view against golden texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from scaletest.core.journal import Record
from scaletest.report.live import to_lines
from scaletest.report.live_state import LiveState
from scaletest.report.live_view import draw
from tests.analysis import searches
from tests.analysis.journals import flow, probe, record, small_run, step
from tests.report.golden import GOLDEN, check_golden
from tests.report.live_run import profile

MOMENTS = {"before_phases": 6.3, "rollout": 20.5, "lock_out": 28.4, "after_oom_kill": 33.5, "ended": 41.6}


def seen(now_s: float, more: list[Record] | None = None) -> LiveState:
    live = LiveState(profile())
    records = sorted([*small_run(), *(more or [])], key=lambda item: item["t"])
    for item in records:
        if item["t"] <= now_s:
            live.apply(item)
    return live


def lines_of(live: LiveState, now_s: float, width: int = 80, height: int = 23) -> list[str]:
    return to_lines(draw(live, now_s, width=width, height=height), unicode=True, colors=None)


@pytest.mark.parametrize(("width", "height"), [(80, 23), (140, 39)])
@pytest.mark.parametrize("moment", MOMENTS)
def test_golden(moment: str, width: int, height: int) -> None:
    now_s = MOMENTS[moment]
    actual = "".join(f"{line}\n" for line in lines_of(seen(now_s), now_s, width, height))

    check_golden(f"live_{moment}-{width}.txt", actual)


def test_the_guide_shows_the_view_as_it_is() -> None:
    guide = Path(__file__).parents[2] / "docs/guide/reports.md"

    assert (GOLDEN / "live_lock_out-80.txt").read_text(encoding="utf-8") in guide.read_text(encoding="utf-8")


@given(now_s=st.floats(0, 45), width=st.integers(1, 250), height=st.integers(0, 60), unicode=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_view_fits_any_terminal(now_s: float, width: int, height: int, unicode: bool) -> None:
    drawn = to_lines(draw(seen(now_s), now_s, width=width, height=height), unicode=unicode, colors=None)

    assert len(drawn) <= height
    assert all(len(line) <= width for line in drawn)
    assert unicode or "".join(drawn).isascii()


def test_a_small_terminal_keeps_what_matters_most() -> None:
    text = "\n".join(lines_of(seen(28.4), 28.4, 80, 12))

    assert "phase 2 of 3, rollout" in text
    assert "LOCKED OUT 4 s" in text
    assert "kube-apiserver" in text
    assert "kube-controller-manager" not in text
    assert "Events" not in text


def test_a_probe_that_waits_for_its_answer_is_silent_before_it_is_locked_out() -> None:
    live = seen(6.0)
    live.apply(probe(7.0, 0.1))

    assert any("✓" in line for line in lines_of(live, 9.0))
    assert any("silent 4 s" in line for line in lines_of(live, 11.5))
    live.apply(probe(8.0, 20.0, outcome="timeout"))
    assert any("LOCKED OUT 21 s" in line and "timeout" in line for line in lines_of(live, 28.2))


def test_a_flow_says_when_it_is_blocked_or_stopped() -> None:
    live = seen(20.0)
    live.apply(flow(20.5, target=50, started=50, blocked=True, steps={"list": step([1000])}))
    assert any("agents" in line and "BLOCKED" in line for line in lines_of(live, 20.6))

    live.apply(record("flow.stop", 21.0, flow="agents"))
    assert any("agents" in line and "stopped" in line for line in lines_of(live, 21.1))


def test_brackets_and_colons_in_events_are_shown_as_they_are() -> None:
    live = seen(6.0)
    live.apply(record("note", 6.0, level="info", text="[red]not red[/red] :smile:"))

    assert any("[red]not red[/red] :smile:" in line for line in lines_of(live, 6.1))


def test_colours_change_nothing_but_colours() -> None:
    plain = lines_of(seen(28.4), 28.4, 140, 39)
    coloured = to_lines(draw(seen(28.4), 28.4, width=140, height=39), unicode=True, colors="256")

    assert "\x1b[" in "".join(coloured)
    assert plain == [_uncoloured(line) for line in coloured]


def _uncoloured(line: str) -> str:
    return Text.from_ansi(line).plain.rstrip()


def test_a_search_shows_the_load_that_is_tried_and_what_was_found() -> None:
    tried = searches.steps((50, "held"), (100, "held"), (200, "failed"), (140, "held"))
    records = [record("phase.start", 99.0, phase="search"), searches.start(), *tried[:-1]]
    live = LiveState(profile())
    for item in records:
        live.apply(item)

    text = "\n".join(lines_of(live, 275.0, 120))

    assert "phase search  2m56s, step 4 for 15 s: agents = 140 (ramp); 100 holds, 200 fails" in text


def test_no_text_of_a_record_steers_the_terminal() -> None:
    line = Text.assemble(("a\x1b[2J", "red"), "\u202eb")
    (plain,) = to_lines([line], unicode=True, colors=None)
    (coloured,) = to_lines([line], unicode=True, colors="256")

    assert "a\ufffd[2J\ufffdb" == plain
    assert "\x1b[31ma\ufffd[2J\x1b[0m\ufffdb" == coloured
