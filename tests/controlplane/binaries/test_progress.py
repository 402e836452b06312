from __future__ import annotations

import io

import pytest

from scaletest.controlplane.binaries.progress import TerminalProgress, amount_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_now_and_then_and_one_at_the_end() -> None:
    stream, now_s = io.StringIO(), [0.0]
    progress = TerminalProgress(stream, interval_s=5.0, clock=lambda: now_s[0])

    with progress.task("etcd: downloading", "bytes") as task:
        for second in range(12):
            now_s[0] = float(second)
            task.update(second << 20, 12 << 20)

    expected = [
        "etcd: downloading: 5.00 MiB of 12.0 MiB (42 %)",
        "etcd: downloading: 10.0 MiB of 12.0 MiB (83 %)",
        "etcd: downloading: done, 11.0 MiB of 12.0 MiB (92 %), 11 s",
    ]
    assert expected == stream.getvalue().splitlines()


def test_a_task_that_fails_is_not_said_to_be_done() -> None:
    stream = io.StringIO()

    with pytest.raises(ZeroDivisionError), TerminalProgress(stream).task("x", "bytes"):
        _ = 1 / 0

    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    stream = Terminal()
    progress = TerminalProgress(stream)

    progress.note("kwok: building")
    with progress.task("kwok: compiling", "packages") as task:
        task.update(1, 4)

    assert "kwok: building\n" in stream.getvalue()


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (310, 1240, "packages", "310 of 1,240 packages (25 %)"),
        (3, None, "modules", "3 modules"),
        (0, 0, "packages", "0 packages"),
        (1 << 20, None, "bytes", "1.00 MiB"),
    ],
)
def test_an_amount_is_given_with_its_share(done: int, total: int | None, unit: str, text: str) -> None:
    assert text == amount_text(done, total, unit)  # type: ignore[arg-type]
