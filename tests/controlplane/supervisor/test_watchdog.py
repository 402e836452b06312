from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane.supervisor.watchdog import poll_interval_s, resident_bytes, unreclaimable_bytes

PAGE = os.sysconf("SC_PAGE_SIZE")


def test_it_looks_more_often_close_to_the_cap() -> None:
    assert [poll_interval_s(used, 100) for used in (0, 70, 71, 99)] == [0.02, 0.02, 0.005, 0.005]


@given(st.integers(300 << 20, 64 << 30), st.floats(0, 1))
def test_a_gigabyte_a_second_is_caught_within_a_tenth_of_the_cap(cap_bytes: int, share: float) -> None:
    used = cap_bytes * share

    assert used + poll_interval_s(int(used), cap_bytes) * 1e9 < cap_bytes * 1.1


def test_file_pages_do_not_count() -> None:
    status = b"Name:\tetcd\nVmRSS:\t  700 kB\nRssAnon:\t     100 kB\nRssFile:\t     550 kB\nRssShmem:\t      50 kB\n"

    assert unreclaimable_bytes(status) == 150 * 1024
    assert resident_bytes(b"2000 300 200 5 0 100 0\n") == 300 * PAGE


def test_real_figures_can_be_read() -> None:
    resident = resident_bytes(Path("/proc/self/statm").read_bytes())
    unreclaimable = unreclaimable_bytes(Path("/proc/self/status").read_bytes())

    assert 0 < unreclaimable < resident * 1.5
