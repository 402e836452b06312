"""Where the rules of a gate come from: the command line, else a setting, else the profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scaletest.analysis.comparison import RunSet
from scaletest.analysis.gating import ALL_RULE, Rule, parse_rule
from scaletest.core.settings import Settings

__all__ = ["rules_for", "runs_profile"]


def rules_for(flags: Sequence[str], settings: Settings, profile: Mapping[str, Any], *, asked: bool) -> list[Rule]:
    """Return the rules that hold: those of the nearest place that has any; none unless there is a flag or a gate is asked for.

    Where no place has any, every metric is gated. Raises UsageError for what is no rule.
    """
    if flags:
        return [parse_rule(text, "--fail") for text in flags]
    if not asked:
        return []
    if settings["fail"]:
        return [parse_rule(text, f"fail of {settings.origin('fail')}") for text in settings["fail"]]
    gate = profile.get("gate")
    fail = gate.get("fail") if isinstance(gate, Mapping) else None
    rules = [parse_rule(str(text), "gate.fail of the profile") for text in fail or ()]
    return rules or [ALL_RULE]


def runs_profile(side: RunSet) -> Mapping[str, Any]:
    """Return the profile of a side's first counted run."""
    return side.counted[0].profile
