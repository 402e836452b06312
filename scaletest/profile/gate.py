"""The ``gate`` block of a profile: how much worse than a baseline its runs may become."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from scaletest.core.gaterules import split_rule
from scaletest.core.settings import MOST_REPEATS
from scaletest.profile.model import Model

__all__ = ["GateSpec"]


def _check_rule(text: str) -> str:
    split_rule(text)
    return text


class GateSpec(Model):
    """What `scaletest gate` holds against a baseline, where the command line says nothing."""

    fail: list[Annotated[str, AfterValidator(_check_rule)]] = Field(
        default_factory=list,
        description="Rules: how much worse a metric may become. `p99:10%`, `apiserver.memory:200MiB`. Without any: no metric may.",
    )
    repeat: int | None = Field(
        None,
        ge=1,
        le=MOST_REPEATS,
        description="Most runs of each side. Without it: 8, and it stops when the answer is clear.",
    )
