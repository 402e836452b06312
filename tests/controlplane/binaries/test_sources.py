from __future__ import annotations

import os
from pathlib import Path

import pytest

from scaletest.controlplane.binaries.sources import ExplicitSource, Found, Miss, PathSource, parse_binary_flags
from scaletest.controlplane.binaries.versions import COMPONENTS, wanted
from scaletest.core.errors import BinaryUnavailable, UsageError
from tests.controlplane.binaries.programs import program, put

WANT = wanted("kube-apiserver", "1.37.2")
KEY = "SCALETEST_BINARY_KUBE_APISERVER"


def test_a_given_path_is_taken_and_the_flag_wins_over_the_environment(tmp_path: Path) -> None:
    by_flag = put(tmp_path / "flag", program("kubernetes", "1.37.2"))
    by_environment = put(tmp_path / "environment", program("kubernetes", "1.37.2"))
    environ = {KEY: str(by_environment)}

    expected = Found(by_flag, "given by --binary kube-apiserver=PATH")
    assert expected == ExplicitSource({"kube-apiserver": by_flag}, environ).plan(WANT)
    expected = Found(by_environment, f"given by {KEY}")
    assert expected == ExplicitSource({"kube-scheduler": by_flag}, environ).plan(WANT)


def test_nothing_given_is_a_miss_that_says_how_to_give_it() -> None:
    expected = Miss(f"neither --binary kube-apiserver=PATH nor {KEY} is given")
    assert expected == ExplicitSource({}, {}).plan(WANT)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "does not exist"),
        (program("kubernetes", "1.31.4"), "is kube-apiserver 1.31.4, asked for is 1.37.2"),
        (program("etcd", "3.6.16"), "which is no version of Kubernetes"),
        (b"\x7fELFnonsense", "cannot be run: Exec format error"),
        (b"#!/bin/sh\nexit 3\n", "answers --version with 'nothing'"),
    ],
)
def test_a_given_path_that_is_not_the_program_is_an_error_and_not_a_miss(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "kube-apiserver"
    if content is not None:
        put(path, content)

    with pytest.raises(BinaryUnavailable, match=problem) as caught:
        ExplicitSource({}, {KEY: str(path)}).plan(WANT)

    assert str(path) in caught.value.message
    assert KEY in str(caught.value.hint)


def test_a_given_directory_or_plain_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BinaryUnavailable, match="is not a file"):
        ExplicitSource({"kube-apiserver": tmp_path}, {}).plan(WANT)
    (tmp_path / "plain").write_bytes(program("kubernetes", "1.37.2"))
    with pytest.raises(BinaryUnavailable, match="cannot be run: Permission denied"):
        ExplicitSource({"kube-apiserver": tmp_path / "plain"}, {}).plan(WANT)


def test_the_path_is_searched_to_its_end_for_the_right_version(tmp_path: Path) -> None:
    put(tmp_path / "old/kube-apiserver", program("kubernetes", "1.31.4"))
    right = put(tmp_path / "new/kube-apiserver", program("kubernetes", "1.37.2"))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/kube-apiserver").write_bytes(program("kubernetes", "1.37.2"))
    path = os.pathsep.join(str(tmp_path / name) for name in ("missing", "plain", "old", "new"))

    assert Found(right, "on PATH") == PathSource({"PATH": path}).plan(WANT)


def test_other_versions_on_the_path_are_named_in_the_miss(tmp_path: Path) -> None:
    old = put(tmp_path / "kube-apiserver", program("kubernetes", "1.31.4"))

    assert Miss(f"{old} is version 1.31.4") == PathSource({"PATH": str(tmp_path)}).plan(WANT)
    assert Miss("no kube-apiserver on PATH") == PathSource({"PATH": "/nowhere"}).plan(WANT)


def test_flags_are_parsed_by_component() -> None:
    expected = {"etcd": Path("/x/etcd"), "kwokctl": Path("a=b")}
    assert expected == parse_binary_flags(["etcd=/x/etcd", "kwokctl=a=b"])


@pytest.mark.parametrize("flag", ["etcd", "etcd=", "=/x", "kubelet=/x", "ETCD=/x", ""])
def test_a_malformed_flag_lists_the_components(flag: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_binary_flags([flag])

    assert repr(flag) in caught.value.message
    assert ", ".join(COMPONENTS) in caught.value.message


def test_a_component_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        parse_binary_flags(["etcd=/a", "etcd=/b"])
