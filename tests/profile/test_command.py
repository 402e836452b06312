from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from scaletest.core.errors import ExitCode
from scaletest.profile.loading import load_profile
from scaletest.profile.schema import Profile
from tests.profile.samples import FULL, SMALL, write

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "profiles.md"


def profiles(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scaletest", "profiles", *arguments], capture_output=True, text=True, check=False
    )


def test_list_says_names_and_summaries() -> None:
    text, document = profiles("list"), profiles("list", "--format", "json")
    entries = json.loads(document.stdout)

    assert (0, 0) == (text.returncode, document.returncode)
    assert [entry["name"] for entry in entries] == [line.split()[0] for line in text.stdout.splitlines()]
    assert all(entry["summary"] in text.stdout for entry in entries)


def test_show_prints_a_profile_that_loads_as_the_same(tmp_path: Path) -> None:
    shown = profiles("show", "smoke", "--set", "nodes=7", "--origin")
    loaded = load_profile(write(tmp_path, shown.stdout))

    assert (0, "") == (shown.returncode, shown.stderr)
    assert load_profile("smoke", ["nodes=7"]).profile == loaded.profile
    assert re.search(r"nodes: 7 +# smoke.yaml:\d+ via \{nodes\} from --set nodes=7", shown.stdout)


def test_show_as_json_has_the_profile_and_its_origins() -> None:
    document = json.loads(profiles("show", "smoke", "--format", "json", "--origin").stdout)

    assert load_profile("smoke").profile == Profile.model_validate(document["profile"])
    assert "default" == document["origins"]["fleet.via"]


def test_validate_names_valid_profiles_on_stdout_and_warnings_on_stderr(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL + "parameters: {idle: 1}\n")
    ended = profiles("validate", "smoke", path)

    assert (0, f"smoke: valid\n{path}: valid\n") == (ended.returncode, ended.stdout)
    assert f"warning: {path}:7: parameters.idle: nothing uses this parameter\n" == ended.stderr


def test_validate_shows_the_problems_of_all_files(tmp_path: Path) -> None:
    fine = write(tmp_path, FULL, "fine.yaml")
    first = write(tmp_path, SMALL.replace("1s", "1"), "first.yaml")
    second = write(tmp_path, SMALL + "x: 1\ny: 1\n", "second.yaml")
    ended = profiles("validate", first, fine, second, str(tmp_path / "none.yaml"), "smok")

    assert (ExitCode.USAGE, f"{fine}: valid\n") == (ended.returncode, ended.stdout)
    assert [
        f"{first}:4",
        f"{second}:7",
        f"{second}:8",
        f"{tmp_path}/none.yaml",
        "there is no built-in profile 'smok' (did you mean smoke? built in",
    ] == [line.removeprefix("scaletest:").strip().split(": ")[0] for line in ended.stderr.splitlines()[:-1]]
    assert "  5 problems found" == ended.stderr.splitlines()[-1]


def test_every_override_in_the_guide_can_be_set() -> None:
    overrides = re.findall(r"^\| `--set '?([^`']+)'?` \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)

    assert 7 == len(overrides)
    assert 100 == load_profile("smoke", overrides).profile.fleet.node_count


def test_problems_stand_below_each_other_and_a_number_below_zero_is_told_as_too_small() -> None:
    ended = profiles("show", "smoke", "--set", "nodes=-1")
    first, *others = ended.stderr.splitlines()

    assert first.startswith("scaletest: --set nodes=-1: fleet.pools.0.nodes: must be at least 0, not -1")
    assert others
    assert all(line.startswith("  --set nodes=-1: ") and "-1 is too small: at least 0" in line for line in others)
