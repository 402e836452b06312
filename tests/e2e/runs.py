"""Helpers of the end-to-end tests: run the real command, and look at what is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCALETEST = (sys.executable, "-m", "scaletest")

SMALL = tuple(
    word
    for override in ("nodes=10", "phases.baseline.for=2s", "phases.steady.for=3s", "phases.after.for=1s")
    for word in ("--set", override)
)
"""Overrides that make the smoke profile as small as it still makes sense."""


@dataclass
class Place:
    """A directory of its own for state and results, so that what is left over can be counted."""

    root: Path

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def run_dir(self) -> Path:
        return self.results / "run"

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SCALETEST_STATE_DIR": str(self.root / "state"), "NO_COLOR": "1", "COLUMNS": "100"}

    def command(self, *argv: str, timeout_s: float = 150) -> subprocess.CompletedProcess[str]:
        """Run scaletest to its end."""
        return subprocess.run(
            [*SCALETEST, *argv], env=self.env, cwd=self.root, capture_output=True, text=True, timeout=timeout_s,
            check=False,
        )  # fmt: skip

    @contextmanager
    def started(self, *argv: str) -> Iterator[subprocess.Popen[str]]:
        """Run scaletest in a session of its own, as a terminal would."""
        log = (self.root / "command.log").open("w+")
        process = subprocess.Popen(
            [*SCALETEST, *argv], env=self.env, cwd=self.root, stdout=log, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            log.close()

    def said(self) -> str:
        """What the started command printed."""
        return (self.root / "command.log").read_text()

    def journal(self) -> list[dict[str, Any]]:
        """Records of the run so far."""
        path = self.run_dir / "journal.jsonl"
        if not path.exists():
            return []
        records = []
        for line in path.read_text(errors="replace").splitlines():
            try:
                records.append(json.loads(line))
            except ValueError:
                continue
        return records

    def processes(self) -> dict[int, str]:
        """Living processes that belong to this place: their environment or command line names it."""
        found: dict[int, str] = {}
        needle = str(self.root).encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if needle in words:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:400]
        return found
