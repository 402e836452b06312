from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scaletest.controlplane.binaries.cache import BinaryCache, CachedBinary
from scaletest.controlplane.binaries.versions import Wanted, wanted
from scaletest.core.errors import EnvironmentProblem, ResourceShortage
from tests.controlplane.binaries.programs import RecordedProgress, program, put

WANT = wanted("kube-apiserver", "1.37.2")
CONTENT = program("kubernetes", "1.37.2")


def fill(cache: BinaryCache, want: Wanted = WANT, content: bytes = CONTENT, origin: str = "test") -> CachedBinary:
    return cache.store(want, put(cache.work_dir(want) / "new", content), origin)


def test_a_stored_program_is_found_with_its_origin(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path)
    stored = fill(cache)

    assert stored == cache.lookup(WANT)
    assert stored.path == tmp_path / "bin/kube-apiserver/1.37.2" / WANT.platform / "kube-apiserver"
    assert stored.path.read_bytes() == CONTENT
    assert os.access(stored.path, os.X_OK)
    assert stored.record.origin == "test"
    assert [stored] == cache.entries()


def test_an_empty_cache_says_what_is_not_there(tmp_path: Path) -> None:
    reason = BinaryCache(tmp_path / "none").lookup(WANT)

    assert isinstance(reason, str)
    assert reason.endswith("kube-apiserver is not there")
    assert BinaryCache(tmp_path / "none").entries() == []


def test_a_program_without_record_or_of_another_size_is_not_used(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path)
    path = fill(cache).path
    path.write_bytes(CONTENT[:-5])
    assert "bytes where its record says" in str(cache.lookup(WANT))

    path.with_name("kube-apiserver.json").write_text("{")
    assert "no record" in str(cache.lookup(WANT))


def test_verify_finds_the_changed_byte(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path)
    sound = fill(cache)
    other = fill(cache, WANT.sibling(WANT.family.components[2]))
    changed = bytearray(other.path.read_bytes())
    changed[5] ^= 1
    other.path.write_bytes(changed)

    kept, damaged = cache.verify()

    assert [sound] == kept
    assert [other.path] == [item.path for item in damaged]
    assert f"recorded is {other.record.sha256}" in damaged[0].what


def test_foreign_files_in_the_cache_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "bin/kubelet/1.37.2/linux-amd64/kubelet", b"x")
    put(tmp_path / "bin/kube-apiserver/notes", b"x")

    assert BinaryCache(tmp_path).verify() == ([], [])


def test_a_directory_that_cannot_be_written_is_an_error_for_people(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(EnvironmentProblem, match="cannot write") as caught:
        BinaryCache(tmp_path / "file").work_dir(WANT)

    assert caught.value.hint is not None
    assert "SCALETEST_CACHE_DIR" in caught.value.hint


def test_a_full_disk_is_an_error_for_people(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path)

    with (
        pytest.raises(ResourceShortage, match="no space left in"),
        cache.locked(WANT, "testing", RecordedProgress()),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"x")


HOLD = """
import sys, time
from pathlib import Path
from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.progress import SilentProgress
from scaletest.controlplane.binaries.versions import wanted
with BinaryCache(Path(sys.argv[1])).locked(wanted("kube-apiserver", "1.37.2"), "building", SilentProgress()):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_says_whom_it_waits_for_and_goes_on_when_that_one_dies(tmp_path: Path) -> None:
    progress = RecordedProgress()
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        # The lock goes with its holder, however that ends.
        killer = subprocess.Popen(["/bin/sh", "-c", f"sleep 0.5; kill -9 {holder.pid}"])
        with BinaryCache(tmp_path).locked(WANT.sibling(WANT.family.components[1]), "building", progress):
            assert holder.wait() == -signal.SIGKILL
        killer.wait()

    assert len(progress.notes) == 1
    assert f"Kubernetes 1.37.2: waiting for process {holder.pid}, which is building it" in progress.notes[0]


STORE_FOR_EVER = """
import sys
from pathlib import Path
from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.versions import wanted
cache, want = BinaryCache(Path(sys.argv[1])), wanted("kube-apiserver", "1.37.2")
print("ready", flush=True)
for number in range(10**9):
    new = cache.work_dir(want) / "new"
    new.write_bytes(b"%09d" % number * (1000 + number % 7))
    cache.store(want, new, str(number))
"""


def test_a_process_killed_at_any_moment_leaves_no_wrong_program(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path)
    rng = random.Random(1)
    found = 0
    for _ in range(12):
        with subprocess.Popen([sys.executable, "-c", STORE_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(rng.uniform(0.0, 0.15))
            writer.kill()
        _, damaged = cache.verify()
        assert damaged == []
        cached = cache.lookup(WANT)
        if isinstance(cached, CachedBinary):
            found += 1
            assert cached.path.read_bytes()[:9] == b"%09d" % int(cached.record.origin)
    assert found > 0
