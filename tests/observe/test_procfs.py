from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.observe.procfs import HostUsage, host_usage, parse_host, parse_process_stat, process_usage, tree_usage

MIB = 1 << 20
ALLOCATE = "b = bytearray(64 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\n"


@contextmanager
def child(code: str) -> Iterator[subprocess.Popen[str]]:
    """A Python child that has run ``code`` and now waits for its standard input to end."""
    program = f"{code}\nprint('ready', flush=True)\nimport sys; sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.communicate()


def test_a_process_has_the_memory_it_touched() -> None:
    with child("") as small, child(ALLOCATE) as big:
        before, after = process_usage(small.pid), process_usage(big.pid)

    assert before is not None
    assert after is not None
    assert 60 * MIB < after.rss_bytes - before.rss_bytes < 70 * MIB


def test_a_process_has_the_cpu_that_psutil_says() -> None:
    with child("import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass") as busy:
        usage = process_usage(busy.pid)
        times = psutil.Process(busy.pid).cpu_times()

    assert usage is not None
    assert usage.cpu_s == pytest.approx(times.user + times.system, abs=0.05)
    assert usage.cpu_s >= 0.28


def test_a_tree_holds_children_and_grandchildren_and_the_root_alone_does_not() -> None:
    spawn = (
        "import subprocess, sys\n"
        "def waits(code): return subprocess.Popen([sys.executable, '-c', code + \"\\nprint(1, flush=True); "
        'import sys; sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n'
    )
    allocating = f"exec({ALLOCATE!r})"
    with child(f"{spawn}kid = waits({allocating!r}); kid.stdout.readline()") as parent:
        alone, tree = process_usage(parent.pid), tree_usage(parent.pid)

    assert alone is not None
    assert tree is not None
    assert tree.pid == parent.pid
    assert tree.rss_bytes > alone.rss_bytes + 64 * MIB


def test_a_tree_keeps_the_cpu_of_children_that_have_ended() -> None:
    burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    with child(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])") as parent:
        alone, tree = process_usage(parent.pid), tree_usage(parent.pid)

    assert alone is not None
    assert tree is not None
    assert tree.cpu_s >= alone.cpu_s + 0.28


def test_cpu_of_a_tree_never_goes_back_while_children_come_and_go() -> None:
    code = (
        "import subprocess, sys, threading\n"
        "def spawn():\n"
        "    for _ in range(8): subprocess.run([sys.executable, '-c', 'sum(range(300000))'])\n"
        "threading.Thread(target=spawn, daemon=True).start()\n"
    )
    with child(code) as parent:
        seen = []
        deadline_s = time.monotonic() + 1.5
        while time.monotonic() < deadline_s:
            usage = tree_usage(parent.pid)
            assert usage is not None
            seen.append(usage.cpu_s)

    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


def test_a_process_that_is_gone_has_no_usage() -> None:
    with child("") as process:
        pass

    assert (process_usage(process.pid), tree_usage(process.pid)) == (None, None)


@given(name=st.text(st.sampled_from("ab ()\n1"), max_size=15))
def test_a_command_name_with_spaces_and_parentheses_does_not_shift_the_fields(name: str) -> None:
    fields = ["S", *(str(number) for number in range(1, 50))]
    text = f"4242 ({name}) {' '.join(fields)}\n"

    assert parse_process_stat(text.encode()) == (11 + 12, 13 + 14, 21)


STAT = b"""\
cpu  1000 200 300 4000 500 60 70 80 90 0
cpu0 500 100 150 2000 250 30 35 40 45 0
cpu1 500 100 150 2000 250 30 35 40 45 0
intr 12345
"""
MEMINFO = b"MemTotal:       24684092 kB\nMemFree:  20172740 kB\nMemAvailable:   22977576 kB\nBuffers: 1 kB\n"


NETSTAT = b"""\
TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPMemoryPressures
TcpExt: 1 20 300 4
IpExt: InNoRoutes ListenOverflows
IpExt: 5 6
"""


def test_the_host_is_read_from_stat_meminfo_and_netstat() -> None:
    expected = HostUsage(
        available_bytes=22977576 * 1024,
        total_bytes=24684092 * 1024,
        cores=2,
        cpu_busy_s=16.3,
        cpu_idle_s=45.0,
        cpu_steal_s=0.8,
        tcp_listen_overflows=20,
        tcp_memory_pressures=4,
    )
    assert expected == parse_host(STAT, MEMINFO, NETSTAT, ticks_per_s=100)


@pytest.mark.parametrize("netstat", [b"", b"IpExt: A\nIpExt: 1\n", b"TcpExt: SyncookiesSent\nTcpExt: 1\n"])
def test_a_kernel_that_does_not_count_says_nothing(netstat: bytes) -> None:
    usage = parse_host(STAT, MEMINFO, netstat, ticks_per_s=100)

    assert (None, None) == (usage.tcp_listen_overflows, usage.tcp_memory_pressures)


def test_a_listener_that_does_not_accept_is_counted() -> None:
    before = host_usage().tcp_listen_overflows
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1))
        for _ in range(8):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        after = host_usage().tcp_listen_overflows

    assert before is not None
    assert after is not None
    assert after > before


def test_the_host_agrees_with_what_others_say_of_it() -> None:
    usage = host_usage()

    assert usage.cores == os.cpu_count()
    assert usage.total_bytes == psutil.virtual_memory().total
    assert usage.available_bytes == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert usage.cpu_busy_s > 0
