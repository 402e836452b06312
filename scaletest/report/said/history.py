"""What all forms of a history say in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from scaletest.report.history_document import HistoryDocument, MetricHistoryReport, ProfileHistory, ShiftReport

__all__ = [
    "changed_about_then",
    "doubts",
    "rule",
    "says_nothing",
    "shifts_by_run",
    "shortened",
    "since",
    "span",
    "untold",
    "verdict",
]


def since(started_at: str) -> str:
    """Write when a run began, to the minute, in UTC."""
    try:
        found = datetime.fromisoformat(started_at)
    except ValueError:
        return started_at
    return f"{(found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def span(history: ProfileHistory) -> str:
    """Say how many runs there are, and of which time."""
    runs = history.runs
    if len(runs) < 2:
        return f"{len(runs)} run" + (f", {since(runs[0].started_at)}" if runs else "s: none is valid")
    return f"{len(runs)} runs, {since(runs[0].started_at)} to {since(runs[-1].started_at)}"


def doubts(history: ProfileHistory) -> Iterator[str]:
    """Yield what was left out, and the notes."""
    for item in history.left_out:
        yield f"left out: {item.why}"
    yield from history.notes


def shifts_by_run(history: ProfileHistory) -> list[tuple[ShiftReport, list[tuple[MetricHistoryReport, ShiftReport]]]]:
    """Return the shifts by the run that they begin with, the oldest first, and of each run the most certain first."""
    found: dict[int, list[tuple[MetricHistoryReport, ShiftReport]]] = {}
    for metric in history.metrics:
        for shift in metric.shifts:
            found.setdefault(shift.run, []).append((metric, shift))
    groups = [sorted(found[run], key=lambda pair: pair[1].p_adjusted or 0.0) for run in sorted(found)]
    return [(group[0][1], group) for group in groups]


def changed_about_then(shifts: Iterable[ShiftReport], most: int = 5) -> list[str]:
    """Return what else changed about the time of some shifts, each thing once, and how much more there is."""
    said = list(dict.fromkeys(near.said for shift in shifts for near in shift.nearby))
    return [*said[:most], *([f"and {len(said) - most} more"] if len(said) > most else [])]


def verdict(history: ProfileHistory) -> str:
    """Say how many metrics shifted."""
    told = [metric for metric in history.metrics if metric.why is None]
    shifted = sum(bool(metric.shifts) for metric in told)
    if not told:
        return f"none of {len(history.metrics)} metrics can be told"
    return f"{len(told)} metrics, {shifted or 'none'} with a shift"


def untold(history: ProfileHistory) -> dict[str, list[str]]:
    """Return why no shift can be told of some metrics, with their names."""
    found: dict[str, list[str]] = {}
    for metric in history.metrics:
        if metric.why is not None and not says_nothing(metric):
            found.setdefault(metric.why, []).append(metric.metric)
    return found


def says_nothing(metric: MetricHistoryReport) -> bool:
    """Whether a count or share is 0 in every run."""
    return metric.scale == "difference" and all(value == 0 for value in metric.values if value is not None) and any(
        value is not None for value in metric.values
    )  # fmt: skip


def shortened(names: Sequence[str], most: int = 3) -> str:
    """List some names, and how many there are beside them."""
    return f"{', '.join(names[:most])}{f' and {len(names) - most} more' if len(names) > most else ''}"


def rule(document: HistoryDocument) -> str:
    """Say when a shift is told."""
    setting = document.setting
    return (
        f"A shift is told where levels of {setting.fewest_runs} runs or more differ beyond chance (over all metrics and places at "
        f"{setting.alpha:g}, and Mann-Whitney at {setting.mann_whitney:g}) and by enough to matter."
    )
