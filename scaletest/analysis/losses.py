"""What of a journal is missing or worth nothing, in words: lost by its writers, broken lines, malformed records, no journal at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.analysis.state import RunState
from scaletest.core.journal import JOURNAL_NAME, JournalDamage

__all__ = ["lost_share", "remedy_of_damage", "said_of_damage", "said_skipped", "why_nothing_measured"]

_NO_ROOM: Final = "Free disk space and run again."
_CHANGED: Final = (
    "What scaletest writes is whole: the file was changed or damaged later. Take a copy that was not, or run again."
)

_KINDS_SAID: Final = 3
_KIND_CHARS: Final = 30
"""Kinds of ours are shorter; a damaged record may have anything."""


def why_nothing_measured(state: RunState, damage: JournalDamage) -> str | None:
    """Return what is to be said of a journal without a record; None where there is one."""
    if state.records:
        return None
    if not damage.found:
        return f"there is no {JOURNAL_NAME}: nothing was measured"
    if damage.broken_lines:
        return f"{JOURNAL_NAME} has no whole line: nothing was measured"
    return f"{JOURNAL_NAME} is empty: nothing was measured"


def lost_share(state: RunState, damage: JournalDamage) -> float:
    """Return the share of records that say nothing of the run; of a journal that has any."""
    lost = damage.broken_lines + state.malformed.total() + state.lost_records
    return lost / (state.records + damage.broken_lines + state.lost_records)


def said_of_damage(state: RunState, damage: JournalDamage) -> str:
    """Say how many records are lost, broken and malformed, and in which line each kind of damage begins."""
    return f"{', '.join(_parts(state, damage))} of {state.records + damage.broken_lines:,} records"


def _parts(state: RunState, damage: JournalDamage) -> Iterator[str]:
    if state.lost_records:
        yield f"{state.lost_records:,} lost"
    if damage.broken_lines:
        cut = "; the end is cut" if damage.cut_end else ""
        yield f"{damage.broken_lines:,} broken (first in line {damage.first_broken_line}{cut})"
    if state.malformed:
        kinds = [f"{kind[:_KIND_CHARS]} {number:,}" for kind, number in state.malformed.most_common(_KINDS_SAID)]
        kinds += ["…"] if len(state.malformed) > _KINDS_SAID else []
        first = "" if state.first_malformed_line is None else f"; first in line {state.first_malformed_line}"
        yield f"{state.malformed.total():,} malformed ({', '.join(kinds)}{first})"


def remedy_of_damage(state: RunState, damage: JournalDamage) -> str:
    """Say what to do: a write that failed says so, or ends in the middle; what else is wrong in a file came into it later."""
    return _NO_ROOM if state.lost_records or damage.cut_end else _CHANGED


def said_skipped(state: RunState, damage: JournalDamage) -> str:
    """Return the end of a sentence on how a run ended; empty where all of its journal counts."""
    parts = {"broken line": damage.broken_lines, "malformed record": state.malformed.total()}
    said = [f"{count:,} {what}{'s' if count > 1 else ''}" for what, count in parts.items() if count]
    return f"; {' and '.join(said)} of the journal skipped" if said else ""
