from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.versions import COMPONENTS, FAMILIES, wanted
from tests.controlplane.binaries.programs import program, put

RUN = """
import sys
from scaletest.cli.binaries import app
from scaletest.core.errors import ScaletestError
try:
    app()
except ScaletestError as error:
    print(error.message, error.hint, sep="\\n", file=sys.stderr)
    sys.exit(int(error.exit_code))
"""


@pytest.fixture
def filled(tmp_path: Path) -> BinaryCache:
    cache = BinaryCache(tmp_path / "cache")
    for family in FAMILIES:
        version = list(family.pins.values())[-1]
        for component in family.components:
            want = wanted(component.name, version)
            cache.store(want, put(cache.work_dir(want) / "new", program(family.name, version)), "a test")
    return cache


def binaries(root: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    # Neither Go nor a network: what is not cached cannot be had.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SCALETEST_")}
    mirrors = {f"SCALETEST_MIRROR_{family.name.upper()}": "http://127.0.0.1:1" for family in FAMILIES}
    environ = {**clean, **mirrors, "SCALETEST_CACHE_DIR": str(root), "PATH": "/nowhere", **environ}
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments], env=environ, capture_output=True, text=True, check=False, timeout=60
    )


def test_list_shows_the_cache_as_text_and_json(filled: BinaryCache) -> None:
    text = binaries(filled.root, "list")
    rows = json.loads(binaries(filled.root, "list", "--format", "json").stdout)

    assert text.returncode == 0
    for name in COMPONENTS:
        assert name in text.stdout
    assert {row["component"] for row in rows} == set(COMPONENTS)
    assert {row["origin"] for row in rows} == {"a test"}
    assert all(Path(row["path"]).stat().st_size == row["size_bytes"] for row in rows)


def test_list_of_a_version_says_where_each_would_come_from(filled: BinaryCache) -> None:
    rows = json.loads(binaries(filled.root, "list", "--kubernetes", "1.31", "--format", "json").stdout)

    by_name = {row["component"]: row for row in rows}
    assert by_name["etcd"]["origin"] == "cache: a test"
    assert by_name["kube-apiserver"]["version"] == "1.31.4"
    assert by_name["kube-apiserver"]["path"] is None
    assert "Connection refused" in by_name["kube-apiserver"]["origin"]
    assert "no Go on PATH" in by_name["kube-apiserver"]["origin"]


def test_an_empty_cache_is_said(tmp_path: Path) -> None:
    done = binaries(tmp_path / "none", "list")

    assert (done.returncode, done.stdout) == (0, "")
    assert "The cache is empty" in done.stderr


def test_fetch_takes_what_is_there_and_given_paths(filled: BinaryCache, tmp_path: Path) -> None:
    mine = put(tmp_path / "my-etcd", program("etcd", "3.6.16"))

    done = binaries(filled.root, "fetch", "--binary", f"etcd={mine}")

    assert done.returncode == 0, done.stderr
    assert str(mine) in done.stdout
    assert "given by --binary etcd=PATH" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fetch", "--kubernetes", "1.35"], 2, "known are 1.31"),
        (["list", "--kubernetes", "latest"], 2, "'latest' is not a version of Kubernetes"),
        (["fetch", "--etcd", "3.4"], 2, "known are 3.6"),
        (["fetch", "--binary", "kubelet=/x"], 2, "write COMPONENT=PATH"),
        (["fetch", "--binary", "etcd=/no/such/file"], 3, "/no/such/file does not exist"),
        (["fetch", "--kubernetes", "1.31"], 3, "no source has kube-apiserver 1.31.4"),
        (["build"], 3, "no Go on PATH"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_mistakes_end_in_one_message_and_their_exit_code(
    filled: BinaryCache, arguments: list[str], code: int, said: str
) -> None:
    done = binaries(filled.root, *arguments)

    assert code == done.returncode
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_verify_names_the_damaged_file_and_exits_with_3(filled: BinaryCache) -> None:
    sound = binaries(filled.root, "verify")
    path = filled.path_of(wanted("etcd", "3.6"))
    put(path, program("etcd", "3.6.15"))
    damaged = binaries(filled.root, "verify")

    assert (sound.returncode, sound.stdout) == (0, "6 of 6 cached binaries are as recorded.\n")
    assert (damaged.returncode, damaged.stdout) == (3, "5 of 6 cached binaries are as recorded.\n")
    assert str(path) in damaged.stderr
    assert "SHA-256" in damaged.stderr


def test_help_imports_no_engine() -> None:
    code = "import sys; from scaletest.cli import binaries; print([m for m in sys.modules if 'scaletest.' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "controlplane" not in done.stdout
