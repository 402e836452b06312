from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.controlplane.binaries.releases import Asset, asset_for, checksum_in
from scaletest.controlplane.binaries.versions import Wanted, wanted

A, B = "a" * 64, "b" * 64


def want(name: str, version: str) -> Wanted:
    this = wanted(name, version)
    return Wanted(this.component, this.family, this.version, "linux", "arm64")


def test_kubernetes_lies_on_its_download_server() -> None:
    url = "https://dl.k8s.io/release/v1.37.2/bin/linux/arm64/kube-scheduler"

    expected = Asset(url, f"{url}.sha256", checksum_required=True)
    assert expected == asset_for(want("kube-scheduler", "1.37.2"), {})


def test_etcd_is_an_archive_with_a_list_of_checksums() -> None:
    base = "https://github.com/etcd-io/etcd/releases/download/v3.6.16"

    expected = Asset(
        f"{base}/etcd-v3.6.16-linux-arm64.tar.gz",
        f"{base}/SHA256SUMS",
        checksum_required=True,
        member="etcd-v3.6.16-linux-arm64/etcd",
    )
    assert expected == asset_for(want("etcd", "3.6.16"), {})


def test_kwok_is_checked_against_the_digest_that_github_tells() -> None:
    expected = Asset(
        "https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-arm64",
        "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0",
        checksum_required=False,
    )
    assert expected == asset_for(want("kwok-controller", "0.8.0"), {})


@pytest.mark.parametrize(
    ("name", "version", "variable", "url"),
    [
        ("kube-apiserver", "1.37.2", "KUBERNETES", "http://m/x/v1.37.2/bin/linux/arm64/kube-apiserver"),
        ("etcd", "3.6.16", "ETCD", "http://m/x/v3.6.16/etcd-v3.6.16-linux-arm64.tar.gz"),
        ("kwokctl", "0.8.0", "KWOK", "http://m/x/v0.8.0/kwokctl-linux-arm64"),
    ],
)
def test_a_mirror_has_the_same_files(name: str, version: str, variable: str, url: str) -> None:
    asset = asset_for(want(name, version), {f"SCALETEST_MIRROR_{variable}": "http://m/x/"})

    assert url == asset.url
    # Nothing vouches for a program that came over plain http.
    assert asset.checksum_required
    assert asset.checksum_url.startswith("http://m/x/")


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (A, A),
        (A.upper() + "\n", A),
        (f"{A}  file\n", A),
        (f"{B}  other\n{A} *file\n", A),
        (f"{B}  file.sig\r\n{A}  ./file\r\n", A),
        (f"{B}  other\n", None),
        ("<html>not found</html>", None),
        ("abc  file", None),
        ("", None),
        (json.dumps({"assets": [{"name": "file", "digest": f"sha256:{A}"}]}), A),
        (json.dumps({"assets": [{"name": "other", "digest": f"sha256:{A}"}]}), None),
        (json.dumps({"assets": [{"name": "file", "digest": None}]}), None),
        (json.dumps({"assets": [{"name": "file", "digest": f"sha512:{A}"}]}), None),
        (json.dumps({"message": "API rate limit exceeded"}), None),
        ("{broken", None),
    ],
)
def test_a_checksum_is_found_in_each_published_form(text: str, digest: str | None) -> None:
    assert digest == checksum_in(text, "file")


@given(
    st.text()
    | st.recursive(st.none() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)).map(json.dumps)
)
def test_no_text_is_taken_for_a_checksum_that_is_none(text: str) -> None:
    digest = checksum_in(text, "file")
    assert digest is None or (len(digest) == 64 and digest in text.lower())
