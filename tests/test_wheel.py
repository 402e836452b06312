"""The wheel, installed into a fresh environment elsewhere, carries profiles and KWOK files and works.

What it depends on is lent by the environment of the tests, which was installed from the same metadata: installing it
a second time was a minute of each run. The environment's own, editable scaletest is not lent with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.analysis.journals import small_run, write_run

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).resolve().parent.parent


def run(*argv: str, cwd: Path) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment with nothing but the wheel, and its dependencies lent."""
    place = tmp_path_factory.mktemp("elsewhere")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(ROOT), cwd=place)
    (wheel,) = place.glob("*.whl")
    run(sys.executable, "-m", "venv", "venv", cwd=place)
    python = place / "venv/bin/python"
    run(str(python), "-m", "pip", "install", "-q", "--no-deps", str(wheel), cwd=place)
    (packages,) = (place / "venv/lib").glob("python*/site-packages")
    # The .pth files of a directory that a .pth file names are not read: the editable install stays out of it.
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "venv/bin"


def test_the_installed_command_knows_the_built_in_profiles(installed: Path, tmp_path: Path) -> None:
    listed = run(str(installed / "scaletest"), "profiles", "list", cwd=tmp_path)
    for profile in (ROOT / "profiles").glob("*.yaml"):
        assert profile.stem in listed


def test_the_installed_package_reads_its_data_from_within_itself(installed: Path, tmp_path: Path) -> None:
    code = (
        "from scaletest.core.paths import data_file_dir; "
        "print(*(p for n in ('profiles', 'kwok') for p in sorted(data_file_dir(n).glob('*.yaml'))), sep='\\n')"
    )
    files = run(str(installed / "python"), "-c", code, cwd=tmp_path).split()
    expected = {path.name for name in ("profiles", "kwok") for path in (ROOT / name).glob("*.yaml")}
    assert {Path(file).name for file in files} == expected
    assert all(Path(file).is_relative_to(installed.parent) for file in files)


def test_the_installed_command_validates_a_profile(installed: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\nsummary: s\nphases: [{name: a, fro: 1s}]\nobjectives: []\n")
    done = subprocess.run(
        [installed / "scaletest", "profiles", "validate", bad], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "bad.yaml:3" in done.stdout + done.stderr


def test_the_installed_command_makes_the_page_of_a_run(installed: Path, tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", small_run())
    page = run(str(installed / "scaletest"), "report", str(directory), "--format", "html", cwd=tmp_path)
    assert "uPlot" in page
    assert page.endswith("</html>\n")
