"""The terminal report against golden texts."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from scaletest.core.journal import Record
from scaletest.report.build import build
from scaletest.report.rundir import load_run
from scaletest.report.terminal import print_report, render
from tests.analysis.journals import hist, record, small_run, write_run
from tests.report.built import document
from tests.report.golden import check_golden


def killed() -> list[Record]:
    return [item for item in small_run(finished=False) if item["t"] < 29]


def interrupted_before_any_phase() -> list[Record]:
    return [item for item in small_run() if item["t"] < 5] + [
        record("run.end", 6.0, status="interrupted", reason="SIGINT")
    ]


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("make", [small_run, killed, interrupted_before_any_phase])
def test_golden(make: Callable[[], list[Record]], width: int) -> None:
    check_golden(f"{make.__name__}-{width}.txt", render(document(make()), width=width))


class Stream(io.StringIO):
    def __init__(self, encoding: str, *, tty: bool) -> None:
        super().__init__()
        self._encoding, self._tty = encoding, tty

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._tty


@pytest.mark.parametrize(
    ("env", "stream", "coloured", "ascii_"),
    [
        ({"TERM": "xterm-256color"}, ("utf-8", True), True, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, ("utf-8", True), False, False),
        ({"TERM": "dumb"}, ("utf-8", True), False, False),
        ({"TERM": "xterm-256color"}, ("utf-8", False), False, False),
        ({"TERM": "xterm-256color"}, ("ascii", True), True, True),
        ({"TERM": "xterm-256color"}, ("iso-8859-1", False), False, True),
    ],
)
def test_the_report_is_printed_as_the_stream_can_show_it(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], stream: tuple[str, bool], coloured: bool, ascii_: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    encoding, tty = stream
    out = Stream(encoding, tty=tty)

    print_report(document(small_run()), out)

    text = out.getvalue()
    assert coloured == ("\x1b[" in text)
    assert ascii_ == text.isascii()
    text.encode(encoding)


def test_brackets_and_colons_in_names_are_shown_as_they_are() -> None:
    odd = [record("note", 8.0, level="info", text="[red]not red[/red] :smile:")]

    assert "[red]not red[/red] :smile:" in render(document([*small_run(), *odd]), width=100)


def test_an_invalid_run_names_its_failed_objectives_too() -> None:
    late = [{**item, "lag_us": hist([900_000] * 100)} if item["kind"] == "driver" else item for item in small_run()]
    text = render(document(late), width=100)
    head = text[: text.index("Objectives")]

    assert head.startswith("\nINVALID")
    assert "event-loop lag" in head
    assert "flow.agents.error_rate < 1%: 4 %" in head


def test_failed_scrapes_are_told_by_outcome() -> None:
    gaps = [record("metrics.gap", 28.0 + index / 10, target="kube-apiserver", outcome="timeout") for index in range(3)]

    assert "scrapes failed: kube-apiserver 4 (3 timeout, 1 refused)" in render(
        document([*small_run(), *gaps]), width=80
    )


def test_a_long_story_loses_its_middle() -> None:
    notes = [record("note", 10 + index / 1000, level="info", text=f"note {index}") for index in range(200)]
    text = render(document([*small_run(), *notes]), width=100)

    assert "lines left out: --format json has all" in text
    assert "note 3\n" in text
    assert "note 100\n" not in text
    assert "run finished" in text


def test_a_report_of_nothing_is_a_report(tmp_path: Path) -> None:
    text = render(build(load_run(write_run(tmp_path / "run", []))), width=80)

    assert "INCOMPLETE" in text
    assert text.count("journal.jsonl is empty: nothing was measured") == 2
    assert "killed" not in text


def test_requests_are_told_by_server_once_there_are_several() -> None:
    def scraped(*servers: str) -> list[Record]:
        phase = [record("phase.start", 0.0, phase="a"), record("phase.end", 9.0, phase="a", reason="time")]
        looks = [
            record("metrics.apiserver", 1.0 + look, server=server, requests={"LIST 200": 1_000 * look * (number + 1)})
            for look in (0, 1)
            for number, server in enumerate(servers)
        ]
        return [*phase, *looks]

    one, two = document(scraped("https://one")), document(scraped("https://one", "https://two"))

    assert {"https://one": 1_000.0} == one.api_requests_by_server
    assert "each API server answered" not in render(one, width=140)
    assert "each API server answered: https://one 1,000, https://two 2,000" in render(two, width=140)
