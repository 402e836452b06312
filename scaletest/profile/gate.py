"""The ``gate`` block of a profile: how much worse than a baseline its runs may become, and how a rule is written.

rule     = metrics ":" allowed
metrics  = the name of a metric, or the end of one from a dot on; * stands for anything
allowed  = a percentage (10%) or an amount with the metric's unit (50ms, 200MiB, 1)
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from scaletest.core.settings import MOST_REPEATS
from scaletest.profile.model import Model

__all__ = ["GateSpec", "split_rule"]

_PERCENT: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?\s*%", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]|\.[0-9]", re.ASCII)


def split_rule(text: str) -> tuple[str, str]:
    """Split a rule into its metrics and what is allowed. Raises ValueError for what is no rule."""
    # Identities have colons too: probe.operator[system:masters].p50:10%
    metrics, colon, allowed = (part.strip() for part in text.rpartition(":"))
    if not colon or not metrics or not _NUMBER.match(allowed):
        msg = f"{text!r} is not METRIC:ALLOWED: write p99:10%, apiserver.memory:200MiB or error_rate:1%"
        raise ValueError(msg)
    if "%" in allowed and not _PERCENT.fullmatch(allowed):
        msg = f"{text!r}: {allowed!r} is no percentage"
        raise ValueError(msg)
    return metrics, allowed


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
