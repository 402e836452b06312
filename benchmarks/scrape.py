"""What does a scrape of an API server take? ``python -m benchmarks.scrape [SERIES]``.

Takes the whole ``/metrics`` text of an idle API server of Kubernetes 1.37.2 (2.7 MB, 52 kinds of call) and makes a busy one's of it:
four times as many kinds of call unless told otherwise, half of which were made since the scrape before. Then reads as a
run does, with the record of the journal written and folded into the state of the report, for ten minutes of a scrape each 5 s. Says
what a read takes and how many bytes of journal it makes. Exits 1 when that takes more than 1 % of a core for one server: CPU, so that a
busy machine changes little. Receiving the text by TLS is not in it: ``scaletest run`` tells the whole under "own cost".
"""

from __future__ import annotations

import json
import lzma
import re
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from scaletest.analysis.state import RunState
from scaletest.observe.families import apiserver_fields
from scaletest.observe.histograms import LatencyDeltas

TEXT: Final = Path(__file__).parent.parent / "tests" / "observe" / "data" / "apiserver-1.37.2-whole.txt.xz"
EVERY_S: Final = 5.0
SCRAPES: Final = 120
LIMIT: Final = 0.01

_FAMILIES: Final = ("apiserver_request_duration_seconds", "apiserver_request_sli_duration_seconds")
_SERIES: Final = re.compile(rb"((?:\n\w+_bucket\{[^\n]*)+)(\n\w+_sum[^\n]*)(\n\w+_count\{[^\n]*\}) (\d+)")


def main() -> int:
    times = int(sys.argv[1]) if sys.argv[1:] else 4
    texts = busy(lzma.decompress(TEXT.read_bytes()), times)
    deltas, state = LatencyDeltas(), RunState()
    first = next(texts)
    state.apply({"v": 1, "t": 0.0, "kind": "metrics.apiserver", "server": "s", **apiserver_fields(first)})
    deltas.take(first)
    print(f"{len(first) / 1e6:.1f} MB, {first.count(b'_sli_duration_seconds_count')} kinds of call")
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_s, fold_s, gauge_bytes, latency_bytes, series = 0.0, 0.0, 0, 0, 0
    for number, text in enumerate(texts, 1):
        t = EVERY_S * number
        started_s = time.process_time()
        gauges = json.dumps(
            {"v": 1, "t": t, "kind": "metrics.apiserver", "server": "s", **apiserver_fields(text)},
            separators=(",", ":"),
        )
        families = deltas.take(text)
        latency = json.dumps(
            {"v": 1, "t": t, "kind": "metrics.latency", "server": "s", "families": families}, separators=(",", ":")
        )
        read_s += time.process_time() - started_s
        gauge_bytes += len(gauges)
        latency_bytes += len(latency)
        series += sum(len(item["grown"]) for item in (families or {}).values())
        records = [json.loads(gauges), json.loads(latency)]
        started_s = time.process_time()
        state.apply_all(records)
        fold_s += time.process_time() - started_s
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    share = (read_s + fold_s) / (EVERY_S * SCRAPES)
    print(
        f"a scrape: {1000 * read_s / SCRAPES:.1f} ms to read, {1000 * fold_s / SCRAPES:.2f} ms to fold: {share:.2%} of a core"
    )
    print(
        f"journal: {gauge_bytes / SCRAPES:,.0f} bytes of gauges, {latency_bytes / SCRAPES:,.0f} of {series / SCRAPES:.0f} histograms"
    )
    print(f"memory: {grown_kb / 1024:.1f} MiB for {SCRAPES} scrapes")
    return 0 if share < LIMIT else 1


def busy(text: bytes, times: int) -> Iterator[bytes]:
    """Yield the scrapes of a server with ``times`` as many kinds of call, half of which are made between two scrapes."""
    random = Random(1)
    heads: list[bytes] = []
    series: list[list[bytes]] = []
    for family in _FAMILIES:
        start = text.index(b"\n" + family.encode() + b"_bucket")
        end = text.index(b"\n#", start)
        heads.append(text[:start])
        found = list(_SERIES.finditer(text, start, end))
        copies = [
            b"\0".join(part.replace(b'resource="', b'resource="x%d' % copy) for part in match.groups()[:3])
            for copy in range(times)
            for match in found
        ]
        series.append(copies)
        text = text[end:]
    counts = [[0] * len(copies) for copies in series]
    for _ in range(SCRAPES + 1):
        parts: list[bytes] = []
        for head, copies, numbers in zip(heads, series, counts, strict=True):
            parts.append(head)
            for index, copy in enumerate(copies):
                numbers[index] += random.randrange(100) if random.random() < 0.5 else 0
                buckets, total, count = copy.split(b"\0")
                number = b" %d" % numbers[index]
                parts += [re.sub(rb" \d+(?=\n|$)", number, buckets), total, count, number]
        yield b"".join([*parts, text])


if __name__ == "__main__":
    sys.exit(main())
