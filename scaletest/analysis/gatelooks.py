"""When a gate that runs both sides looks at its numbers, and when it need not go on.

Each look is a chance of a false alarm. So the chance that a comparison may have is divided among the looks (Bonferroni): looking three times at a third
of it errs no more often than looking once. Stopping because nothing can have become worse (``gating.is_clear``) costs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from scaletest.analysis.changes import SETTING, Setting

__all__ = ["DEFAULT_REPEAT", "looks", "setting_of"]

DEFAULT_REPEAT: Final = 8
"""Most runs of each side: with eight, a fifth slower is found on a machine whose runs differ by 5 % (docs/decisions/021-comparison.md)."""

_STEP: Final = 2


def looks(most: int, setting: Setting = SETTING) -> list[int]:
    """Return after how many runs of each side to look; the last is ``most``."""
    return [*range(setting.fewest_runs, most, _STEP), most]


def setting_of(most: int, setting: Setting = SETTING) -> Setting:
    """Return the setting for each of the looks."""
    return replace(setting, alpha=setting.alpha / len(looks(most, setting)))
