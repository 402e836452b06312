"""``scaletest cluster``: control planes that stay up between runs."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._options import BinaryOption

__all__ = ["app"]

app = typer.Typer(
    help="Start, show and end clusters that stay up: real control planes with fake nodes.",
    no_args_is_help=True,
)


class Format(enum.StrEnum):
    """How the status is printed."""

    TEXT = "text"
    JSON = "json"


@app.command()
def up(
    *,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the cluster.")] = "default",
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", min=0, max=100_000, help="Fake nodes, all Ready.")] = 0,
    pods: Annotated[
        int | None, typer.Option("--pods", metavar="N", min=0, help="Running pods, spread over the nodes.")
    ] = None,
    pods_per_node: Annotated[
        int | None, typer.Option("--pods-per-node", metavar="N", min=0, help="Running pods per node.")
    ] = None,
    kubernetes: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Kubernetes version. [default: as profiles]")
    ] = None,
    etcd: Annotated[str | None, typer.Option(metavar="VERSION", help="etcd version. [default: as profiles]")] = None,
    heartbeat_factor: Annotated[
        str, typer.Option(metavar="N", help="How many times rarer than a kubelet's heartbeats are, 1 to 60, or auto.")
    ] = "auto",
    port: Annotated[
        list[str] | None, typer.Option("--port", metavar="COMPONENT=PORT", help="Listen on this port; repeatable.")
    ] = None,
    binary: BinaryOption = None,
) -> None:
    """Start a control plane, fill it with fake nodes, and leave it up until `cluster down`.

    Examples:
      scaletest cluster up
      scaletest cluster up --nodes 7000 --pods 20000 --kubernetes 1.31
    """
    from scaletest.cli import _clusters

    _clusters.up(
        _clusters.UpRequest(
            name=name,
            nodes=nodes,
            pods=pods,
            pods_per_node=pods_per_node,
            kubernetes=kubernetes,
            etcd=etcd,
            heartbeat_factor=heartbeat_factor,
            ports=tuple(port or ()),
            binaries=tuple(binary or ()),
        )
    )


@app.command()
def status(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Show this cluster only, with its components.", autocompletion=complete.clusters
        ),
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="Print as text or JSON.")] = Format.TEXT,
) -> None:
    """Show the clusters on this machine.

    Examples:
      scaletest cluster status
      scaletest cluster status default --format json
    """
    from scaletest.cli import _clusters

    _clusters.status(name, as_json=format_ is Format.JSON)


@app.command()
def down(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Name of the cluster. [default: default]", autocompletion=complete.clusters
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="End every cluster.")] = False,
) -> None:
    """End a cluster and remove everything of it: processes, data, keys, control groups.

    Examples:
      scaletest cluster down
      scaletest cluster down --all
    """
    from scaletest.cli import _clusters

    _clusters.down(name, every=all_)
