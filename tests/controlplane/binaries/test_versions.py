from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane.binaries.versions import (
    COMPONENTS,
    ETCD,
    FAMILIES,
    KUBERNETES,
    KWOK,
    KWOK_VERSION,
    component_named,
    known_versions,
    resolve,
    wanted,
)
from scaletest.core.errors import UsageError

NUMBER = st.integers(0, 999)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.31", "1.31.4"),
        ("v1.31", "1.31.4"),
        ("1.37", "1.37.2"),
        ("1.31.9", "1.31.9"),
        ("v1.37.2", "1.37.2"),
        (" 1.37.2 ", "1.37.2"),
        ("1.38.0-rc.1", "1.38.0-rc.1"),
    ],
)
def test_a_version_resolves_to_a_full_one(text: str, version: str) -> None:
    assert version == resolve(KUBERNETES, text)


def test_an_unknown_minor_lists_those_known_and_says_that_a_full_version_may_be_given() -> None:
    with pytest.raises(UsageError) as caught:
        resolve(KUBERNETES, "1.35")

    expected = "Kubernetes 1.35: no patch version is pinned for this minor; known are 1.31, 1.32, 1.33, 1.36, 1.37"
    assert expected == caught.value.message
    assert caught.value.hint == "a full version such as 1.37.2 may be given as well"


@pytest.mark.parametrize("text", ["", "1", "latest", "1.37.2.3", "1.37.x", "1.37.2-eks-1", "../1.37.2", "1.37.2\n/x"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a version of Kubernetes"):
        resolve(KUBERNETES, text)


@given(NUMBER, NUMBER, NUMBER, st.sampled_from(FAMILIES), st.sampled_from(["", "v"]))
def test_a_full_version_stands_as_it_is(major: int, minor: int, patch: int, family: object, prefix: str) -> None:
    version = f"{major}.{minor}.{patch}"
    assert version == resolve(family, prefix + version)  # type: ignore[arg-type]


@given(st.text())
def test_any_text_resolves_to_a_clean_version_or_is_refused(text: str) -> None:
    try:
        version = resolve(ETCD, text)
    except UsageError:
        return
    # It becomes part of paths and URLs.
    assert set(version) <= set("0123456789.-abcdefghijklmnopqrstuvwxyz")


def test_every_pin_is_a_patch_of_its_minor() -> None:
    for pins in known_versions().values():
        for minor, patch in pins.items():
            assert minor == patch.rsplit(".", 1)[0]


def test_the_version_of_kwok_is_pinned() -> None:
    assert resolve(KWOK, "0.8") == KWOK_VERSION


@pytest.mark.parametrize(
    ("family", "output", "version"),
    [
        (KUBERNETES, "Kubernetes v1.37.2\n", "1.37.2"),
        (KUBERNETES, "Kubernetes v1.31.4-eks-7f9249a\n", "1.31.4-eks-7f9249a"),
        (KUBERNETES, "Client Version: v1.37.2\n", None),
        (ETCD, "etcd Version: 3.6.16\nGit SHA: Not provided\nGo Version: go1.26.8\n", "3.6.16"),
        (ETCD, "{warning}\netcd Version: 3.5.1\n", "3.5.1"),
        (KWOK, "kwok version v0.8.0 go1.26.8 (linux/amd64)\n", "0.8.0"),
        (KWOK, "kwokctl version v0.8.0 go1.26.8 (linux/amd64)\n", "0.8.0"),
        (KWOK, "kwok version 0.7.0\n", "0.7.0"),
        (KWOK, "", None),
    ],
)
def test_the_version_is_read_from_what_the_real_programs_print(family: object, output: str, version: str) -> None:
    assert version == family.version_in(output)  # type: ignore[attr-defined]


def test_the_controller_of_kwok_is_the_program_kwok() -> None:
    want = wanted("kwok-controller", KWOK_VERSION)

    assert want.component.program == "kwok"
    assert str(want) == f"kwok-controller {KWOK_VERSION}"


def test_the_environment_key_is_made_of_the_name() -> None:
    assert component_named("kube-controller-manager").environment_key == "SCALETEST_BINARY_KUBE_CONTROLLER_MANAGER"


def test_an_unknown_component_lists_them_all() -> None:
    with pytest.raises(UsageError) as caught:
        component_named("kubelet")

    for name in COMPONENTS:
        assert name in caught.value.message
