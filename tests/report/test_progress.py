"""Progress lines of a run."""

from __future__ import annotations

import io
import re

import pytest

from scaletest.report.progress import ProgressLines, ProgressWriter
from tests.analysis.journals import flow, probe, process, record, small_run, step


def test_events_get_a_line_each_and_numbers_one_every_few_seconds() -> None:
    progress = ProgressLines()
    lines = [line for item in small_run() for line in progress.feed(item)]

    assert lines[:4] == [
        "    4.0 s  control plane ready after 3.90 s",
        "    5.0 s  seeded 50 nodes, 100 pods via etcd in 400 ms",
        "    6.0 s  50 nodes Ready after 1.00 s",
        "    7.0 s  phase baseline",
    ]
    assert lines[-1] == "   41.5 s  run finished"
    assert "   25.1 s  ! kube-apiserver killed out of memory at 4.00 GiB (cap 4.00 GiB)" in lines
    status = [line for line in lines if re.search(r"s  rollout: ", line)]
    assert len(status) == 2
    assert "of 50 agents" in status[0]


def test_a_status_line_holds_the_main_numbers() -> None:
    progress = ProgressLines(status_every_s=2.0)
    progress.feed(record("phase.start", 0.0, phase="load"))
    progress.feed(process(0.5, kube_apiserver=(1, 2**30, 1.0)))
    progress.feed(flow(1.0, target=100, started=40, steps={"list": step([100] * 30, [5] * 10)}))
    progress.feed(probe(1.2, 0.25))
    progress.feed(probe(1.3, 0.1, outcome="refused"))

    assert progress.feed(record("note.not", 2.0)) == [
        "    2.0 s  load: 40 of 100 agents, 20 req/s, 25 % failed, probes up to 250 ms, 1 failed, API server 1.00 GiB"
    ]
    assert progress.feed(probe(3.0, 1.0, outcome="timeout")) == [
        "    4.0 s  load: 40 of 100 agents, 0 req/s, 0 % failed, probes without an answer, API server 1.00 GiB"
    ]


def test_an_api_server_that_is_not_there_is_down() -> None:
    progress = ProgressLines(status_every_s=1.0)
    progress.feed(record("phase.start", 0.0, phase="load"))
    progress.feed(process(0.5, kube_apiserver=(1, 2**30, 1.0)))
    progress.feed(process(0.9, etcd=(1, 2**30, 1.0)))

    assert progress.feed(record("x", 1.0)) == ["    1.0 s  load: API server down"]


def test_a_stopped_flow_is_not_counted_any_more() -> None:
    progress = ProgressLines(status_every_s=1.0)
    progress.feed(record("phase.start", 0.0, phase="load"))
    progress.feed(flow(0.5, target=100, started=40, steps={}))
    progress.feed(record("flow.stop", 0.6, flow="agents"))

    assert progress.feed(record("x", 1.0)) == ["    1.0 s  load: API server down"]


def test_a_flow_that_is_started_again_is_counted_again() -> None:
    progress = ProgressLines(status_every_s=1.0)
    progress.feed(record("phase.start", 0.0, phase="search"))
    progress.feed(flow(0.5, target=100, started=100, steps={}))
    progress.feed(record("flow.stop", 0.6, flow="agents"))
    progress.feed(record("flow.start", 0.7, flow="agents", target=50, unit="agents"))
    progress.feed(flow(0.9, target=50, started=50, steps={}))

    assert progress.feed(record("x", 1.0)) == [
        "    1.0 s  search: 50 of 50 agents, 0 req/s, 0 % failed, API server down"
    ]


@pytest.mark.parametrize(
    "broken", [{}, {"t": 1}, {"kind": "flow", "t": 1.0}, {"kind": "process", "t": "x"}, {"kind": "probe", "t": 1.0}]
)
def test_a_malformed_record_gives_no_line(broken: dict[str, object]) -> None:
    assert ProgressLines().feed(broken) == []


def test_the_writer_writes_lines_and_survives_a_stream_that_went_away() -> None:
    stream = io.StringIO()
    writer = ProgressWriter(stream)
    writer(record("cluster.ready", 4.0, seconds=1.0))
    assert stream.getvalue() == "    4.0 s  control plane ready after 1.00 s\n"

    stream.close()
    writer(record("cluster.ready", 4.0, seconds=1.0))
    writer(record("cluster.ready", 5.0, seconds=1.0))


def test_the_writer_writes_ascii_where_nothing_else_can_be_shown() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    ProgressWriter(stream)(record("cluster.ready", 4.0, seconds=0.0001))
    stream.flush()

    assert raw.getvalue() == b"    4.0 s  control plane ready after 100 us\n"


def test_no_text_of_a_record_steers_the_terminal() -> None:
    stream = io.StringIO()
    ProgressWriter(stream)(record("note", 1.0, level="info", text="a\x1b[2J\u202eb"))

    assert "    1.0 s  a\ufffd[2J\ufffdb\n" == stream.getvalue()
