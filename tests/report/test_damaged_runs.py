"""Run directories with anything in any field of their files: refused with a reason, or reported in every form; never an error of ours."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.core.errors import RunDirectoryError
from scaletest.core.journal import JOURNAL_NAME, Record
from scaletest.core.rundir import RUN_INFO_NAME
from scaletest.report.build import build
from scaletest.report.csv_report import render_csv
from scaletest.report.json_report import render_json
from scaletest.report.junit import render_junit
from scaletest.report.markdown import render_markdown
from scaletest.report.openmetrics import render_openmetrics
from scaletest.report.page.render import render_page
from scaletest.report.rundir import LoadedRun, load_run
from scaletest.report.sides import read_run
from scaletest.report.terminal import render
from tests.analysis.journals import run_info, write_run
from tests.report.built import every_flow

JUNK: Final[list[Any]] = [
    None, True, -5, 0.5, 2**63, 1e18, float("nan"), float("inf"), 10**300, "", "text", "\x1b[2J", "\ud800", [], [1], ["a"], {}, {"a": 1},
    {"a": {"b": []}},
]  # fmt: skip

WHOLE: Final = json.dumps(asdict(run_info()))
RECORDS: Final = every_flow()
SHORT: Final = [
    item for item in RECORDS if item["t"] < 9 or 17 <= item["t"] < 19 or 25 <= item["t"] < 27 or item["t"] > 39
]
"""Every kind of record, and what the phases need."""


def render_all(run: LoadedRun) -> None:
    document = build(run)
    for text in (
        render(document, width=100), render_json(document), render_markdown([document]), render_junit([document]),
        render_openmetrics([document]), render_page(run, document), render_csv([(document.run.id, run.state)]),
    ):  # fmt: skip
        text.encode()


def damage(data: st.DataObject, whole: Any) -> None:
    """Put junk in the place of something within a value."""
    place = whole
    key = data.draw(st.sampled_from(sorted(place)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.integers(0, 3)):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[key] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", SHORT)


def loaded(directory: Path) -> LoadedRun | None:
    try:
        return load_run(directory)
    except RunDirectoryError:
        return None


@given(st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_junk_in_any_field_of_run_json_is_refused_or_reported(directory: Path, data: st.DataObject) -> None:
    info = json.loads(WHOLE)
    for _ in range(data.draw(st.integers(1, 3))):
        damage(data, info)
    (directory / RUN_INFO_NAME).write_text(json.dumps(info))
    run = loaded(directory)
    if run is not None:
        render_all(run)
        read_run(directory)


@given(st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_junk_in_any_field_of_a_journal_is_left_out_or_reported(directory: Path, data: st.DataObject) -> None:
    records = copy.deepcopy(SHORT)
    firsts: dict[str, Record] = {item["kind"]: item for item in records}
    for kind in data.draw(st.lists(st.sampled_from(sorted(firsts)), min_size=1, max_size=5)):
        for item in records:
            # All of a kind that is the same in each: one alone would be hidden by the others.
            if item["kind"] == kind:
                damage(data, item)
                break
    (directory / JOURNAL_NAME).write_text("".join(json.dumps(item) + "\n" for item in records))
    run = loaded(directory)
    if run is not None:
        render_all(run)
        read_run(directory)


@pytest.mark.parametrize(
    "cut",
    [lambda raw: b"", lambda raw: raw[:1], lambda raw: raw[: len(raw) // 2], lambda raw: bytes(range(256)) * 20,
     lambda raw: raw[:5000] + b"\n" + bytes(range(256)) + b"\n" + raw[5000:], lambda raw: b"[" * 100_000 + b"\n" + raw],
    ids=["empty", "byte", "half", "binary", "binary within", "deep line"],
)  # fmt: skip
@pytest.mark.parametrize("name", [RUN_INFO_NAME, JOURNAL_NAME])
def test_a_file_cut_or_overwritten_is_refused_or_reported(
    directory: Path, name: str, cut: Callable[[bytes], bytes]
) -> None:
    path = directory / name
    path.write_bytes(cut(path.read_bytes()))
    run = loaded(directory)
    if run is not None:
        render_all(run)
