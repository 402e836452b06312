"""Figures for github-action-benchmark: its ``customSmallerIsBetter`` and ``customBiggerIsBetter`` files.

The action takes a list of objects with ``name``, ``unit`` and ``value`` (``extra`` is shown on hover), and one direction for each file
(https://github.com/benchmark-action/github-action-benchmark). Of a run that is invalid or was cut short there is nothing to chart: the list is empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from scaletest.report.document import Document
from scaletest.report.figures import Better, figures

__all__ = ["render_benchmark"]


def _trend(document: Document) -> str:
    """Return what stays the same from run to run: the profile, and of a run of a matrix its id there: the variant, and which repeat."""
    run = document.run
    return run.profile if run.matrix is None else f"{run.profile} {run.id}"


def render_benchmark(documents: Iterable[Document], better: Better) -> str:
    """Write the figures of one direction as a JSON list that ends in a newline."""
    points = [
        {
            "name": f"{_trend(document)}: {figure.subject}.{figure.measure}",
            "unit": figure.unit,
            "value": figure.value,
            "extra": f"run {document.run.id}\nkubernetes {document.run.versions.get('kubernetes', '?')}",
        }
        for document in documents
        if document.verdict.outcome in {"pass", "fail"}
        for figure in figures(document)
        if figure.better == better
    ]
    return json.dumps(points, indent=2, ensure_ascii=False) + "\n"
