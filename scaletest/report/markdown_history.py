"""A history as Markdown: the shifts open, every metric folded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scaletest.report import glyphs
from scaletest.report.history_document import HistoryDocument, ProfileHistory
from scaletest.report.markdown import COMMENT_LIMIT
from scaletest.report.markdown_text import code, cut, folded, table, text
from scaletest.report.said.history import (
    changed_about_then,
    doubts,
    rule,
    says_nothing,
    shifts_by_run,
    shortened,
    since,
    span,
    untold,
    verdict,
)

__all__ = ["render_history_markdown"]

_CALLS: Final = {"worse": "❌", "better": "✅"}
_WIDTH: Final = 40


def render_history_markdown(document: HistoryDocument, *, limit: int = COMMENT_LIMIT) -> str:
    """Write a history in at most ``limit`` bytes."""
    heads = [list(_head(document, history)) for history in document.profiles]
    tables = [list(_all(history)) for history in document.profiles if history.metrics]
    over = [f"- passed over: {code(item.run)}: {text(item.why)}" for item in document.passed_over]
    return cut([*heads, *([over] if over else []), *tables], limit)


def _head(document: HistoryDocument, history: ProfileHistory) -> Iterator[str]:
    yield f"### History of {text(history.profile)}: {text(verdict(history))}"
    yield ""
    yield text(span(history))
    told = [*doubts(history), *(f"{why}: {shortened(names)}" for why, names in untold(history).items())]
    if told:
        yield ""
        yield from (f"- {text(line)}" for line in told)
    rows = [
        (
            _CALLS[shift.call],
            code(metric.metric),
            f"{text(since(shift.started_at))}, {code(shift.run_id)}",
            "; ".join(text(said) for said in changed_about_then([shift])),
            text(shift.before_said),
            text(shift.after_said),
            text(shift.change_said),
        )
        for _, group in shifts_by_run(history)
        for metric, shift in group
    ]
    if rows:
        yield ""
        yield from table(("", "metric", "since", "changed about then", "before", "after", "change"), rows, left=4)
    yield ""
    yield text(rule(document))


def _all(history: ProfileHistory) -> Iterator[str]:
    rows = [
        (
            code(metric.metric),
            glyphs.sparkline(metric.values, width=_WIDTH),
            text(metric.first_said),
            text(metric.last_said),
        )
        for metric in history.metrics
        if not says_nothing(metric)
    ]
    title = f"All {len(history.metrics)} metrics of {history.profile}"
    yield from folded(title, table(("metric", "over time", "first", "last"), rows, left=2))
