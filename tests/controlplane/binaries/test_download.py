from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.download import ReleaseSource
from scaletest.controlplane.binaries.sources import Found, Miss, Planned
from scaletest.controlplane.binaries.versions import Wanted, wanted
from scaletest.controlplane.binaries.web import Web
from tests.controlplane.binaries.programs import RecordedProgress, program
from tests.controlplane.binaries.release_server import ReleaseServer, loopback_tls, serving

APISERVER = wanted("kube-apiserver", "1.37.2")
ETCD = wanted("etcd", "3.6.16")
KWOKCTL = wanted("kwokctl", "0.8.0")
APISERVER_PATH = f"/v1.37.2/bin/{APISERVER.goos}/{APISERVER.goarch}/kube-apiserver"
KWOKCTL_PATH = f"/v0.8.0/kwokctl-{KWOKCTL.platform}"
PROGRAM = program("kubernetes", "1.37.2", size_bytes=600_000)


def source(server: ReleaseServer, root: Path, web: Web | None = None) -> ReleaseSource:
    mirrors = {f"SCALETEST_MIRROR_{family}": server.base for family in ("KUBERNETES", "ETCD", "KWOK")}
    return ReleaseSource(BinaryCache(root), mirrors, web or Web())


def etcd_archive(member: str = f"etcd-v3.6.16-{ETCD.platform}/etcd") -> bytes:
    content = program("etcd", "3.6.16")
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data in (("../evil", b"x"), (member, content)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(raw.getvalue())


def assert_nothing_but_locks_left(root: Path, want: Wanted) -> None:
    assert isinstance(BinaryCache(root).lookup(want), str)
    assert [path.name for path in BinaryCache(root).work_dir(want).iterdir()] == []


def test_a_released_program_arrives_in_the_cache_verified(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish(APISERVER_PATH, PROGRAM)
    progress = RecordedProgress()

    found = source(server, tmp_path).locate(APISERVER, progress)

    expected = Found(
        BinaryCache(tmp_path).path_of(APISERVER), f"downloaded from {server.base}{APISERVER_PATH}, verified"
    )
    assert expected == found
    assert expected.path.read_bytes() == PROGRAM
    assert [(task.label, task.unit) for task in progress.tasks] == [("kube-apiserver 1.37.2: downloading", "bytes")]
    assert progress.tasks[0].updates[-1] == (600_000, 600_000)


def test_a_second_locate_takes_it_from_the_cache(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish(APISERVER_PATH, PROGRAM)
    first = source(server, tmp_path).locate(APISERVER, RecordedProgress())

    assert first == source(server, tmp_path).locate(APISERVER, RecordedProgress())
    assert len(server.gets(APISERVER_PATH)) == 1


def test_a_wrong_checksum_is_a_miss_and_leaves_nothing(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish(APISERVER_PATH, PROGRAM)
    server.files[APISERVER_PATH] = PROGRAM[:-1] + b"!"

    miss = source(server, tmp_path).locate(APISERVER, RecordedProgress())

    assert isinstance(miss, Miss)
    assert "it was thrown away" in miss.reason
    assert hashlib.sha256(PROGRAM).hexdigest() in miss.reason
    assert_nothing_but_locks_left(tmp_path, APISERVER)


@pytest.mark.parametrize("checksum", [None, b"<html>no such file</html>"])
def test_kubernetes_without_a_checksum_is_not_taken(
    server: ReleaseServer, tmp_path: Path, checksum: bytes | None
) -> None:
    server.files[APISERVER_PATH] = PROGRAM
    if checksum is not None:
        server.files[APISERVER_PATH + ".sha256"] = checksum

    miss = source(server, tmp_path).locate(APISERVER, RecordedProgress())

    assert isinstance(miss, Miss)
    assert ".sha256" in miss.reason
    assert server.gets(APISERVER_PATH) == []


def test_a_version_that_was_never_released_is_a_miss_with_the_address(server: ReleaseServer, tmp_path: Path) -> None:
    one = source(server, tmp_path)

    planned, located = one.plan(APISERVER), one.locate(APISERVER, RecordedProgress())

    assert planned == Miss(f"{server.base}{APISERVER_PATH}: 404 Not Found")
    assert located == Miss(f"{server.base}{APISERVER_PATH}.sha256: 404 Not Found")


def test_a_plan_fetches_nothing(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish(APISERVER_PATH, PROGRAM)

    plan = source(server, tmp_path).plan(APISERVER)

    assert plan == Planned(f"would be downloaded from {server.base}{APISERVER_PATH}")
    assert server.gets(APISERVER_PATH) == []
    assert list(tmp_path.iterdir()) == []


def test_a_release_of_another_version_than_its_name_is_refused(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish(APISERVER_PATH, program("kubernetes", "1.36.0"))

    miss = source(server, tmp_path).locate(APISERVER, RecordedProgress())

    assert miss == Miss(f"{server.base}{APISERVER_PATH}: the program is version 1.36.0")
    assert_nothing_but_locks_left(tmp_path, APISERVER)


def test_etcd_is_taken_out_of_its_archive_and_nothing_else(server: ReleaseServer, tmp_path: Path) -> None:
    archive = etcd_archive()
    name = f"etcd-v3.6.16-{ETCD.platform}.tar.gz"
    server.files[f"/v3.6.16/{name}"] = archive
    sums = f"{'0' * 64}  etcd-v3.6.16-other.zip\n{hashlib.sha256(archive).hexdigest()}  {name}\n"
    server.files["/v3.6.16/SHA256SUMS"] = sums.encode()

    found = source(server, tmp_path).locate(ETCD, RecordedProgress())

    assert isinstance(found, Found)
    assert found.path.read_bytes() == program("etcd", "3.6.16")
    assert list(BinaryCache(tmp_path).work_dir(ETCD).iterdir()) == []
    assert not (tmp_path / "work/evil").exists()


@pytest.mark.parametrize("archive", [etcd_archive("etcd"), b"not an archive", etcd_archive()[:-40]])
def test_an_archive_without_the_program_is_a_miss(server: ReleaseServer, tmp_path: Path, archive: bytes) -> None:
    name = f"etcd-v3.6.16-{ETCD.platform}.tar.gz"
    server.files[f"/v3.6.16/{name}"] = archive
    server.files["/v3.6.16/SHA256SUMS"] = f"{hashlib.sha256(archive).hexdigest()}  {name}\n".encode()

    miss = source(server, tmp_path).locate(ETCD, RecordedProgress())

    assert isinstance(miss, Miss)
    assert name in miss.reason
    assert isinstance(BinaryCache(tmp_path).lookup(ETCD), str)


def test_kwok_from_a_mirror_with_checksums_is_verified(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish(KWOKCTL_PATH, program("kwok", "0.8.0"))

    found = source(server, tmp_path).locate(KWOKCTL, RecordedProgress())

    assert isinstance(found, Found)
    assert found.origin.endswith(", verified")


def test_kwok_without_a_checksum_is_refused_over_http(server: ReleaseServer, tmp_path: Path) -> None:
    server.files[KWOKCTL_PATH] = program("kwok", "0.8.0")

    miss = source(server, tmp_path).locate(KWOKCTL, RecordedProgress())

    assert isinstance(miss, Miss)
    assert server.gets(KWOKCTL_PATH) == []


def test_kwok_without_a_checksum_is_taken_over_https_and_said_to_be_unverified(tmp_path: Path) -> None:
    server_tls, client_tls = loopback_tls(tmp_path)
    progress = RecordedProgress()
    with serving(server_tls) as secure:
        secure.files[KWOKCTL_PATH] = program("kwok", "0.8.0")
        found = source(secure, tmp_path / "cache", Web(ssl_context=client_tls)).locate(KWOKCTL, progress)

    assert isinstance(found, Found)
    assert found.origin.endswith("not verified: no checksum was to be had")
    assert any("could not be checked" in note and "404" in note for note in progress.notes)


def test_githubs_digest_convicts_a_changed_kwok(server: ReleaseServer, tmp_path: Path) -> None:
    server.files[KWOKCTL_PATH] = program("kwok", "0.8.0")
    name = KWOKCTL_PATH.rsplit("/", 1)[1]
    release = {"assets": [{"name": name, "digest": f"sha256:{'0' * 64}"}]}
    server.files[KWOKCTL_PATH + ".sha256"] = json.dumps(release).encode()

    miss = source(server, tmp_path).locate(KWOKCTL, RecordedProgress())

    assert isinstance(miss, Miss)
    assert "thrown away" in miss.reason


FETCH = """
import os, sys
from pathlib import Path
from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.download import ReleaseSource
from scaletest.controlplane.binaries.progress import SilentProgress
from scaletest.controlplane.binaries.web import Web
from scaletest.controlplane.binaries.versions import wanted
source = ReleaseSource(BinaryCache(Path(sys.argv[1])), os.environ, Web())
print(source.locate(wanted("kube-apiserver", "1.37.2"), SilentProgress()).path)
"""


def test_processes_that_want_the_same_program_at_once_download_it_once(server: ReleaseServer, tmp_path: Path) -> None:
    server.publish(APISERVER_PATH, PROGRAM)
    environ = {**os.environ, "SCALETEST_MIRROR_KUBERNETES": server.base}
    children = [
        subprocess.Popen([sys.executable, "-c", FETCH, str(tmp_path)], stdout=subprocess.PIPE, env=environ, text=True)
        for _ in range(4)
    ]
    outputs = {child.communicate()[0].strip() for child in children}

    assert outputs == {str(BinaryCache(tmp_path).path_of(APISERVER))}
    assert len(server.gets(APISERVER_PATH)) == 1
