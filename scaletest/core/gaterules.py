"""How a rule of the regression gate is written: in profiles, settings and on the command line.

rule     = metrics ":" allowed
metrics  = the name of a metric, or the end of one from a dot on; * stands for anything
allowed  = a percentage (10%) or an amount with the metric's unit (50ms, 200MiB, 1)
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["split_rule"]

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
