"""Where the API server's time went: from profiles in a run directory to the report; golden texts for the section."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scaletest.analysis.state import RunState
from scaletest.analysis.verdict import judge
from scaletest.core.journal import Record
from scaletest.core.rundir import RunInfo
from scaletest.report.build import build
from scaletest.report.document import Document
from scaletest.report.json_report import render_json
from scaletest.report.rundir import JournalHealth, LoadedRun
from scaletest.report.terminal import render
from tests.analysis.journals import record, run_info
from tests.analysis.profiles import cpu_profile, goroutine_profile, heap_profile
from tests.analysis.searches import measured_search, search_info
from tests.report.golden import check_golden
from tests.report.schemas import valid

RECORDED = Path(__file__).parents[1] / "analysis" / "data"
ONE = "https://127.0.0.1:31001"
TWO = "https://127.0.0.1:31002"
LIST = "k8s.io/apiserver/pkg/storage/cacher.(*Cacher).GetList"

CPU = cpu_profile([
    (["runtime.scanObject", "runtime.gcDrain", "runtime.gcBgMarkWorker"], 3.0),
    (["encoding/json.appendCompact", "encoding/json.marshalerEncoder", "net/http.(*conn).serve"], 5.0),
    (["crypto/internal/fips140/aes/gcm.gcmAesEnc", "crypto/tls.(*Conn).Write", "net/http.(*conn).serve"], 1.0),
    ([LIST, "net/http.(*conn).serve"], 1.0),
])  # fmt: skip
HEAP = heap_profile([(["encoding/json.Marshal", LIST], 6 * 2**20), ([LIST], 2 * 2**20)])
GOROUTINES = goroutine_profile([
    (["runtime.gopark", "net.(*conn).Read", "net/http.(*conn).serve"], 1_200), (["runtime.gopark", LIST], 34),
])  # fmt: skip


def captured(
    run_dir: Path, files: Mapping[str, bytes | None], *, capture: str = "step-11", step: int | None = 11,
    server: str = ONE, t: float = 660.0,
) -> list[Record]:  # fmt: skip
    """Write profiles as a capture does; None is one that did not come."""
    records = []
    for profile, data in files.items():
        name = f"profiles/{capture}-{server[-5:]}-{profile}.pb.gz"
        if data is not None:
            (run_dir / name).parent.mkdir(exist_ok=True)
            (run_dir / name).write_bytes(data)
        fields: dict[str, Any] = {
            "capture": capture, "step": step, "profile": profile, "server": server, "ok": data is not None,
            "path": None if data is None else name, "outcome": "ok" if data is not None else "timeout", "reason": None,
            "bytes": data and len(data), "seconds": 10 if profile == "cpu" else 0, "latency_s": 10.02 if profile == "cpu" else 0.01,
        }  # fmt: skip
        records.append(record("pprof", t, **fields))
    return records


def document(run_dir: Path, *records: Record, info: RunInfo | None = None, search: bool = True) -> Document:
    state = RunState().apply_all([*(measured_search() if search else ()), *records])
    info = info or (search_info() if search else run_info())
    return build(LoadedRun(run_dir, info, state, judge(info, state), JournalHealth(state.records, 0, 0, growing=False)))


def drawn(found: Document, width: int = 80) -> str:
    text = render(found, width=width)
    start = text.index("Where the API server's time went")
    return text[start : text.index("\n\n", start) + 1]


@pytest.mark.parametrize("width", [80, 140])
def test_golden(tmp_path: Path, width: int) -> None:
    files = {what: (RECORDED / f"apiserver-1.37.2-{what}.pb.gz").read_bytes() for what in ("cpu", "heap", "goroutine")}
    actual = drawn(document(tmp_path, *captured(tmp_path, files)), width)

    check_golden(f"profiles-{width}.txt", actual)
    assert max(map(len, actual.splitlines())) <= width


def test_the_report_has_the_largest_functions_groups_and_goroutines(tmp_path: Path) -> None:
    found = document(tmp_path, *captured(tmp_path, {"cpu": CPU, "heap": HEAP, "goroutine": GOROUTINES}))
    (report,) = found.profiles

    valid(render_json(found), "report")
    assert (11, "310", [ONE], []) == (report.step, report.load, report.servers, report.problems)
    assert report.took_s == pytest.approx(10.04)
    assert report.cpu is not None
    assert (10.0, 10.0, 1.0) == pytest.approx((report.cpu.cpu_s, report.cpu.duration_s, report.cpu.cores))
    assert {"serialization": 0.5, "garbage collection": 0.3, "TLS": 0.1, "watch cache": 0.1} == {
        item.group: pytest.approx(item.share) for item in report.cpu.groups
    }
    top, whole = report.cpu.functions[0], report.cpu.cumulative[0]
    assert ("encoding/json.appendCompact", "net/http.(*conn).serve") == (top.function, whole.function)
    assert (5.0, 0.5, 7.0, 0.0) == pytest.approx((top.flat, top.flat_share, whole.cum, whole.flat))
    assert report.heap is not None
    assert (8 * 2**20, 0.25, 1.0) == (
        report.heap.bytes,
        report.heap.functions[1].flat_share,
        report.heap.functions[1].cum_share,
    )
    assert report.goroutines is not None
    assert [1_200, 34] == [item.count for item in report.goroutines.waiting]
    assert "net.(*conn).Read" == report.goroutines.waiting[0].waits_in


def test_profiles_of_several_servers_are_added_up(tmp_path: Path) -> None:
    records = [
        item
        for server in (ONE, TWO)
        for item in captured(tmp_path, {"cpu": CPU, "goroutine": GOROUTINES}, server=server)
    ]
    found = document(tmp_path, *records)

    assert found.profiles[0].cpu is not None
    assert (20.0, 2.0) == pytest.approx((found.profiles[0].cpu.cpu_s, found.profiles[0].cpu.cores))
    assert found.profiles[0].goroutines is not None
    assert 2_468 == found.profiles[0].goroutines.count
    assert found.profiles[0].took_s == pytest.approx(10.03)
    assert "at agents = 310\n  20.0 s of CPU of 2 API servers in 10.0 s: serialization 50 %" in drawn(found)


def test_of_several_captures_that_of_the_smallest_load_that_failed_is_drawn(tmp_path: Path) -> None:
    records = [
        *captured(tmp_path, {"cpu": CPU}, capture="step-7", step=7),
        *captured(tmp_path, {"cpu": CPU}, capture="step-12", step=12),
    ]
    found = document(tmp_path, *records)

    assert ["310", "375"] == [item.load for item in found.profiles]
    assert "agents = 310" in drawn(found)


def test_a_capture_by_an_action_says_when_it_was(tmp_path: Path) -> None:
    records = captured(tmp_path, {"cpu": CPU}, capture="capture-1", step=None, t=75.0)
    found = document(tmp_path, *records, search=False)

    assert (None, None) == (found.profiles[0].step, found.profiles[0].load)
    assert "at 75.0 s\n  10.0 s of CPU in 10.0 s: serialization" in drawn(found)
    assert "judged" not in drawn(found)


def test_what_could_not_be_captured_or_read_is_said(tmp_path: Path) -> None:
    records = captured(tmp_path, {"cpu": None, "heap": HEAP[:-20], "goroutine": HEAP})
    (tmp_path / records[1]["path"]).write_bytes(HEAP[:-20])
    found = document(tmp_path, *records)
    (report,) = found.profiles

    assert (None, None, None) == (report.cpu, report.heap, report.goroutines)
    assert f"cpu of {ONE}: timeout" == report.problems[0]
    assert "step-11-31001-heap.pb.gz cannot be read: no gzip, or cut short" in report.problems[1]
    assert "no samples of type goroutine" in report.problems[2]
    text = " ".join(drawn(found).split())
    assert all(problem in text for problem in report.problems)


def test_a_file_that_is_gone_or_lies_elsewhere_is_not_read(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (tmp_path / "secret").write_bytes(CPU)
    records = captured(run_dir, {"cpu": CPU, "heap": HEAP})
    (run_dir / records[1]["path"]).unlink()
    records[0]["path"] = "../secret"

    assert [
        "../secret cannot be read: it lies outside the run directory",
        "profiles/step-11-31001-heap.pb.gz cannot be read: No such file or directory",
    ] == document(run_dir, *records).profiles[0].problems


def test_a_name_that_is_too_long_is_cut_in_its_middle(tmp_path: Path) -> None:
    name = f"a.b/c/handlers.{'x' * 60}End"
    found = document(tmp_path, *captured(tmp_path, {"cpu": cpu_profile([([name], 1.0)])}))

    (row,) = (line for line in drawn(found).splitlines() if "handlers" in line)
    assert "handlers.xxxxxxx…xx" in row
    assert "End " in row
    assert len(row) <= 80


def test_a_run_without_captures_has_no_section(tmp_path: Path) -> None:
    found = document(tmp_path)

    assert [] == found.profiles
    assert "time went" not in render(found, width=80)


def test_a_record_of_an_unknown_profile_is_malformed(tmp_path: Path) -> None:
    (odd,) = captured(tmp_path, {"trace": None})

    assert {"pprof": 1} == RunState().apply_all([odd]).malformed
