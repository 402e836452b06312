"""Builds of small modules with the real Go, the real names and a module proxy in a directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scaletest.controlplane.binaries.cache import BinaryCache, CachedBinary
from scaletest.controlplane.binaries.gobuild import GoModuleSource, ldflags
from scaletest.controlplane.binaries.sources import Found, Miss, Planned, reported_version
from scaletest.controlplane.binaries.versions import ETCD, KUBERNETES, KWOK, wanted
from tests.controlplane.binaries.go_proxy import KUBERNETES_GO_MOD, GoProxy
from tests.controlplane.binaries.programs import RecordedProgress, put

APISERVER = wanted("kube-apiserver", "1.31.4")
needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="no Go here")


@pytest.fixture
def proxy(tmp_path: Path) -> GoProxy:
    return GoProxy(tmp_path / "proxy")


def source(proxy: GoProxy, tmp_path: Path, **environ: str) -> GoModuleSource:
    return GoModuleSource(BinaryCache(tmp_path / "cache"), {**proxy.environ(tmp_path), **environ})


def reason_of(result: object) -> str:
    assert isinstance(result, Miss)
    return result.reason


@needs_go
def test_one_build_makes_all_programs_with_their_version_and_matching_libraries(proxy: GoProxy, tmp_path: Path) -> None:
    proxy.publish_kubernetes("1.31.4")
    # A newer one exists, which go get would take if the version were not named on every package.
    proxy.publish_kubernetes("1.32.0")
    cache, progress = BinaryCache(tmp_path / "cache"), RecordedProgress()

    found = source(proxy, tmp_path).locate(APISERVER, progress)

    assert isinstance(found, Found)
    assert found.origin.startswith("built from k8s.io/kubernetes@v1.31.4 by go1.")
    for component in KUBERNETES.components:
        cached = cache.lookup(APISERVER.sibling(component))
        assert isinstance(cached, CachedBinary)
        assert reported_version(cached.path, KUBERNETES) == "1.31.4"
    work = cache.work_dir(APISERVER)
    go_mod = (work / "go.mod").read_text()
    assert "replace k8s.io/component-base => k8s.io/component-base v0.31.4\n" in go_mod
    assert "replace k8s.io/utils" not in go_mod
    assert not (work / "out").exists()
    assert [task.unit for task in progress.tasks] == ["modules", "packages"]
    # Go's build cache may hold the very same packages from an earlier run of this test.
    done, total = progress.tasks[1].updates[-1]
    assert total is not None
    assert done <= total


@needs_go
def test_what_another_process_built_meanwhile_is_not_built_again(proxy: GoProxy, tmp_path: Path) -> None:
    proxy.publish_kubernetes("1.31.4")
    one, progress = source(proxy, tmp_path), RecordedProgress()
    one.locate(APISERVER, progress)

    again = one.locate(APISERVER.sibling(KUBERNETES.components[1]), progress)
    assert isinstance(again, Found)
    assert len(progress.tasks) == 2

    one.rebuild(APISERVER, progress)
    assert len(progress.tasks) == 4


@needs_go
def test_a_program_that_does_not_compile_is_a_miss_with_the_compilers_words_and_the_log(
    proxy: GoProxy, tmp_path: Path
) -> None:
    proxy.publish_kubernetes("1.31.4", scheduler="package main\n\nfunc main() { undefinedThing() }\n")
    one = source(proxy, tmp_path)

    reason = reason_of(one.locate(APISERVER, RecordedProgress()))

    log = BinaryCache(tmp_path / "cache").work_dir(APISERVER) / "build.log"
    assert reason.startswith(f"go build failed; the whole log is {log}, it ends:")
    assert "undefined: undefinedThing" in reason
    assert "undefined: undefinedThing" in log.read_text()
    assert BinaryCache(tmp_path / "cache").entries() == []
    # The others of the family would fail alike: they are not tried.
    progress = RecordedProgress()
    assert reason == reason_of(one.locate(APISERVER.sibling(KUBERNETES.components[1]), progress))
    assert progress.tasks == []


@needs_go
def test_a_library_that_is_not_served_is_a_miss_that_names_it(proxy: GoProxy, tmp_path: Path) -> None:
    proxy.publish_kubernetes("1.31.4")
    shutil.rmtree(proxy.root / "k8s.io/component-base")

    reason = reason_of(source(proxy, tmp_path).locate(APISERVER, RecordedProgress()))

    assert reason.startswith("go get failed")
    assert "k8s.io/component-base@v0.31.4" in reason


@needs_go
def test_a_module_that_is_not_served_is_a_miss(proxy: GoProxy, tmp_path: Path) -> None:
    proxy.publish_kubernetes("1.31.4")
    want = wanted("kube-apiserver", "1.99.3")

    reason = reason_of(source(proxy, tmp_path).locate(want, RecordedProgress()))

    assert reason.startswith("the Go module k8s.io/kubernetes@v1.99.3 cannot be had: ")
    assert reason == reason_of(source(proxy, tmp_path).plan(want))


@needs_go
def test_a_go_that_is_too_old_is_a_miss_that_says_which_is_needed(proxy: GoProxy, tmp_path: Path) -> None:
    proxy.publish_kubernetes("1.31.4", go_mod=KUBERNETES_GO_MOD.replace("go 1.21", "go 1.999.0"))

    reason = reason_of(source(proxy, tmp_path).plan(APISERVER))

    assert reason.startswith("k8s.io/kubernetes@v1.31.4 needs Go 1.999.0; here is go1.")


@needs_go
def test_a_plan_builds_nothing(proxy: GoProxy, tmp_path: Path) -> None:
    proxy.publish_kubernetes("1.31.4")

    plan = source(proxy, tmp_path).plan(APISERVER)

    assert isinstance(plan, Planned)
    assert plan.how.startswith("would be built from k8s.io/kubernetes@v1.31.4 by go1.")
    assert not (tmp_path / "cache").exists()


@needs_go
def test_settings_of_the_users_other_go_work_do_not_reach_the_build(proxy: GoProxy, tmp_path: Path) -> None:
    proxy.publish_kubernetes("1.31.4")
    one = source(
        proxy,
        tmp_path,
        GOFLAGS="-mod=vendor -tags=nonsense",
        GOWORK=str(tmp_path / "none"),
        GOARCH="mips",
        GOOS="plan9",
    )

    assert isinstance(one.locate(APISERVER, RecordedProgress()), Found)


def test_no_go_is_a_miss(proxy: GoProxy, tmp_path: Path) -> None:
    reason = reason_of(source(proxy, tmp_path, PATH=str(tmp_path)).locate(APISERVER, RecordedProgress()))

    assert reason == "no Go on PATH to build with (go.dev/doc/install)"


def test_a_go_that_does_not_run_is_a_miss(proxy: GoProxy, tmp_path: Path) -> None:
    put(tmp_path / "bin/go", b"#!/bin/sh\necho broken installation >&2\nexit 2\n")

    reason = reason_of(source(proxy, tmp_path, PATH=str(tmp_path / "bin")).plan(APISERVER))

    assert reason == "go env -json: broken installation"


BUILD = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would this
from pathlib import Path
from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.gobuild import GoModuleSource
from scaletest.controlplane.binaries.progress import TerminalProgress
from scaletest.controlplane.binaries.versions import wanted
source = GoModuleSource(BinaryCache(Path(sys.argv[1])), os.environ)
print(source.locate(wanted("kube-apiserver", "1.31.4"), TerminalProgress(sys.stdout)), flush=True)
"""
SLOW_GO = """#!/bin/sh
case "$1" in
env) echo '{{"GOVERSION": "go1.26.0", "GOTOOLCHAIN": "local", "GOCACHE": "/tmp", "GOMODCACHE": "/tmp"}}' ;;
list) echo '{{"GoMod": "{go_mod}", "GoVersion": "1.21"}}' ;;
*) echo $$ > {pid_file}; exec sleep 300 ;;
esac
"""


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT])
def test_a_build_ends_with_the_process_that_wanted_it(tmp_path: Path, signum: signal.Signals) -> None:
    go_mod, pid_file = tmp_path / "k.mod", tmp_path / "pid"
    go_mod.write_text(KUBERNETES_GO_MOD)
    put(tmp_path / "bin/go", SLOW_GO.format(go_mod=go_mod, pid_file=pid_file).encode())
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    with subprocess.Popen(
        [sys.executable, "-c", BUILD, str(tmp_path / "cache")],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as builder:
        pid = int(wait_for(lambda: pid_file.exists() and pid_file.read_text()))
        builder.send_signal(signum)
    wait_for(lambda: not is_running(pid))


def wait_for(condition: object) -> str:
    assert callable(condition)
    deadline_s = time.monotonic() + 20
    while not (value := condition()):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    return str(value)


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def test_the_linker_sets_the_version_where_each_family_looks_for_it() -> None:
    expected = (
        "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 "
        "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
    )
    assert expected == ldflags(KUBERNETES, "1.37.2")
    assert ldflags(KWOK, "0.8.0") == "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=0.8.0"
    assert ldflags(ETCD, "3.6.16") == "-s -w"
