from __future__ import annotations

import pytest

from scaletest.controlplane.binaries.gomod import (
    executable_name,
    placeholder_requirements,
    scratch_go_mod,
    staging_version,
    too_old,
)

GO_MOD = """\
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tgithub.com/JeffAshton/win_pdh v0.0.0-20161109143554-76bb4ee9f0ab
\tk8s.io/api v0.0.0
\tk8s.io/apimachinery v0.0.0 // indirect
\tk8s.io/klog/v2 v2.140.0
\tk8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad
\tk8s.io/utils v0.0.0-20260626114624-be93311217bd
)

require k8s.io/streaming v0.0.0

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
)
"""


def test_only_the_exact_placeholder_is_replaced_and_no_pseudo_version() -> None:
    expected = """\
module scaletest.invalid/build

go 1.26.0

replace k8s.io/api => k8s.io/api v0.37.2
replace k8s.io/apimachinery => k8s.io/apimachinery v0.37.2
replace k8s.io/streaming => k8s.io/streaming v0.37.2
"""
    assert expected == scratch_go_mod(GO_MOD, "1.37.2")


def test_a_module_without_placeholders_gets_no_replacement() -> None:
    assert placeholder_requirements("module x\n\nrequire y v1.0.0\n") == []


@pytest.mark.parametrize(
    ("version", "staging"), [("1.37.2", "v0.37.2"), ("1.31.4", "v0.31.4"), ("1.38.0-rc.1", "v0.38.0-rc.1")]
)
def test_the_libraries_version_follows_from_that_of_kubernetes(version: str, staging: str) -> None:
    assert staging == staging_version(version)


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
        ("go.etcd.io/etcd/server/v3", "server"),
        ("sigs.k8s.io/kwok/cmd/kwok", "kwok"),
    ],
)
def test_the_program_is_named_as_go_names_it(package: str, name: str) -> None:
    assert name == executable_name(package)


@pytest.mark.parametrize(
    ("here", "needed", "old"),
    [
        ("go1.26.8", "1.26.0", False),
        ("go1.26.8", "1.26", False),
        ("go1.26", "1.26.0", False),
        ("go1.25.9", "1.26.0", True),
        ("go1.9", "1.22", True),
        ("go1.27rc1", "1.26.3", False),
    ],
)
def test_an_old_toolchain_is_told_from_a_new_one(here: str, needed: str, old: bool) -> None:
    assert old == too_old(here, needed)
