"""What a GitHub workflow shows of a run by itself: the summary of the step, and annotations.

GitHub tells a step by variables where to put them: ``GITHUB_STEP_SUMMARY`` names a file to append Markdown to, and with
``GITHUB_ACTIONS=true`` lines of output that begin with ``::error`` become annotations. Its limits, from its documentation (workflow commands,
"Adding a job summary" and "Setting an error message"): 1 MiB for each step's summary, which is dropped whole when it is longer; ten
annotations of each level for each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

from scaletest.core.texts import printable
from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.document import Document
from scaletest.report.matrix_document import MatrixDocument

__all__ = ["MOST_ANNOTATIONS", "SUMMARY_LIMIT", "annotation_lines", "tell_github"]

SUMMARY_LIMIT: Final = 1 << 20
MOST_ANNOTATIONS: Final = 10


def tell_github(summary: str, lines: Sequence[str], environ: Mapping[str, str], stream: TextIO) -> None:
    """Append a summary and print annotations, each where the variables ask for it; do nothing elsewhere.

    ``stream`` is to be one that carries no report. A summary that finds no place is said there, and changes nothing else.
    """
    path = environ.get("GITHUB_STEP_SUMMARY")
    if path:
        problem = _append(Path(path), summary)
        if problem is not None:
            print(printable(f"scaletest: {path}: no step summary: {problem}"), file=stream)
    if environ.get("GITHUB_ACTIONS") == "true":
        for line in lines:
            print(printable(line), file=stream)
    stream.flush()


def _append(path: Path, summary: str) -> str | None:
    """Append a summary; return why it could not be."""
    try:
        with path.open("a", encoding="utf-8") as stream:
            # One byte more than the limit, and what others wrote would be lost too.
            if stream.tell() + len(summary.encode()) + 1 > SUMMARY_LIMIT:
                return "the steps before have filled it"
            stream.write(summary + "\n")
    except OSError as error:
        return error.strerror
    return None


def annotation_lines(
    documents: Sequence[Document], comparison: ComparisonDocument | None = None, matrix: MatrixDocument | None = None
) -> list[str]:
    """Return the workflow commands: an error for each failed objective, gate and reason, a warning for each doubt."""
    found = [item for document in documents for item in _of_run(document)]
    found += list(_of_comparison(comparison)) if comparison is not None else []
    found += list(_of_matrix(matrix)) if matrix is not None else []
    lines: list[str] = []
    for level in ("error", "warning"):
        told = [(title, message) for of, title, message in found if of == level]
        if len(told) > MOST_ANNOTATIONS:
            more = len(told) - MOST_ANNOTATIONS + 1
            told = [*told[: MOST_ANNOTATIONS - 1], ("scaletest", f"… and {more} more: see the report")]
        lines += [f"::{level} title={_property(title)}::{_data(message)}" for title, message in told]
    return lines


def _of_run(document: Document) -> Iterator[tuple[str, str, str]]:
    level = "error" if document.verdict.outcome == "fail" else "warning"
    title = f"scaletest {document.run.profile}: {document.verdict.outcome}"
    # An invalid or cut-short run ends its step in an error of its own: its first reason is one here too.
    for index, reason in enumerate(document.verdict.reasons):
        yield ("error" if index == 0 else level), title, reason
    for item in document.validity:
        if item.grade == "warning":
            yield "warning", f"scaletest {document.run.profile}: validity", f"{item.check}: {item.said}"


def _of_comparison(comparison: ComparisonDocument) -> Iterable[tuple[str, str, str]]:
    for candidate in comparison.candidates:
        if candidate.gate is not None:
            for check in candidate.gate.checks:
                if check.outcome != "pass":
                    level = "error" if check.outcome == "fail" else "warning"
                    yield level, f"scaletest: {check.metric} ({check.rule})", check.said


def _of_matrix(matrix: MatrixDocument) -> Iterator[tuple[str, str, str]]:
    for variant in matrix.variants:
        for run in variant.runs:
            if run.reasons:
                yield (
                    "error",
                    f"scaletest {matrix.matrix.profile}, {run.directory}: {run.outcome or run.status}",
                    run.reasons[0],
                )


def _data(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
