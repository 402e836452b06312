"""Names of runs in forms that put several of them into one list of figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scaletest.report.document import Document

__all__ = ["run_names"]


def run_names(documents: Sequence[Document]) -> list[str]:
    """Return a name for each run, all different where the directories are: its id, or ``MATRIX/ID`` for a run of a matrix.

    The id of a run of a matrix is its variant, and which repeat of it. Directories are as they were named; they stand where names are equal.
    """
    directories = [document.run.directory for document in documents]
    names = [
        f"{document.run.matrix}/{document.run.id}" if document.run.matrix else document.run.id for document in documents
    ]
    often = Counter(names)
    told = [place if often[name] > 1 else name for name, place in zip(names, directories, strict=True)]
    # A matrix may be called as a directory is.
    return told if len(set(told)) == len(told) else directories
