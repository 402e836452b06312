"""``scaletest clean``: end and remove what nobody looks after any more."""

from __future__ import annotations

from typing import Annotated

import typer

from scaletest.cli._streams import answer

__all__ = ["clean"]


def clean(
    all_: Annotated[bool, typer.Option("--all", help="End living clusters too, as `cluster down --all`.")] = False,
) -> None:
    """Remove clusters whose supervisor is gone, and end what is left of their processes.

    Processes are found by their recorded pid and start time, never by name. The commands that start clusters do the same first.

    Examples:
      scaletest clean
      scaletest clean --all
    """
    from scaletest.cli._cleaning import tell_cleaned
    from scaletest.controlplane import registry

    removed = registry.clean_dead(also_alive=all_)
    tell_cleaned(removed, answer)
    if not removed:
        answer("nothing to clean")
