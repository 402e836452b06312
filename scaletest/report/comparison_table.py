"""A comparison in the terminal: the gate first, then what changed, then a table of all metrics."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scaletest.core.consoles import ColorSystem
from scaletest.report import glyphs
from scaletest.report.comparison_document import (
    CandidateReport,
    ChangeReport,
    ComparisonDocument,
    DifferenceReport,
    SideReport,
)
from scaletest.report.terminal import print_drawn, render_drawn

__all__ = ["print_comparison", "render_comparison"]

_SAME: Final = "~"
_UNTOLD: Final = "?"
_STYLES: Final = {"worse": "red", "better": "green", "same": ""}
_GATES: Final = {
    "pass": ("PASS", "bold green"),
    "fail": ("FAIL", "bold red"),
    "undecided": ("UNDECIDED", "bold yellow"),
}
_WIDE: Final = 100
_MOST_TOLD: Final = 5

Drawn = Table | Text | Padding


def render_comparison(
    document: ComparisonDocument, *, width: int, unicode: bool = True, colors: ColorSystem | None = None
) -> str:
    """Draw a comparison as text that ends in a newline."""
    return render_drawn(lambda wide: _parts(document, wide), width=width, unicode=unicode, colors=colors)


def print_comparison(document: ComparisonDocument, stream: TextIO) -> None:
    """Print a comparison as the stream can show it."""
    print_drawn(lambda wide: _parts(document, wide), stream)


def _parts(document: ComparisonDocument, width: int) -> Iterator[list[Drawn]]:
    for candidate in document.candidates:
        yield list(_head(document, candidate))
        if candidate.changes:
            yield [_table(candidate, width)]
        yield list(_tail(document, candidate))


def _head(document: ComparisonDocument, candidate: CandidateReport) -> Iterator[Drawn]:
    gate = candidate.gate
    title, style = ("COMPARISON", "bold") if gate is None else _GATES[gate.outcome]
    yield Text.assemble((title, style), f"  {candidate.side.name}", ("  against  ", "dim"), document.base.name)
    yield _line(f"base: {_side(document.base)}")
    yield _line(f"new:  {_side(candidate.side)}")
    mark, color = (glyphs.BAD, "red") if gate and gate.outcome == "fail" else (_UNTOLD, "yellow")
    for reason in gate.reasons[:_MOST_TOLD] if gate else ():
        yield _line(f"{mark} {reason}", color)
    if gate and len(gate.reasons) > _MOST_TOLD:
        yield _line(f"  and {len(gate.reasons) - _MOST_TOLD} more", "dim")
    for note in candidate.notes:
        yield _line(note, "yellow")
    for what, items in itertools.groupby(candidate.differences, key=lambda item: item.what):
        yield _line(_differences(what, list(items)), "yellow")


def _side(side: SideReport) -> str:
    counted = [run for run in side.runs if run.counted]
    runs = "1 run" if len(counted) == 1 else f"{len(counted)} runs"
    kubernetes = side.versions.get("kubernetes")
    version = f", Kubernetes {kubernetes}" if kubernetes else ""
    kind = "baseline, " if side.kind == "baseline" else ""
    return f"{side.profile}{version}, {kind}{runs}"


def _differences(what: str, items: Sequence[DifferenceReport]) -> str:
    told = "; ".join(f"{item.key}: {item.base} and {item.new}" for item in items[:_MOST_TOLD])
    more = f"; and {len(items) - _MOST_TOLD} more" if len(items) > _MOST_TOLD else ""
    return f"different {what}: {told}{more}"


def _table(candidate: CandidateReport, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("", overflow="fold")
    for name in ("base", "new"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    if width >= _WIDE:
        table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    shown = [change for change in candidate.changes if not _says_nothing(change)]
    for section, changes in itertools.groupby(shown, key=lambda change: change.section):
        table.add_row(Text(section, "bold"))
        for change in changes:
            table.add_row(*_row(change, wide=width >= _WIDE))
    return table


def _says_nothing(change: ChangeReport) -> bool:
    """Whether a count or share is 0 on both sides."""
    return change.scale == "difference" and change.base == change.new == 0 and change.call == "same"


def _row(change: ChangeReport, *, wide: bool) -> list[Text]:
    style = _STYLES[change.call]
    cells = [Text(f"  {change.label}"), Text(change.base_said), Text(change.new_said), Text(change.change_said, style)]
    if wide:
        cells.append(Text(change.interval_said or "", "dim"))
    mark = change.call if change.call != "same" else _SAME if change.why is None else _UNTOLD
    return [*cells, Text(mark, style or "dim")]


def _tail(document: ComparisonDocument, candidate: CandidateReport) -> Iterator[Drawn]:
    changes = candidate.changes
    worse = sum(change.call == "worse" for change in changes)
    better = sum(change.call == "better" for change in changes)
    yield _line(f"{len(changes)} metrics: {worse} worse, {better} better")
    for why, items in _whys(changes).items():
        yield _line(
            f"? {why}: {', '.join(items[:3])}{f' and {len(items) - 3} more' if len(items) > 3 else ''}", "yellow"
        )
    samples = sorted({_samples(change) for change in changes if change.why is None})
    if samples:
        yield _line(f"Samples: {'; '.join(samples)}.", "dim")
    yield _line(
        f"{_SAME}: no change that is beyond chance (Holm over all metrics at {document.setting.alpha:g}, and Mann-Whitney at "
        f"{document.setting.mann_whitney:g}) and large enough to matter.",
        "dim",
    )


def _whys(changes: Sequence[ChangeReport]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for change in changes:
        if change.why is not None and not _says_nothing(change):
            found.setdefault(change.why, []).append(change.metric)
    return found


def _samples(change: ChangeReport) -> str:
    if change.samples == "runs":
        return f"{change.base_samples} and {change.new_samples} runs"
    return "blocks of time of single runs, with an assumed spread between runs"


def _line(text: str, style: str = "") -> Padding:
    return Padding(Text(text, style=style, overflow="fold"), (0, 0, 0, 2))
