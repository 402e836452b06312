"""The live view on a real terminal: a child process on a pseudo-terminal, and an emulator that shows what a person sees."""

from __future__ import annotations

import codecs
import fcntl
import io
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from scaletest.report.live import can_show
from tests.report.emulator import Terminal

# The run takes four seconds: a child that is not scheduled for one of them never draws what a test waits for.
pytestmark = pytest.mark.flaky(reruns=2)

ROOT = Path(__file__).parents[2]


class Shown:
    """A child on a pseudo-terminal of its own."""

    def __init__(self, how: str, *, columns: int = 80, rows: int = 24, env: Mapping[str, str] | None = None) -> None:
        self.terminal = Terminal(columns, rows)
        self.raw = ""
        self._master, slave = pty.openpty()
        self._resize(columns, rows)
        kept = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.report.live_run", how],
            stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, start_new_session=True,
            env={**kept, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **(env or {})},
        )  # fmt: skip
        os.close(slave)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.terminal.feed("$ scaletest run smoke\r\n")

    def _resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """Change the size while all that was written is on the screen."""
        self.terminal.resize(columns, rows)
        self._resize(columns, rows)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    @property
    def stopped(self) -> bool:
        """Whether the child is suspended."""
        return Path(f"/proc/{self.child.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"

    def read(self, wait_s: float = 0.1) -> bool:
        """Take in what comes; False when the child has closed its terminal."""
        if not select.select([self._master], [], [], wait_s)[0]:
            return True
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            return False
        text = self._decoder.decode(data)
        self.raw += text
        self.terminal.feed(text)
        return bool(data)

    def until(self, there: Callable[[list[str]], bool], timeout_s: float = 60.0) -> None:
        """Read until the screen is as wanted."""
        end_s = time.monotonic() + timeout_s
        while not there(self.terminal.screen):
            assert self.read(), self.terminal.screen
            assert time.monotonic() < end_s, self.terminal.screen

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self.read():
            pass
        os.close(self._master)
        return self.child.wait(30)


def has(text: str) -> Callable[[list[str]], bool]:
    return lambda screen: any(text in line for line in screen)


def test_a_run_is_shown_while_it_lasts_and_leaves_its_report() -> None:
    shown = Shown("finish")
    shown.until(has("phase 1 of 3, baseline"))
    # What is read may end within a frame: the lines below are then still those of the frame before.
    shown.until(lambda screen: has("LOCKED OUT")(screen) and has("1 (1 OOM)")(screen))
    assert len(shown.terminal.screen) <= 23
    assert not shown.terminal.cursor

    assert shown.end() == 0
    assert shown.terminal.cursor
    assert [*shown.terminal.scrolled, *shown.terminal.screen] == ["$ scaletest run smoke", "the final report"]


def test_an_interrupted_run_gives_the_cursor_back() -> None:
    shown = Shown("interrupt")
    shown.until(has("phase 2 of 3"))
    shown.type("\x03")
    shown.until(lambda _: "^C" in shown.raw)
    shown.child.send_signal(signal.SIGINT)

    assert shown.end() == 0
    assert shown.terminal.cursor
    assert [*shown.terminal.scrolled, *shown.terminal.screen] == ["$ scaletest run smoke", "the final report"]


def test_a_suspended_run_leaves_the_terminal_to_the_shell() -> None:
    shown = Shown("interrupt")
    shown.until(has("phase 1 of 3"))
    shown.child.send_signal(signal.SIGTSTP)
    shown.until(lambda _: shown.stopped)
    for _ in range(5):
        shown.read()
    assert shown.terminal.cursor
    assert shown.terminal.screen == ["$ scaletest run smoke"]

    shown.terminal.show("$ fg\n")
    shown.child.send_signal(signal.SIGCONT)
    shown.until(has("phase 2 of 3"))
    shown.child.send_signal(signal.SIGINT)
    assert shown.end() == 0
    assert [*shown.terminal.scrolled, *shown.terminal.screen] == ["$ scaletest run smoke", "$ fg", "the final report"]


def test_an_error_in_the_middle_leaves_the_terminal_as_it_was_and_its_message() -> None:
    shown = Shown("fail")

    assert shown.end() == 1
    assert shown.terminal.cursor
    assert [*shown.terminal.scrolled, *shown.terminal.screen] == ["$ scaletest run smoke", "scaletest: it broke"]


def test_when_the_view_fails_the_run_goes_on_in_plain_lines() -> None:
    shown = Shown("break")

    assert shown.end() == 0
    assert shown.terminal.cursor
    lines = [*shown.terminal.scrolled, *shown.terminal.screen]
    assert lines[1].startswith("live view ended by AssertionError")
    assert "   41.5 s  run finished" in lines
    assert lines[-1] == "the final report"


def test_what_others_print_stands_above_the_view_and_stays() -> None:
    shown = Shown("print", rows=40)
    shown.until(has("a warning from elsewhere"))
    shown.until(has("phase 3 of 3"))
    assert shown.terminal.screen.index("a warning from elsewhere") == 1

    assert shown.end() == 0
    assert [*shown.terminal.scrolled, *shown.terminal.screen] == [
        "$ scaletest run smoke", "a warning from elsewhere", "and from stdout, without a newline", "the final report",
    ]  # fmt: skip


def test_the_view_follows_the_size_of_the_terminal() -> None:
    shown = Shown("interrupt", columns=140, rows=45)
    shown.until(has("Over time  each from 0 to its most"))
    shown.until(has("phase 3 of 3"))
    assert max(map(len, shown.terminal.screen)) > 80

    shown.resize(60, 15)
    shown.until(lambda screen: len(screen) == 14 and screen[0].startswith("smoke"))
    assert max(map(len, shown.terminal.screen)) <= 60
    shown.child.send_signal(signal.SIGINT)
    assert shown.end() == 0
    assert shown.terminal.screen == ["the final report"]


def test_no_color_leaves_the_words() -> None:
    shown = Shown("interrupt", env={"NO_COLOR": "1"})
    shown.until(has("LOCKED OUT"))
    shown.child.send_signal(signal.SIGINT)
    shown.end()

    assert "\x1b[31m" not in shown.raw
    assert "\x1b[1m" not in shown.raw
    assert "m" not in shown.raw.split("\x1b[", 1)[1][:4]


class Tty(io.StringIO):
    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


@pytest.mark.parametrize(
    ("tty", "env", "expected"),
    [
        (True, {"TERM": "xterm-256color"}, True),
        (True, {"TERM": "xterm-256color", "NO_COLOR": "1"}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": ""}, False),
        (True, {}, False),
        (False, {"TERM": "xterm-256color"}, False),
    ],
)
def test_the_view_needs_a_terminal_that_can_move_its_cursor(tty: bool, env: dict[str, str], expected: bool) -> None:
    assert expected == can_show(Tty(tty=tty), env)
