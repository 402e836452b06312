from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.observe.histograms import LatencyDeltas
from scaletest.observe.promtext import select

WHOLE = Path(__file__).parent / "data" / "apiserver-1.37.2-whole.txt.xz"
SLI = "apiserver_request_sli_duration_seconds"
REQUEST = "apiserver_request_duration_seconds"
LE_S = (0.05, 0.1, 1.0)
LIST = 'component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"'

Counts = Mapping[str, Iterable[int]]


def metrics(series: Counts, *, start: float = 1.0, family: str = SLI) -> bytes:
    """A scrape: by labels the count of each bucket, the infinite one last."""
    lines = [f"# TYPE {family} histogram"] if series else []
    for labels, counts in sorted(series.items()):
        total = 0
        for bound, count in zip([*LE_S, "+Inf"], counts, strict=True):
            total += count
            lines.append(
                f'{family}_bucket{{{labels},le="{bound:g}"}} {total}'
                if bound != "+Inf"
                else f'{family}_bucket{{{labels},le="+Inf"}} {total}'
            )
        lines += [f"{family}_sum{{{labels}}} 0.5", f"{family}_count{{{labels}}} {total}"]
    lines += ["# TYPE process_start_time_seconds gauge", f"process_start_time_seconds {start}", ""]
    return "\n".join(lines).encode()


def grown(found: Mapping[str, Any] | None, family: str = "sli") -> dict[str, list[int]]:
    assert found is not None
    return dict(found[family]["grown"]) if family in found else {}


def test_only_what_grew_is_told_and_only_from_the_second_scrape_on() -> None:
    other = LIST.replace("pods", "nodes")
    deltas = LatencyDeltas()

    assert deltas.take(metrics({LIST: [5, 0, 0, 1], other: [3, 0, 0, 0]})) is None
    found = deltas.take(metrics({LIST: [5, 2, 0, 4], other: [3, 0, 0, 0]}))

    assert found == {"sli": {"le_s": list(LE_S), "grown": {"LIST pods cluster": [1, 2, 3, 3]}}}
    assert deltas.take(metrics({LIST: [5, 2, 0, 4], other: [3, 0, 0, 0]})) == {}


def test_a_series_that_is_new_counts_from_nothing() -> None:
    deltas = LatencyDeltas()
    deltas.take(metrics({}))

    assert grown(deltas.take(metrics({LIST: [1, 0, 2, 0]}))) == {"LIST pods cluster": [0, 1, 2, 2]}


def test_a_restarted_server_counts_from_nothing_also_where_its_counts_look_grown() -> None:
    deltas = LatencyDeltas()
    deltas.take(metrics({LIST: [5, 0, 0, 0]}, start=1.0))

    assert grown(deltas.take(metrics({LIST: [6, 0, 0, 0]}, start=2.0))) == {"LIST pods cluster": [0, 6]}


@pytest.mark.parametrize(
    "labels",
    [
        LIST.replace('"LIST"', '"WATCH"'),
        LIST.replace('verb="LIST"', 'verb="CONNECT"').replace('subresource=""', 'subresource="exec"'),
        LIST.replace('scope="cluster"', 'scope=""').replace('resource="pods"', 'resource=""'),
        LIST.replace('component="apiserver"', 'component="apiserver",dry_run="All"'),
    ],
)
def test_streams_dry_runs_and_what_is_about_no_resource_are_left_out(labels: str) -> None:
    deltas = LatencyDeltas()
    deltas.take(metrics({}))

    assert grown(deltas.take(metrics({labels: [1, 1, 1, 1]}))) == {}


def test_versions_of_one_resource_are_added_up() -> None:
    deltas = LatencyDeltas()
    deltas.take(metrics({}))

    found = deltas.take(metrics({LIST: [1, 0, 0, 0], LIST.replace('"v1"', '"v2"'): [2, 0, 0, 7]}))
    assert grown(found) == {"LIST pods cluster": [0, 3, 3, 7]}


def test_lines_that_do_not_stand_in_order_are_an_error_and_no_wrong_figure() -> None:
    text = metrics({LIST: [1, 0, 0, 0]}).replace(b'le="+Inf"', b'le="2"')
    deltas = LatencyDeltas()

    with pytest.raises(ValueError, match="buckets do not stand before their count"):
        deltas.take(text)


_STEP = st.tuples(
    st.booleans(),
    st.dictionaries(st.sampled_from(["pods", "nodes", "leases"]), st.lists(st.integers(0, 5), min_size=4, max_size=4)),
)


@given(st.lists(_STEP, max_size=8))
def test_increases_add_up_to_what_was_counted(steps: list[tuple[bool, dict[str, list[int]]]]) -> None:
    deltas = LatencyDeltas()
    deltas.take(metrics({}))
    server: dict[str, list[int]] = {}
    truth: Counter[tuple[str, int]] = Counter()
    told: Counter[tuple[str, int]] = Counter()
    start = 1.0
    for restarts, calls in steps:
        if restarts:
            server, start = {}, start + 1
        for resource, counts in calls.items():
            before = server.setdefault(resource, [0] * 4)
            server[resource] = [old + new for old, new in zip(before, counts, strict=True)]
            truth.update({(f"LIST {resource} cluster", index): count for index, count in enumerate(counts)})
        text = metrics({LIST.replace("pods", resource): counts for resource, counts in server.items()}, start=start)
        for call, packed in grown(deltas.take(text)).items():
            told.update({(call, index): count for index, count in zip(packed[::2], packed[1::2], strict=True)})

    assert +told == +truth


@pytest.mark.parametrize(("family", "name"), [("sli", SLI), ("request", REQUEST)])
def test_a_whole_scrape_is_read_as_by_the_general_parser(family: str, name: str) -> None:
    text = lzma.decompress(WHOLE.read_bytes())
    deltas = LatencyDeltas()
    deltas.take(b"process_start_time_seconds 1\n")

    found = grown(deltas.take(text), family)

    counts: Counter[str] = Counter()
    for sample in select(text, (f"{name}_count",)):
        labels = sample.labels
        if labels["scope"]:
            group = f".{labels['group']}" if labels["group"] else ""
            subresource = f"/{labels['subresource']}" if labels["subresource"] else ""
            counts[f"{labels['verb']} {labels['resource']}{group}{subresource} {labels['scope']}"] += round(
                sample.value
            )
    assert {call: sum(packed[1::2]) for call, packed in found.items()} == counts
    assert len(counts) > 40


def test_a_whole_scrape_has_watch_lists_and_waits() -> None:
    deltas = LatencyDeltas()
    deltas.take(b"process_start_time_seconds 1\n")

    found = deltas.take(lzma.decompress(WHOLE.read_bytes()))

    assert grown(found, "wait") == {"global-default": [1, 1]}
    assert sum(grown(found, "watch_list")["WATCHLIST pods cluster"][1::2]) > 0
