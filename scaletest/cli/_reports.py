"""Behind every command that writes reports: read directories once, and write them in any form, to stdout or whole into a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from scaletest.analysis.verdict import worst
from scaletest.cli._formats import Format
from scaletest.cli._streams import hand_over, reader_may_go, tell
from scaletest.core.errors import ExitCode, RunDirectoryError, ScaletestError, UsageError, refused
from scaletest.core.foreignfiles import read_object
from scaletest.core.matrixdir import is_matrix
from scaletest.core.rundir import is_measured
from scaletest.core.wholefile import refuse_unwritable, write_whole
from scaletest.report.build import build
from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.document import Document
from scaletest.report.github import tell_github
from scaletest.report.matrix_build import build_matrix
from scaletest.report.matrix_document import MatrixDocument
from scaletest.report.rundir import LoadedRun, load_run

__all__ = [
    "TEXT_WIDTH",
    "ReportFile",
    "Subject",
    "deliver_report",
    "parse_report_files",
    "print_reports",
    "print_text",
    "read_comparison",
    "read_subject",
    "refuse_on_terminal",
    "render",
    "write_report",
]

TEXT_WIDTH: Final = 100
"""Columns of a text report in a file: what a wide page or a mail shows."""


_ENDINGS: Final[Mapping[Format, str]] = {
    Format.TEXT: "txt",
    Format.JSON: "json",
    Format.HTML: "html",
    Format.MARKDOWN: "md",
    Format.JUNIT: "xml",
    Format.CSV: "csv",
    Format.OPENMETRICS: "txt",
    Format.BENCHMARK_SMALLER: "json",
    Format.BENCHMARK_BIGGER: "json",
}
"""How files of a form usually end."""

_WITH_COMPARISON: Final = (Format.HTML, Format.MARKDOWN, Format.JUNIT)


class Subject:
    """A run or a matrix that reports are made of; read once, whatever is made of it."""

    def __init__(self, directory: Path, run: LoadedRun | None, matrix: MatrixDocument | None) -> None:
        self.directory = directory
        self.run = run
        self.matrix = matrix

    @cached_property
    def document(self) -> Document | None:
        """The report on a run."""
        return build(self.run) if self.run is not None else None

    @property
    def exit_code(self) -> ExitCode:
        """Exit code by the verdict."""
        if self.matrix is not None:
            return ExitCode(self.matrix.verdict.exit_code)
        return self.run.verdict.exit_code if self.run is not None else ExitCode.PASS

    @cached_property
    def parts(self) -> list[tuple[LoadedRun, Document]]:
        """The run itself; of a matrix each run that can be read."""
        if self.run is not None and self.document is not None:
            return [(self.run, self.document)]
        found = []
        for variant in self.matrix.variants if self.matrix is not None else ():
            for entry in variant.runs:
                if entry.status not in {"waiting", "unreadable"}:
                    run = load_run(self.directory / entry.directory)
                    found.append((run, build(run)))
        return found


def read_subject(directory: Path) -> Subject:
    """Read a run or matrix directory. Raises RunDirectoryError."""
    if is_matrix(directory):
        return Subject(directory, None, build_matrix(directory))
    return Subject(directory, load_run(directory), None)


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A form, and the file it is to be written to."""

    format: Format
    path: Path


def parse_report_files(
    texts: Iterable[str], possible: Sequence[Format] = tuple(Format), what: str = "a report"
) -> list[ReportFile]:
    """Read ``FORMAT=PATH`` with one of the possible forms, and refuse what cannot be written before a run of an hour. Raises UsageError."""
    found: list[ReportFile] = []
    for text in texts:
        name, given, path = text.partition("=")
        if name in list(Format) and name not in possible:
            msg = f"--report {text}: {what} is not written as {name}: {', '.join(possible)}"
            raise UsageError(msg, hint="That is a form of a run's report: scaletest report RUN --format …")
        if name not in possible or not given or not path:
            msg = f"--report {text}: not FORMAT=PATH with one of {', '.join(possible)}"
            raise UsageError(msg, hint=f"For example --report {possible[1]}=report.{_ENDINGS[possible[1]]}")
        file = ReportFile(Format(name), _checked(Path(path), Format(name)))
        if any(os.path.realpath(other.path) == os.path.realpath(file.path) for other in found):
            msg = f"--report {text}: another report goes into that file"
            raise UsageError(msg, hint="Name a file for each.")
        found.append(file)
    return found


