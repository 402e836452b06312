"""The fourth source: download an official release and check it against its published checksum."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.progress import Progress
from scaletest.controlplane.binaries.releases import Asset, asset_for, checksum_in
from scaletest.controlplane.binaries.sources import Found, Miss, Planned, SourceName, reported_version
from scaletest.controlplane.binaries.transfer import Fetcher
from scaletest.controlplane.binaries.versions import Wanted
from scaletest.controlplane.binaries.web import TransferError, Web

__all__ = ["ReleaseSource"]


class ReleaseSource:
    """Downloads programs of official releases into the cache."""

    name: SourceName = "download"

    def __init__(self, cache: BinaryCache, environ: Mapping[str, str], web: Web) -> None:
        self._cache = cache
        self._environ = environ
        self._web = web
        self._fetcher = Fetcher(web)

    def plan(self, want: Wanted) -> Planned | Miss:
        """Ask the server whether it has the file."""
        asset = asset_for(want, self._environ)
        try:
            self._web.exists(asset.url)
        except TransferError as error:
            return Miss(str(error))
        return Planned(f"would be downloaded from {asset.url}")

    def locate(self, want: Wanted, progress: Progress) -> Found | Miss:
        """Download the program, unless another process has done so meanwhile."""
        asset = asset_for(want, self._environ)
        with self._cache.locked(want, "downloading", progress):
            cached = self._cache.lookup(want)
            if not isinstance(cached, str):
                return Found(cached.path, cached.record.origin)
            try:
                origin = self._fetch(want, asset, progress)
            except TransferError as error:
                return Miss(str(error))
            if isinstance(origin, Miss):
                return origin
            stored = self._cache.store(want, self._program_file(want), origin)
            return Found(stored.path, origin)

    def _program_file(self, want: Wanted) -> Path:
        return self._cache.work_dir(want) / want.component.program

    def _fetch(self, want: Wanted, asset: Asset, progress: Progress) -> str | Miss:
        """Leave the checked program in the work directory; return its origin in words."""
        sha256, doubt = self._published_checksum(asset)
        if sha256 is None and asset.checksum_required:
            return Miss(f"{asset.url} is not taken without its checksum: {doubt}")
        file = self._cache.work_dir(want) / asset.file_name
        with progress.task(f"{want}: downloading", "bytes") as task:
            self._fetcher.fetch(asset.url, file, sha256=sha256, task=task)
        try:
            problem = self._unpack(want, asset, file)
        finally:
            if file != self._program_file(want):
                file.unlink(missing_ok=True)
        if problem is not None:
            return problem
        if sha256 is None:
            progress.note(f"{want}: the download could not be checked against a checksum: {doubt}")
            return f"downloaded from {asset.url}, not verified: no checksum was to be had"
        return f"downloaded from {asset.url}, verified"

    def _published_checksum(self, asset: Asset) -> tuple[str | None, str]:
        try:
            # The checksum may lie elsewhere: two silent hosts would cost two time-outs.
            self._web.reach(asset.url)
            text = self._web.text(asset.checksum_url)
        except TransferError as error:
            if asset.checksum_required:
                raise
            return None, str(error)
        digest = checksum_in(text, asset.file_name)
        return digest, f"{asset.checksum_url} names none for {asset.file_name}"

    def _unpack(self, want: Wanted, asset: Asset, file: Path) -> Miss | None:
        program = self._program_file(want)
        if asset.member is not None:
            try:
                with tarfile.open(file) as archive:
                    member = archive.extractfile(asset.member)
                    if member is None:
                        return Miss(f"{asset.url}: {asset.member} is no file")
                    with member, program.open("wb") as target:
                        shutil.copyfileobj(member, target)
            except (tarfile.TarError, KeyError, EOFError) as error:
                return Miss(f"{asset.url}: {error}")
        elif file != program:
            file.replace(program)
        program.chmod(0o755)
        version = reported_version(program, want.family)
        if version != want.version:
            program.unlink()
            what = version.reason if isinstance(version, Miss) else f"is version {version}"
            return Miss(f"{asset.url}: the program {what}")
        return None
