"""Logs are quoted short enough to be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaletest.controlplane.logs import MOST_BYTES, LastWords, quote_log, readable


def test_a_json_line_shows_level_message_and_error() -> None:
    etcd = {
        "level": "fatal",
        "ts": "…",
        "msg": "discovery failed",
        "error": "address already in use",
        "stacktrace": "…",
    }
    kwok = {"time": "…", "level": "ERROR", "msg": "Failed to list nodes", "err": "TLS handshake timeout"}
    assert "fatal: discovery failed: address already in use" == readable(json.dumps(etcd))
    assert "error: Failed to list nodes: TLS handshake timeout" == readable(json.dumps(kwok))


def test_other_lines_stand_as_they_are_but_not_longer_than_three_terminal_lines() -> None:
    assert "E1130 leaderelection lost" == readable("E1130 leaderelection lost")
    assert 240 == len(readable("x" * 5_000))
    assert "[1, 2]" == readable("[1, 2]")


def test_the_last_five_lines_are_quoted(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_text("".join(f"line {number}\n" for number in range(9)))
    assert [f"last lines of {log}:", *(f"  line {number}" for number in range(4, 9))] == quote_log(log).splitlines()
    assert quote_log(tmp_path / "none.log") == ""


def test_what_ended_a_process_is_quoted_though_stacks_follow_it(tmp_path: Path) -> None:
    log = tmp_path / "launcher.log"
    stacks = "".join(f"runtime.mcall()\n\truntime/asm_amd64.s:{number}\n" for number in range(40))
    log.write_text(f"fatal error: failed to reserve page summary memory\n{stacks}")

    assert "  fatal error: failed to reserve page summary memory" == quote_log(log).splitlines()[1]


def last_words(path: Path, text: str) -> list[str]:
    path.write_text(text)
    return LastWords(path).take()


LOST = 'E1201 00:00:00.000000     123 server.go:319] "Leaderelection lost"'


def test_the_last_words_are_the_last_five_lines(tmp_path: Path) -> None:
    text = "".join(f"I1201 line {number}\n" for number in range(9))
    assert [f"I1201 line {number}" for number in range(4, 9)] == last_words(tmp_path / "log", text)
    assert [] == LastWords(tmp_path / "none").take()


def test_the_line_that_tells_why_is_kept_however_much_follows_it(tmp_path: Path) -> None:
    after = "".join(f"I1201 00:00:00.0 1 cache.go:1] stopping {number}\n" for number in range(300))
    stacks = "".join(f"goroutine {number} [select]:\n\tmain.go:{number}\n" for number in range(900))

    assert LOST == last_words(tmp_path / "scheduler", f"{LOST}\n{after}")[0]
    assert "panic: nil map" == last_words(tmp_path / "panic", f"E1201 before\npanic: nil map\n{stacks}")[0]
    assert (
        "fatal: no space left"
        == last_words(tmp_path / "etcd", f'{{"level":"fatal","msg":"no space left"}}\n{after}')[0]
    )


def test_each_process_has_its_own_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"{LOST}\n")
    words = LastWords(log)

    assert [LOST] == words.take()
    assert [] == words.take()

    with log.open("a") as stream:
        stream.write("I1201 up again\n")
    assert ["I1201 up again"] == words.take()

    log.write_text("new\n")
    assert ["new"] == words.take()


@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Bearer 0123456789abcdef",
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
        "token=0123456789abcdef",
        '"password": "0123456789abcdef"',
        "-----BEGIN RSA PRIVATE KEY----- 0123456789abcdef",
    ],
)
def test_credentials_are_removed_also_where_the_line_is_cut(secret: str, tmp_path: Path) -> None:
    (line,) = last_words(tmp_path / "log", f"{secret}\n")
    assert "<removed>" in line

    for ahead in range(200, 240, 3):
        (line,) = last_words(tmp_path / "log", f"{'x' * ahead} {secret}\n")
        assert not any(part in line for part in ("0123", "eyJ"))


def test_last_words_are_short_and_have_no_control_characters(tmp_path: Path) -> None:
    text = "".join(f"\x1b[31mred\x1b[0m\x07\t{'é' * 5_000}\n" for _ in range(9))
    lines = last_words(tmp_path / "log", text)

    assert 0 < sum(len(line.encode()) + 1 for line in lines) <= MOST_BYTES
    assert all(line.startswith("red  é") and line.isprintable() for line in lines)
