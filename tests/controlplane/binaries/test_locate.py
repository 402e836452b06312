from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.controlplane.binaries.locate import default_sources, locate, locate_all, plan_all
from scaletest.controlplane.binaries.progress import Progress
from scaletest.controlplane.binaries.sources import BinarySource, Found, Miss, Planned, SourceName
from scaletest.controlplane.binaries.versions import COMPONENTS, KWOK_VERSION, Wanted
from scaletest.core.errors import BinaryUnavailable, ExitCode, UsageError
from tests.controlplane.binaries.programs import RecordedProgress, program, put


class FakeSource:
    """Has some components; the rest misses."""

    def __init__(self, name: SourceName, has: set[str], *, at_hand: bool = True) -> None:
        self._name: SourceName = name
        self._has = has
        self._at_hand = at_hand
        self.asked: list[str] = []

    @property
    def name(self) -> SourceName:
        return self._name

    def plan(self, want: Wanted) -> Found | Planned | Miss:
        if want.component.name not in self._has:
            return Miss(f"{self._name} lacks it")
        return self._found(want) if self._at_hand else Planned(f"would come from {self._name}")

    def locate(self, want: Wanted, progress: Progress) -> Found | Miss:
        self.asked.append(str(want))
        return self._found(want) if want.component.name in self._has else Miss(f"{self._name} lacks it")

    def _found(self, want: Wanted) -> Found:
        return Found(Path(f"/{self._name}/{want.component.program}"), f"from {self._name}")


ALL = set(COMPONENTS)


def test_the_first_source_that_has_a_program_wins() -> None:
    near, far = FakeSource("PATH", {"etcd"}), FakeSource("build", ALL)

    binaries = locate_all("1.31", "3.6", sources=[near, far], progress=RecordedProgress())

    assert binaries.paths["etcd"] == Path("/PATH/etcd")
    assert binaries.paths["kwok-controller"] == Path("/build/kwok")
    assert binaries.origin == {**dict.fromkeys(COMPONENTS, "from build"), "etcd": "from PATH"}
    assert set(binaries.paths) == ALL
    assert (binaries.kubernetes, binaries.etcd, binaries.kwok) == ("1.31.4", "3.6.16", KWOK_VERSION)
    assert "etcd 3.6.16" not in far.asked


def test_quick_families_come_before_the_long_build() -> None:
    source = FakeSource("build", ALL)

    locate_all("1.37", "3.6", sources=[source], progress=RecordedProgress())

    assert source.asked[0] == "etcd 3.6.16"
    assert source.asked[-1] == "kube-scheduler 1.37.2"


def test_when_no_source_has_it_every_reason_is_told() -> None:
    sources: list[BinarySource] = [FakeSource("PATH", set()), FakeSource("download", set()), FakeSource("build", set())]
    progress = RecordedProgress()

    with pytest.raises(BinaryUnavailable) as caught:
        locate("kube-apiserver", "1.99.3", sources=sources, progress=progress)

    lines = caught.value.message.splitlines()
    assert lines[0].startswith("no source has kube-apiserver 1.99.3 for linux/")
    assert lines[1:] == ["  PATH:      PATH lacks it", "  download:  download lacks it", "  build:     build lacks it"]
    assert "SCALETEST_MIRROR_KUBERNETES" in str(caught.value.hint)
    assert caught.value.exit_code == ExitCode.ENVIRONMENT
    # Why a build of minutes begins is said when it begins.
    assert progress.notes == ["kube-apiserver 1.99.3: not downloaded: download lacks it"]


def test_an_unknown_minor_is_the_users_mistake_and_asks_no_source() -> None:
    source = FakeSource("build", ALL)

    with pytest.raises(UsageError):
        locate_all("1.35", "3.6", sources=[source], progress=RecordedProgress())

    assert source.asked == []


def test_a_plan_tells_ready_planned_and_missing_apart() -> None:
    sources = [FakeSource("cache", {"etcd"}), FakeSource("build", {"kwokctl"}, at_hand=False)]

    plans = {plan.component: plan for plan in plan_all("1.37", "3.6", sources=sources)}

    etcd, kwokctl, apiserver = plans["etcd"], plans["kwokctl"], plans["kube-apiserver"]
    assert (etcd.ready, etcd.source, etcd.path) == (True, "cache", Path("/cache/etcd"))
    assert (kwokctl.ready, kwokctl.source, kwokctl.how) == (False, "build", "would come from build")
    assert kwokctl.misses == {"cache": "cache lacks it"}
    assert (apiserver.ready, apiserver.source) == (False, None)
    assert apiserver.misses == {"cache": "cache lacks it", "build": "build lacks it"}
    assert "no source has kube-apiserver 1.37.2" in apiserver.how


def test_a_wrong_given_path_ends_the_search(tmp_path: Path) -> None:
    wrong = put(tmp_path / "etcd", program("etcd", "3.5.0"))
    environ = {"SCALETEST_BINARY_ETCD": str(wrong)}
    sources = [default_sources(environ=environ)[0], FakeSource("build", ALL)]

    with pytest.raises(BinaryUnavailable, match=r"is etcd 3\.5\.0, asked for is 3\.6\.16"):
        locate_all("1.37", "3.6", sources=sources, progress=RecordedProgress())
    plans = {plan.component: plan for plan in plan_all("1.37", "3.6", sources=sources)}

    assert plans["etcd"].source is None
    assert "asked for is 3.6.16" in plans["etcd"].how
    assert plans["kwokctl"].source == "build"


def test_the_sources_stand_in_their_documented_order() -> None:
    assert [source.name for source in default_sources()] == ["given", "PATH", "cache", "download", "build"]


def test_a_given_path_of_an_unknown_component_is_refused() -> None:
    with pytest.raises(UsageError, match="'kubelet' is not a component"):
        default_sources({"kubelet": Path("/x")})
