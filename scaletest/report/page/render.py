"""Render a run, or a matrix, as one HTML file.

All that decides stands in plain HTML: the page says it without JavaScript too. Styles, scripts and data are inlined, and the page's own
policy lets nothing else in: no request can leave it, and no text of a run can become a script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scaletest import __version__
from scaletest.analysis.hotspots import short_name
from scaletest.profile.places import dotted, leaves
from scaletest.report import drawing, glyphs
from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.document import Document
from scaletest.report.matrix_document import MatrixDocument
from scaletest.report.page.chart_data import chart_data
from scaletest.report.ranking import rank_factor
from scaletest.report.rundir import LoadedRun
from scaletest.report.said import flows, latency, matrix, profiles, run, saturation

__all__ = ["render_matrix_page", "render_page"]

_HERE: Final = Path(__file__).parent
_STYLES: Final = ("vendor/uplot/uPlot.min.css", "page.css")
_SCRIPTS: Final = ("vendor/uplot/uPlot.iife.min.js", "format.js", "charts.js", "timeline.js", "latency.js", "saturation.js", "page.js")  # fmt: skip

_PIECES: Final = re.compile(r"[^.:\[\]_/]*[.:\[\]_/]?")


def render_page(loaded: LoadedRun, document: Document, comparison: ComparisonDocument | None = None) -> str:
    """Return the page of a run; with a comparison that the run is part of, that too."""
    return _page(
        "run.html.j2",
        title=f"{document.verdict.outcome}: {document.run.profile}, {document.run.id}",
        document=document,
        comparison=comparison,
        profile=_profile(loaded),
        data=_data(chart_data(loaded.state, document)),
        scripts=_scripts(),
    )


def render_matrix_page(document: MatrixDocument) -> str:
    """Return the page of a matrix: the table of its variants."""
    title = f"matrix: {document.matrix.profile}, {document.matrix.id}"
    return _page("matrix.html.j2", title=title, matrix=document, scripts=Markup())


def _page(template: str, **values: Any) -> str:
    scripts: Markup = values["scripts"]
    digest = base64.b64encode(hashlib.sha256(scripts.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if scripts else "'none'"
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; form-action 'none'"
    page: str = (
        _environment()
        .get_template(template)
        .render(policy=policy, version=__version__, styles=_inlined(_STYLES), **values)
    )
    return page


def _scripts() -> Markup:
    """Return all scripts as the text of one element: one scope, and one digest for the policy."""
    vendor, *own = _SCRIPTS
    # Backslash escapes do not change a script, and "</script" within it would end the element.
    text = f'{_read(vendor)}\n(() => {{\n"use strict";\n{"".join(_read(name) for name in own)}}})();\n'
    return Markup(text.replace("</", "<\\/"))  # noqa: S704 -- our own files


def _inlined(names: tuple[str, ...]) -> Markup:
    return Markup("\n".join(_read(name) for name in names))  # noqa: S704 -- our own files


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _data(value: Any) -> Markup:
    """Return JSON that cannot end the element that it stands in, whatever its strings say."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 -- no "<" is left


def _profile(loaded: LoadedRun) -> list[tuple[str, str, str]]:
    """Return each value of the resolved profile, and where it comes from."""
    found = ((dotted(path), value) for path, value in leaves(dict(loaded.info.profile)))
    return [(key, _value(value), str(loaded.info.provenance.get(key, ""))) for key, value in found]


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "duration": glyphs.duration_text,
        "size": glyphs.bytes_text,
        "share": glyphs.share_text,
        "count": drawing.rate,
        "cores": drawing.cores,
        "breakable": _breakable,
        "capitalized": _capitalized,
        "clock": _clock,
        "since": _since,
    }
    environment.filters.update(filters)
    environment.globals.update(
        answer=glyphs.answer_text,
        bytes=glyphs.bytes_text,
        rank_factor=rank_factor,
        said={
            "flows": flows,
            "latency": latency,
            "matrix": matrix,
            "profiles": profiles,
            "run": run,
            "saturation": saturation,
        },
        seconds=glyphs.duration_text,
        short_name=short_name,
    )
    return environment


def _breakable(text: str) -> Markup:
    """Let a line end within a key or an objective: after a dot, a colon, a bracket or an underline."""
    return Markup("<wbr>").join(_PIECES.findall(text))


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _clock(seconds: float | None) -> str:
    """Write a time of the run as minutes and seconds, as the axes do."""
    if seconds is None:
        return glyphs.NOTHING
    tenths = math.floor(seconds * 10 + 0.5)
    minutes, rest = divmod(tenths, 600)
    return f"{minutes}:{rest / 10:04.1f}"


def _since(seconds: float | None) -> str:
    return "" if seconds is None else f"T{round(seconds):+d} s"
