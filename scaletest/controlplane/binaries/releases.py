"""Where official releases lie, and where their checksums are published.

    Kubernetes  dl.k8s.io/release/vA.B.C/bin/linux/amd64/PROGRAM     PROGRAM.sha256 beside it
    etcd        github.com/etcd-io/etcd/releases: a tar archive       SHA256SUMS of the release
    KWOK        github.com/kubernetes-sigs/kwok/releases: PROGRAM-linux-amd64

KWOK publishes no checksum file (its release script uploads the bare programs). GitHub computes a SHA-256 of every
asset uploaded since June 2025 and its API tells it, so that is what KWOK's programs are checked
against. The API answers 60 anonymous questions an hour and address; when it gives no digest, the program is
accepted over https alone, and its origin says "not verified" wherever it is shown.

``SCALETEST_MIRROR_KUBERNETES``, ``_ETCD`` and ``_KWOK`` name other base URLs with the same files below; a mirror of
KWOK may have ``PROGRAM-linux-amd64.sha256`` beside each program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from scaletest.controlplane.binaries.versions import ETCD, KUBERNETES, Wanted

__all__ = ["Asset", "asset_for", "checksum_in"]

_KUBERNETES_BASE = "https://dl.k8s.io/release"
_ETCD_BASE = "https://github.com/etcd-io/etcd/releases/download"
_KWOK_BASE = "https://github.com/kubernetes-sigs/kwok/releases/download"
_KWOK_API = "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of a release."""

    url: str
    checksum_url: str
    checksum_required: bool
    """Whether a release without its checksum is refused."""
    member: str | None = None
    """Path of the program within the archive; None when the file is the program."""

    @property
    def file_name(self) -> str:
        """Last part of the URL."""
        return self.url.rsplit("/", 1)[1]


def asset_for(want: Wanted, environ: Mapping[str, str]) -> Asset:
    """Say which file of which release holds the program."""
    mirror = environ.get(f"SCALETEST_MIRROR_{want.family.name.upper()}", "").rstrip("/")
    tag, program = f"v{want.version}", want.component.program
    if want.family is KUBERNETES:
        url = f"{mirror or _KUBERNETES_BASE}/{tag}/bin/{want.goos}/{want.goarch}/{program}"
        return Asset(url, f"{url}.sha256", checksum_required=True)
    if want.family is ETCD:
        stem = f"etcd-{tag}-{want.platform}"
        base = f"{mirror or _ETCD_BASE}/{tag}"
        return Asset(f"{base}/{stem}.tar.gz", f"{base}/SHA256SUMS", checksum_required=True, member=f"{stem}/{program}")
    url = f"{mirror or _KWOK_BASE}/{tag}/{program}-{want.platform}"
    checksum_url = f"{url}.sha256" if mirror else f"{_KWOK_API}/{tag}"
    return Asset(url, checksum_url, checksum_required=not url.startswith("https://"))


def checksum_in(text: str, file_name: str) -> str | None:
    """Find the SHA-256 of a file in what was published.

    That is the bare digest, lines ``DIGEST  FILE`` as ``sha256sum`` writes them, or GitHub's description of a release.
    """
    stripped = text.strip()
    if stripped.startswith("{"):
        return _github_digest(stripped, file_name)
    words = stripped.split()
    if len(words) == 1:
        return _digest(words[0])
    for line in stripped.splitlines():
        digest, _, name = line.strip().partition(" ")
        if name.strip().removeprefix("*").removeprefix("./") == file_name:
            return _digest(digest)
    return None


def _github_digest(text: str, file_name: str) -> str | None:
    try:
        assets = json.loads(text).get("assets") or []
        by_name = {asset["name"]: str(asset.get("digest") or "") for asset in assets}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    algorithm, _, digest = by_name.get(file_name, "").partition(":")
    return _digest(digest) if algorithm == "sha256" else None


def _digest(text: str) -> str | None:
    lowered = text.lower()
    return lowered if _SHA256.fullmatch(lowered) else None
