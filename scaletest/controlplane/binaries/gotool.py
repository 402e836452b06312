"""Running the ``go`` command: its environment, its output line by line into a log, and its end.

The child dies with the thread that started it (``PR_SET_PDEATHSIG``), so with this process, and its whole process group is killed when the
wait is interrupted: no build goes on behind the user's back.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GoCommandFailed", "GoTool"]

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_TAIL_LINES = 8
_QUERY_TIMEOUT_S = 30.0
"""For questions to the module proxy; it answers in 0.4 s, and a silent network must not hold a run up."""


class GoCommandFailed(Exception):
    """A ``go`` command failed; carries its last lines."""

    def __init__(self, arguments: tuple[str, ...], code: int | None, tail: list[str]) -> None:
        self.arguments = arguments
        self.code = code
        self.tail = tail
        super().__init__(f"go {' '.join(arguments[:2])}: {' '.join(tail) or f'exit code {code}'}")


@dataclass(frozen=True, slots=True)
class GoTool:
    """The ``go`` program of this machine, with the environment that builds run in."""

    program: str
    version: str
    """``go1.26.8``."""
    fetches_toolchains: bool
    """Whether it gets a newer Go by itself when a module asks for one (``GOTOOLCHAIN`` is not ``local``)."""
    caches: tuple[Path, ...]
    """Where Go keeps what it compiled and fetched."""
    environ: Mapping[str, str]

    @classmethod
    def find(cls, environ: Mapping[str, str], goos: str, goarch: str) -> GoTool | None:
        """Find Go on ``PATH``; None when there is none. Raises GoCommandFailed when it does not run."""
        program = shutil.which("go", path=environ.get("PATH", ""))
        if program is None:
            return None
        # CGO_ENABLED=0, as the official builds of all three families have it: no C compiler is needed, and
        # the programs depend on no C library. GOFLAGS and GOWORK of the user belong to other work.
        settings = {
            **environ,
            "CGO_ENABLED": "0",
            "GO111MODULE": "on",
            "GOARCH": goarch,
            "GOFLAGS": "-mod=mod -buildvcs=false",
            "GOOS": goos,
            "GOWORK": "off",
        }
        bare = cls(program, "", fetches_toolchains=False, caches=(), environ=settings)
        facts = json.loads(bare.ask(Path("/"), "env", "-json", "GOVERSION", "GOTOOLCHAIN", "GOCACHE", "GOMODCACHE"))
        return cls(
            program,
            str(facts["GOVERSION"]),
            fetches_toolchains=not str(facts["GOTOOLCHAIN"]).startswith("local"),
            caches=(Path(facts["GOCACHE"]), Path(facts["GOMODCACHE"])),
            environ=settings,
        )

    def ask(self, directory: Path, *arguments: str) -> str:
        """Run a command that answers at once and return its output. Raises GoCommandFailed."""
        lines: list[str] = []
        with self._child(directory, arguments, stderr=subprocess.PIPE) as child:
            try:
                output, errors = child.communicate(timeout=_QUERY_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                lines = [f"no answer within {_QUERY_TIMEOUT_S:.0f} s"]
                raise GoCommandFailed(arguments, None, lines) from None
        if child.returncode != 0:
            lines = [line.strip() for line in errors.strip().splitlines()[-_TAIL_LINES:]]
            raise GoCommandFailed(arguments, child.returncode, lines)
        return output

    def run(self, directory: Path, log: Path, on_line: Callable[[str], None], *arguments: str) -> None:
        """Run a long command, its output line by line into ``log`` and to ``on_line``. Raises GoCommandFailed."""
        # Not in /tmp: it is often small, and what a killed build leaves there nobody would remove.
        settings = {"GOTMPDIR": str(directory)}
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        with log.open("a", encoding="utf-8") as log_file:
            print(f"$ go {' '.join(arguments)}", file=log_file, flush=True)
            with self._child(directory, arguments, stderr=subprocess.STDOUT, **settings) as child:
                assert child.stdout is not None
                for line in child.stdout:
                    log_file.write(line)
                    log_file.flush()
                    if line.strip():
                        tail.append(line.strip())
                    on_line(line.rstrip("\n"))
        if child.returncode != 0:
            raise GoCommandFailed(arguments, child.returncode, list(tail))

    @contextlib.contextmanager
    def _child(
        self, directory: Path, arguments: tuple[str, ...], *, stderr: int, **settings: str
    ) -> Iterator[subprocess.Popen[str]]:
        child = subprocess.Popen(
            [self.program, *arguments],
            cwd=directory,
            env={**self.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509
        )
        try:
            yield child
            child.wait()
        finally:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            for pipe in (child.stdout, child.stderr):
                if pipe is not None:
                    pipe.close()


def _die_with_parent() -> None:
    # One call into an already loaded library: safe between fork and exec.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