def _checked(path: Path, form: Format) -> Path:
    """Refuse what is known never to become a file, or never ought to."""
    _refuse_measured(path)
    if path.is_dir():
        msg = f"--report {form}={path}: a directory; a report is one file"
        raise UsageError(msg, hint=f"Name a file: --report {form}={path / f'report.{_ENDINGS[form]}'}")
    refuse_unwritable(path, f"--report {form}={path}", "Name another file.")
    return path


def _refuse_measured(path: Path) -> None:
    if is_measured(path):
        msg = f"{path}: a file of a run, which no report replaces"
        raise UsageError(msg, hint="Name another file; nothing was changed.")


def print_reports(subjects: Sequence[Subject], format_: Format, comparison: ComparisonDocument | None = None) -> None:
    """Print reports on stdout; text as the terminal can show it."""
    _print(format_, lambda: print_text(subjects), lambda form: render(subjects, form, comparison))


def _print(format_: Format, print_text: Callable[[], None], render_as: Callable[[Format], str]) -> None:
    if format_ is Format.TEXT:
        print_text()
        return
    refuse_on_terminal(format_)
    hand_over(render_as(format_))


def refuse_on_terminal(format_: Format) -> None:
    """Raise UsageError where a form cannot be looked at on stdout."""
    if format_ is Format.HTML and sys.stdout.isatty():
        msg = "HTML is no text for a terminal"
        raise UsageError(
            msg, hint="Write it to a file (report RUN --format html --output PATH), or see it: scaletest open."
        )


def print_text(subjects: Sequence[Subject]) -> None:
    """Print reports on stdout as the terminal can show them."""
    from scaletest.report.matrix_table import print_matrix
    from scaletest.report.terminal import print_report

    for subject in subjects:
        if subject.matrix is not None:
            print_matrix(subject.matrix, sys.stdout)
        elif subject.document is not None:
            print_report(subject.document, sys.stdout)


def deliver_report(
    render_as: Callable[[Format], str],
    files: Sequence[ReportFile],
    annotate: Callable[[], Sequence[str]],
    format_: Format,
    print_text: Callable[[], None],
    verdict: int,
) -> ExitCode:
    """Write files, tell a GitHub step, print in a form (text as the terminal can show it); return the exit code.

    It is the verdict's, if all could be written.
    """
    written = [_write(file.path, render_as(file.format)) for file in files]
    problems = [problem for problem in written if problem is not None]
    for problem in problems:
        tell(f"scaletest: {problem.message}")
    if {"GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"} & set(os.environ):
        tell_github(render_as(Format.MARKDOWN), annotate(), os.environ, sys.stderr)
    with reader_may_go():
        _print(format_, print_text, render_as)
    return worst([ExitCode(verdict), *(problem.exit_code for problem in problems)])


def write_report(
    subjects: Sequence[Subject], file: ReportFile, comparison: ComparisonDocument | None = None
) -> ScaletestError | None:
    """Write a report into a file, whole or not at all; return what is to be said where that could not be done."""
    return _write(file.path, render(subjects, file.format, comparison))


