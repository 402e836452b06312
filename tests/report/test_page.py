"""The HTML report without a browser: what stands in it, that nothing gets out of it, and that nothing gets in."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.journal import Record
from scaletest.report.build import build
from scaletest.report.matrix_build import build_matrix
from scaletest.report.page.chart_data import number
from scaletest.report.page.render import render_matrix_page, render_page
from scaletest.report.rundir import LoadedRun
from scaletest.report.said import flows, latency, saturation
from scaletest.report.said import run as of_run
from tests.analysis.journals import big_run, flow, record, run_info, small_run, step
from tests.analysis.outages import outage, outage_info
from tests.analysis.searches import measured_search, search_info
from tests.report.built import every_flow, loaded
from tests.report.comparison_documents import comparison
from tests.report.matrices import calm_run, write_matrix
from tests.report.test_profiles import CPU, GOROUTINES, HEAP, captured

_VOID = frozenset({"meta", "link", "br", "input", "img", "hr", "wbr"})


class Reader(HTMLParser):
    """Reads a page as a browser without scripts does; every element that is opened has to be closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self.ids += [attributes["id"] or ""] if "id" in attributes else []
        self.links += [attributes[name] or "" for name in ("href", "src", "action", "data") if name in attributes]
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif "style" not in self.open:
            self.text += data


def page(run: LoadedRun, **more: Any) -> Reader:
    return Reader(render_page(run, build(run), **more))


def data(read: Reader) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(read.scripts[0])
    return value


def test_verdict_objectives_and_story_stand_in_plain_html() -> None:
    read = page(loaded(small_run()))

    for words in (
        "fail",
        "flow.agents.error_rate < 1%",
        "4 %",
        "kube-apiserver killed out of memory at 4.00 GiB",
        "1.37.2",
    ):
        assert words in read.text
    assert len(read.ids) == len(set(read.ids))
    assert {link[1:] for link in read.links if link.startswith("#")} <= set(read.ids)


def test_a_reason_of_several_lines_stands_whole_below_its_first() -> None:
    told = record("run.end", 1.0, status="error", reason="kube-apiserver did not start\nits log:\nbind: address in use")
    read = page(loaded([record("run.start", 0.0), told]))

    assert read.text.count("kube-apiserver did not start") >= 2
    assert "its log:\nbind: address in use" in read.text


@pytest.mark.parametrize("count", [0, 1, 5, 10, 30, 100, 200, 250, 10_000])
def test_a_run_killed_anywhere_has_a_page(count: int) -> None:
    read = page(loaded(small_run()[:count]))

    assert ("incomplete" in read.text) == (count < 10_000)
    assert data(read)["range"][0] < data(read)["range"][1]


def test_nothing_is_loaded_from_anywhere() -> None:
    for read in (page(loaded(outage(), outage_info())), page(loaded(measured_search(), search_info()))):
        assert all(link.startswith("#") or link == "data:," for link in read.links)
        policy = next(item["content"] for tag, item in read.elements if tag == "meta" and "http-equiv" in item)
        assert policy is not None
        assert policy.startswith("default-src 'none'; ")


def test_the_policy_lets_the_pages_own_script_run_and_no_other() -> None:
    read = page(loaded(small_run()))
    policy = next(str(item["content"]) for tag, item in read.elements if tag == "meta" and "http-equiv" in item)
    (script,) = read.scripts[1:]

    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)


def test_no_text_of_a_run_becomes_markup_or_ends_the_data() -> None:
    hostile = "</script><script>alert(1)</script><!--<b onload=x>'\"&amp;"
    profile = {
        **run_info().profile,
        "name": hostile,
        "summary": hostile,
        "objectives": [hostile],
        hostile: {hostile: hostile},
    }
    told = [
        record("note", 8.0, level="warning", text=hostile),
        record("flow.sample", 18.0, "driver", flow=hostile, step=hostile, outcome=hostile, message=hostile),
        flow(18.0, hostile, steps={hostile: step([1000])}),
    ]
    info = run_info(id=hostile, profile=profile, versions={hostile: hostile}, facts={hostile: hostile}, argv=[hostile])
    read = page(loaded([*small_run(), *told], info))

    assert len(read.scripts) == 2
    assert "b" not in [tag for tag, _ in read.elements]
    assert read.text.count(hostile) > 10
    assert hostile in [
        lane["lines"][0]["name"].split(".<")[0] for lane in data(read)["lanes"]
    ] or hostile in json.dumps(data(read), ensure_ascii=False).replace('\\"', '"')


def test_whatever_the_terminal_report_says_of_a_run_stands_in_the_page() -> None:
    for run in (
        loaded(every_flow()),
        loaded(outage(helps=False), outage_info()),
        loaded(measured_search(), search_info()),
    ):
        document = build(run)
        text = page(run).text
        calls, found, incident = document.api_latency, document.saturation, document.incident
        told = [
            *of_run.about_verdict(document), *of_run.about_probes(document), *of_run.about_components(document),
            *of_run.about_api_servers(document), *of_run.about_machine(document),
            *(remark for flow in document.flows for remark in (*flows.about_flow(flow), *flows.about_steps(flow))),
            *(latency.about_latency(calls) if calls else ()),
            *(saturation.about_uncounted(found) if found else ()),
            *(of_run.about_incident(incident) if incident else ()),
        ]  # fmt: skip

        assert len(told) >= 5
        assert [remark.text for remark in told if remark.text not in text] == []


