"""The shell script that stands in for a component's binary.

It joins the component's control groups before the binary is executed, so that limits hold from its first instruction. Then it
records, in ``CLUSTER_DIR/run``, what a restart needs: ``NAME.args`` (NUL-separated), ``NAME.cwd``, ``NAME.env``
(NUL-separated) and last, as the sign that the others are complete, ``NAME.pid``: pid and start time, which
``exec`` does not change. A process that cannot join its groups does not run at all (exit code 125).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scaletest.controlplane.supervisor.cgroups import shell_quote
from scaletest.core.processes import ProcessId

__all__ = ["Invocation", "read_invocation", "read_pid", "shim_script", "write_invocation", "write_shim"]

_OOM_SCORE_ADJ: Final = 800
"""Where the whole host runs out of memory, the kernel should take a component and not a bystander."""

_SCRIPT: Final = """\
#!/bin/sh
# Stands in for {binary}; written by scaletest.
set -u
{join}
# A launcher may ask for the version first: that process is no component.
case "$*" in --version|version|-v|--help|-h) exec {binary} "$@" ;; esac
echo {oom_score_adj} 2>/dev/null > /proc/self/oom_score_adj
if [ $# -eq 0 ]; then : > {run}.args; else printf '%s\\0' "$@" > {run}.args; fi
pwd -P > {run}.cwd
cat /proc/$$/environ > {run}.env
# After the command's name in parentheses, the start time is the 20th field.
identify() {{ line=${{1##*) }}; set -- $line; echo "$$ ${{20}}" > {run}.pid; }}
read -r stat < /proc/$$/stat
identify "$stat"
{env}exec {nice}{binary} "$@"
"""


def shim_script(
    *, binary: str, run_prefix: Path, procs_files: Sequence[Path], max_procs: int | None = None, nicer_by: int = 0
) -> str:
    """Return the script.

    ``max_procs`` sets GOMAXPROCS, where the CPU cannot be limited otherwise. ``nicer_by`` is added to the niceness: here and not from
    outside, for ``setpriority`` changes one thread, and those that it has started before keep theirs.
    """
    join = "\n".join(
        f"echo $$ > {shell_quote(str(path))} || {{ echo {shell_quote(f'scaletest: cannot join {path}')} >&2; exit 125; }}"
        for path in procs_files
    )
    return _SCRIPT.format(
        binary=shell_quote(binary),
        join=join or ":",
        oom_score_adj=_OOM_SCORE_ADJ,
        run=shell_quote(str(run_prefix)),
        nice=f"nice -n {nicer_by} " if nicer_by else "",
        env="" if max_procs is None else f'export GOMAXPROCS="${{GOMAXPROCS:-{max_procs}}}"\n',
    )


def write_shim(path: Path, script: str) -> None:
    """Write an executable script."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(script)


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the launcher started a component: what a restart does again."""

    args: tuple[str, ...]
    cwd: str
    env: dict[str, str]


def write_invocation(run_directory: Path, component: str, invocation: Invocation) -> None:
    """Record how a component is to be started that no launcher starts."""

    def write(kind: str, parts: Iterable[str]) -> None:
        path = run_directory / f"{component}.{kind}"
        path.touch(mode=0o600)
        path.write_bytes(b"".join(os.fsencode(part) + b"\0" for part in parts))

    write("args", invocation.args)
    write("env", (f"{name}={value}" for name, value in invocation.env.items()))
    (run_directory / f"{component}.cwd").write_bytes(os.fsencode(invocation.cwd) + b"\n")


def read_pid(run_directory: Path, component: str) -> ProcessId | None:
    """Return the process that a shim recorded last; None when it has not, or not completely."""
    try:
        text = (run_directory / f"{component}.pid").read_text(encoding="ascii")
    except OSError:
        return None
    if not text.endswith("\n"):
        return None
    pid, start_ticks = text.split()
    return ProcessId(int(pid), int(start_ticks))


def read_invocation(run_directory: Path, component: str) -> Invocation:
    """Read what a shim recorded before its pid. Raises OSError."""

    def parts(kind: str) -> list[str]:
        data = (run_directory / f"{component}.{kind}").read_bytes()
        return [os.fsdecode(part) for part in data.split(b"\0")[:-1]]

    env = dict(item.split("=", 1) for item in parts("env") if "=" in item)
    cwd = os.fsdecode((run_directory / f"{component}.cwd").read_bytes()).rstrip("\n")
    return Invocation(tuple(parts("args")), cwd, env)