def _write(path: Path, text: str) -> ScaletestError | None:
    """Write a file whole or not at all; return what is to be said where that could not be done. Raises UsageError for a file of a run."""
    _refuse_measured(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        return refused(
            error, f"{path}: the report cannot be written", hint="Name another file; the run directory is whole."
        )
    return None


def render(subjects: Sequence[Subject], format_: Format, comparison: ComparisonDocument | None = None) -> str:
    """Return reports in one form as one text. Raises UsageError where the form cannot hold them."""
    match format_:
        case Format.TEXT:
            return _text(subjects)
        case Format.JSON:
            return _json(subjects)
        case Format.HTML:
            return _html(subjects, comparison)
        case Format.MARKDOWN:
            return _markdown(subjects, comparison)
        case _:
            return _of_runs([part for subject in subjects for part in subject.parts], format_, comparison)


def _of_runs(
    parts: Sequence[tuple[LoadedRun, Document]], format_: Format, comparison: ComparisonDocument | None
) -> str:
    """Return a form that knows runs alone: of a matrix, those that it has."""
    from scaletest.report.benchmark_json import render_benchmark
    from scaletest.report.csv_report import render_csv
    from scaletest.report.junit import render_junit
    from scaletest.report.markdown_comparison import comparison_cases
    from scaletest.report.openmetrics import render_openmetrics
    from scaletest.report.run_names import run_names

    documents = [document for _, document in parts]
    match format_:
        case Format.JUNIT:
            return render_junit(documents, comparison_cases(comparison) if comparison is not None else [])
        case Format.CSV:
            return render_csv(zip(run_names(documents), (run.state for run, _ in parts), strict=True))
        case Format.OPENMETRICS:
            return render_openmetrics(documents)
        case _:
            return render_benchmark(documents, "smaller" if format_ is Format.BENCHMARK_SMALLER else "bigger")


def _text(subjects: Sequence[Subject]) -> str:
    from scaletest.report.matrix_table import render_matrix
    from scaletest.report.terminal import render as render_run

    texts = []
    for subject in subjects:
        if subject.matrix is not None:
            texts.append(render_matrix(subject.matrix, width=TEXT_WIDTH))
        elif subject.document is not None:
            texts.append(render_run(subject.document, width=TEXT_WIDTH))
    return "".join(texts)


def _json(subjects: Sequence[Subject]) -> str:
    from scaletest.report.json_report import render_json

    texts = []
    for subject in subjects:
        if subject.matrix is not None:
            texts.append(render_json(subject.matrix))
        elif subject.document is not None:
            texts.append(render_json(subject.document))
    return "".join(texts)


def _html(subjects: Sequence[Subject], comparison: ComparisonDocument | None) -> str:
    from scaletest.report.page.render import render_matrix_page, render_page

    if len(subjects) != 1:
        msg = f"an HTML page is of one run or matrix, not of {len(subjects)}"
        raise UsageError(msg, hint="Make one for each; or compare them: scaletest compare.")
    (subject,) = subjects
    if subject.matrix is not None:
        return render_matrix_page(subject.matrix)
    ((run, document),) = subject.parts
    return render_page(run, document, comparison)


def _markdown(subjects: Sequence[Subject], comparison: ComparisonDocument | None) -> str:
    from scaletest.report.markdown import render_markdown
    from scaletest.report.markdown_matrix import render_matrix_markdown

    matrices = [render_matrix_markdown(subject.matrix) for subject in subjects if subject.matrix is not None]
    documents = [subject.document for subject in subjects if subject.document is not None]
    runs = render_markdown(documents, comparison) if documents or comparison else ""
    return "\n".join([*matrices, *([runs] if runs else [])])


def tell_if_not_compared(subjects: Sequence[Subject], comparison: ComparisonDocument) -> None:
    """Warn of a comparison that none of the reported runs stands in."""
    compared = {
        run.id for side in (comparison.base, *(item.side for item in comparison.candidates)) for run in side.runs
    }
    if not compared & {document.run.id for subject in subjects for _, document in subject.parts}:
        tell(f"warning: the comparison is of other runs: {comparison.base.name} and others")


def read_comparison(path: Path, form: Format) -> ComparisonDocument:
    """Read what ``scaletest compare --format json`` printed. Raises RunDirectoryError when it is no such thing, UsageError for a form without room for it."""
    if form not in _WITH_COMPARISON:
        msg = f"--comparison: a report as {form} has no room for it, only {', '.join(_WITH_COMPARISON)}"
        raise UsageError(msg)
    hint = "Make one: scaletest compare … --format json"
    try:
        return ComparisonDocument.model_validate(read_object(path, RunDirectoryError, hint=hint))
    except (FileNotFoundError, NotADirectoryError):
        raise RunDirectoryError(path, "no such file", hint=hint) from None
    except ValueError:
        raise RunDirectoryError(path, "no comparison", hint=hint) from None
