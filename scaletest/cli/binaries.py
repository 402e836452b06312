"""``scaletest binaries``: the programs of control planes, on this machine and from elsewhere."""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scaletest.cli._options import BinaryOption
from scaletest.cli._streams import answer, hand_over, task_progress, tell
from scaletest.core.errors import EnvironmentProblem
from scaletest.core.units import format_bytes

if TYPE_CHECKING:
    from scaletest.controlplane.binaries import Binaries, Plan

__all__ = ["app"]

app = typer.Typer(
    help="List, fetch, build and verify the control plane's binaries (etcd, kube-*, kwok, kwokctl).",
    no_args_is_help=True,
)


class Format(enum.StrEnum):
    """How a list is printed."""

    TEXT = "text"
    JSON = "json"


KubernetesOption = Annotated[
    str | None,
    typer.Option("--kubernetes", metavar="VERSION", help="Kubernetes version: 1.37 or 1.37.2. [default: as profiles]"),
]
EtcdOption = Annotated[
    str | None, typer.Option("--etcd", metavar="VERSION", help="etcd version: 3.6 or 3.6.16. [default: as profiles]")
]


@dataclass(frozen=True, slots=True)
class _Row:
    component: str
    version: str
    origin: str
    size_bytes: int | None
    path: str | None


@app.command("list")
def list_(
    kubernetes: KubernetesOption = None,
    etcd: EtcdOption = None,
    format_: Annotated[Format, typer.Option("--format", help="Print as text or JSON.")] = Format.TEXT,
) -> None:
    """Show what is cached; with a version, where each program of that control plane comes from.

    Examples:
      scaletest binaries list
      scaletest binaries list --kubernetes 1.31 --format json
    """
    from scaletest.controlplane import binaries

    if kubernetes is None and etcd is None:
        rows = [
            _Row(item.component, item.version, item.record.origin, item.record.size_bytes, str(item.path))
            for item in binaries.cached()
        ]
    else:
        rows = [_row_of(plan) for plan in binaries.plan_all(*_versions(kubernetes, etcd))]
    if format_ is Format.JSON:
        hand_over(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    elif rows:
        _print_table(rows)
    else:
        tell("The cache is empty. `scaletest binaries fetch` fills it.")


@app.command()
def fetch(kubernetes: KubernetesOption = None, etcd: EtcdOption = None, binary: BinaryOption = None) -> None:
    """Get all binaries of a control plane from the first source that has them: release download, else build.

    Examples:
      scaletest binaries fetch
      scaletest binaries fetch --kubernetes 1.31
    """
    from scaletest.controlplane import binaries

    explicit = binaries.parse_binary_flags(binary or ())
    found = binaries.locate_all(*_versions(kubernetes, etcd), explicit=explicit, progress=task_progress())
    _print_table(_rows_of(found))


@app.command()
def build(kubernetes: KubernetesOption = None, etcd: EtcdOption = None) -> None:
    """Build all binaries of a control plane from their Go modules, also those that are cached. Needs Go.

    Takes about 9 minutes on two idle cores the first time; what Go has compiled before is not compiled again.

    Examples:
      scaletest binaries build --kubernetes 1.36
    """
    from scaletest.controlplane import binaries

    built = binaries.build_all(*_versions(kubernetes, etcd), progress=task_progress())
    _print_table(_rows_of(built))


@app.command()
def verify() -> None:
    """Hash every cached binary again and compare with what was recorded when it arrived.

    Exit code 3 when one differs; remove that file, and the next run gets it anew.

    Examples:
      scaletest binaries verify
    """
    from scaletest.controlplane import binaries

    sound, damaged = binaries.verify()
    answer(f"{len(sound)} of {len(sound) + len(damaged)} cached binaries are as recorded.")
    if damaged:
        lines = [f"{item.path} {item.what}" for item in damaged]
        paths = " ".join(str(item.path) for item in damaged)
        raise EnvironmentProblem("\n".join(lines), hint=f"rm {paths}")


def _versions(kubernetes: str | None, etcd: str | None) -> tuple[str, str]:
    from scaletest.profile.schema import ControlPlaneSpec

    default = ControlPlaneSpec()
    return kubernetes or default.kubernetes, etcd or default.etcd


def _row_of(plan: Plan) -> _Row:
    size_bytes = plan.path.stat().st_size if plan.path else None
    return _Row(plan.component, plan.version, plan.how, size_bytes, str(plan.path) if plan.path else None)


def _rows_of(found: Binaries) -> list[_Row]:
    return [
        _Row(name, found.versions[name], found.origin[name], path.stat().st_size, str(path))
        for name, path in found.paths.items()
    ]


def _print_table(rows: Iterable[_Row]) -> None:
    from rich.table import Table

    from scaletest.core.consoles import console

    table = Table(box=None, pad_edge=False)
    for title in ("component", "version", "size"):
        table.add_column(title, no_wrap=True, justify="right" if title == "size" else "left")
    table.add_column("origin", overflow="fold")
    table.add_column("path", overflow="fold")
    for row in rows:
        size = format_bytes(row.size_bytes) if row.size_bytes is not None else "-"
        table.add_row(row.component, row.version, size, row.origin, _short(row.path))
    # A pipe has no width: nothing is folded for it.
    console(sys.stdout, width=None if sys.stdout.isatty() else 400).print(table, markup=False)


def _short(path: str | None) -> str:
    if path is None:
        return "-"
    home = str(Path.home())
    return "~" + path[len(home) :] if path.startswith(home + "/") else path
