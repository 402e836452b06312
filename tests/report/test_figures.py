"""Figures for monitoring and trend charts: OpenMetrics text and github-action-benchmark's JSON."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from scaletest.report.benchmark_json import render_benchmark
from scaletest.report.build import build
from scaletest.report.document import Document
from scaletest.report.openmetrics import render_openmetrics
from scaletest.report.run_names import run_names
from scaletest.report.rundir import load_run
from tests.analysis.journals import record, run_info, small_run
from tests.analysis.searches import measured_search, search_info
from tests.report.built import document
from tests.report.matrices import calm_run, write_matrix

_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Read OpenMetrics text as strictly as its parsers do. Each family stands together, no sample comes twice."""
    assert text.endswith("# EOF\n")
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    family, done = "", set()
    for line in text.removesuffix("# EOF\n").split("\n")[:-1]:
        if line.startswith("# "):
            _, kind, name, rest = line.split(" ", 3)
            assert kind in {"HELP", "TYPE", "UNIT"}
            assert kind != "TYPE" or rest == "gauge"
            assert kind != "UNIT" or name.endswith(f"_{rest}")
            if name != family:
                assert name not in done
                done.add(family)
                family = name
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] == family
        labels = tuple(_LABEL.findall(match[2] or ""))
        assert ",".join(f'{name}="{value}"' for name, value in labels) == (match[2] or "")
        assert len({name for name, _ in labels}) == len(labels)
        assert (match[1], labels) not in found, line
        found[match[1], labels] = float(match[3].replace("Inf", "inf"))
    return found


def value(found: dict[tuple[str, tuple[tuple[str, str], ...]], float], name: str, **labels: str) -> float:
    (only,) = (
        number for (metric, has), number in found.items() if metric == name and labels.items() <= dict(has).items()
    )
    return only


def test_openmetrics_has_the_main_numbers_in_base_units() -> None:
    found = samples(render_openmetrics([document(small_run())]))

    assert value(found, "scaletest_run_verdict", verdict="fail") == 1.0
    assert value(found, "scaletest_run_verdict", verdict="pass") == 0.0
    assert value(found, "scaletest_run_exit_code") == 99.0
    assert value(found, "scaletest_objective_value", objective="flow.agents.error_rate < 1%") == 0.04
    assert value(found, "scaletest_component_oom_kills", component="kube-apiserver") == 1.0
    assert 0.02 < value(found, "scaletest_flow_latency_seconds", step="list-pods", quantile="0.99") < 0.05
    assert math.isinf(value(found, "scaletest_probe_latency_seconds", identity="admin", quantile="0.99"))


def test_several_runs_are_told_apart() -> None:
    one, other = document(small_run(), run_info(id="one")), document(calm_run(), run_info(id="other"))
    found = samples(render_openmetrics([one, other]))

    assert value(found, "scaletest_run_exit_code", run="one") == 99.0
    assert value(found, "scaletest_run_exit_code", run="other") == 99.0


def test_runs_of_equal_name_are_told_apart_by_matrix_or_directory(tmp_path: Path) -> None:
    def matrix(name: str, matrix_id: str) -> list[Document]:
        directory = write_matrix(tmp_path / name, {"none": [calm_run()], "drain": [calm_run()]}, id=matrix_id)
        return [build(load_run(directory / f"lever={lever}")) for lever in ("none", "drain")]

    one, other, same = matrix("a/m", "one"), matrix("b/m", "other"), matrix("c/m", "other")

    assert run_names([*one, *other]) == ["one/lever=none", "one/lever=drain", "other/lever=none", "other/lever=drain"]
    assert run_names([*one, *other, *same])[1:3] == ["one/lever=drain", str(tmp_path / "b" / "m" / "lever=none")]
    samples(render_openmetrics([*one, *other, *same]))


def test_a_run_that_measured_nothing_has_metrics_too() -> None:
    found = samples(render_openmetrics([document([])]))

    assert value(found, "scaletest_run_verdict", verdict="incomplete") == 1.0


@given(st.text(max_size=40))
def test_any_name_is_a_label_that_can_be_read(name: str) -> None:
    profile = {**run_info().profile, "name": name, "objectives": [name, name]}
    samples(render_openmetrics([document([], run_info(profile=profile, versions={name: "1"}))]))


def test_figures_go_into_the_file_of_their_direction() -> None:
    run = document(calm_run())
    smaller = {item["name"]: item for item in json.loads(render_benchmark([run], "smaller"))}
    bigger = {item["name"]: item for item in json.loads(render_benchmark([run], "bigger"))}

    assert smaller["smoke: flow.agents.list-pods.p99"]["unit"] == "seconds"
    assert "smoke: flow.agents.list-pods.rate" in bigger
    assert not set(smaller) & set(bigger)
    assert all(math.isfinite(item["value"]) for item in [*smaller.values(), *bigger.values()])


def test_figures_of_a_matrix_have_the_variant_in_their_names(tmp_path: Path) -> None:
    directory = write_matrix(tmp_path / "m", {"none": [calm_run()] * 2, "drain": [calm_run()] * 2})
    runs = [build(load_run(path)) for path in sorted(directory.glob("lever=*"))]
    names = [item["name"] for item in json.loads(render_benchmark(runs, "smaller"))]

    assert {"smoke lever=none-r1: flow.agents.list-pods.p99", "smoke lever=drain-r2: flow.agents.list-pods.p99"} < set(
        names
    )
    assert len(set(names)) == len(names)


def test_the_saturation_point_is_a_figure() -> None:
    finished = [*measured_search(), record("run.end", 999.0, status="finished", reason="")]
    (found,) = (
        item
        for item in json.loads(render_benchmark([document(finished, search_info())], "bigger"))
        if item["name"] == "saturation-agents: search.capacity"
    )

    assert (found["value"], found["unit"]) == (300.0, "agents")


def test_a_run_that_was_cut_short_is_no_point_of_a_trend() -> None:
    assert json.loads(render_benchmark([document(small_run(finished=False))], "smaller")) == []
