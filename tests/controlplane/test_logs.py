"""Logs are quoted short enough to be read."""

from __future__ import annotations

import json
from pathlib import Path

from scaletest.controlplane.logs import quote_log, readable


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