def test_official_slis_stand_beside_what_server_and_clients_took() -> None:
    read = page(loaded(small_run()))

    assert "api-latency" in read.ids
    for words in ("PATCH nodes/status", "1.98 s", "2.95 s", "p99 of the whole run", "3 of 4 kinds of call meet theirs"):
        assert words in read.text
    assert "api-latency" not in page(loaded(outage(), outage_info())).ids


def test_profiles_of_the_api_server_stand_in_the_page(tmp_path: Path) -> None:
    files = {"cpu": CPU, "heap": HEAP, "goroutine": GOROUTINES}
    records = [
        *measured_search(),
        *captured(tmp_path, files),
        *captured(tmp_path, {"cpu": None}, capture="later", step=None),
    ]
    run = dataclasses.replace(loaded(records, search_info()), directory=tmp_path)
    read = page(run)

    for words in ("at agents = 310", "json.appendCompact", "heap in use 8.00 MiB", "1,234 goroutines", "later: cpu"):
        assert words in read.text
    assert "hotspots" not in page(loaded(small_run())).ids


def test_charts_get_what_was_measured() -> None:
    found = data(page(loaded(outage(helps=False), outage_info())))
    lanes = {lane["title"]: lane for lane in found["lanes"]}

    assert [name for name, _, _ in found["phases"]] == ["baseline", "rollout", "rollback", "relief", "after"]
    assert {"Agents and connections", "Requests", "Latency p99", "Probes", "Nodes", "Memory", "CPU"} <= set(lanes)
    assert ["kube-apiserver", 4 * 2**30] in lanes["Memory"]["bounds"]
    rows = {row["name"]: row["parts"] for row in found["rows"]}
    assert len(rows["kube-apiserver"]) == 4
    assert {"phases", "flow telemetry", "SLOs", "operator as admin", "actions"} <= set(rows)
    assert any(level == "lever" for _, level, _ in found["events"])
    for row in rows.values():
        assert all(found["range"][0] <= start <= end <= found["range"][1] for start, end, _, _ in row)


def test_marks_of_a_probe_have_the_colour_of_its_line() -> None:
    found = data(page(loaded(outage(), outage_info())))
    probes = next(lane for lane in found["lanes"] if lane["title"] == "Probes")
    colors = {line["name"]: line["c"] for line in probes["lines"]}

    assert colors["operator[admin]"] == colors["operator[admin] failed"] != colors["operator[on-call]"]


def test_a_search_has_its_curve_its_interval_and_its_fit() -> None:
    found = data(page(loaded(measured_search(), search_info())))["saturation"]

    assert (found["capacity"], found["failsAt"]) == (300, 310)
    assert {point["outcome"] for point in found["points"]} == {"held", "failed"}
    (law,) = found["fits"]
    assert law["at"] == pytest.approx(307, rel=0.01)
    for point in found["points"]:
        nearest = min(law["points"], key=lambda at: abs(at[0] - point["x"]))
        if abs(nearest[0] - point["x"]) < 3:
            assert point["y"] == pytest.approx(nearest[1], rel=0.1)


def test_a_comparison_stands_in_the_page() -> None:
    read = page(loaded(small_run()), comparison=comparison())

    assert "comparison" in read.ids
    assert "+15 % to +27 %" in read.text
    assert "comparison" not in page(loaded(small_run())).ids


def test_a_matrix_has_a_page(tmp_path: Path) -> None:
    runs: dict[str, list[list[Record] | None]] = {"none": [small_run()], "block": [calm_run()], "drain": [None]}
    read = Reader(render_matrix_page(build_matrix(write_matrix(tmp_path / "m", runs))))

    for words in ("lever: none, block, drain", "2 of 3 runs finished", "flow.agents.error_rate < 1%"):
        assert words in read.text
    assert read.scripts == []


def test_a_ten_minute_run_of_7_000_nodes_takes_less_than_a_megabyte() -> None:
    run = loaded(big_run(minutes=10))
    text = render_page(run, build(run))

    assert len(text.encode()) < 1_000_000
    assert data(Reader(text))["grid"][2] == 600


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.0, 1), (0.0123456, 0.01235), (123.4567, 123.457), (1_234_567.0, 1_235_000), (float("nan"), None), (None, None)],
)
def test_numbers_of_charts_have_four_digits(value: float | None, written: float | None) -> None:
    assert number(value) == written
    assert re.fullmatch(r"[0-9.e-]+|null", json.dumps(number(value)))


def test_the_vendored_library_is_the_one_that_its_page_names() -> None:
    directory = Path(__file__).parents[2] / "scaletest/report/page/vendor/uplot"
    named = dict(re.findall(r"\| (\S+) \| ([0-9a-f]{64}) \|", (directory / "README.md").read_text(encoding="utf-8")))

    assert named == {
        name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in ("uPlot.iife.min.js", "uPlot.min.css")
    }  # fmt: skip
