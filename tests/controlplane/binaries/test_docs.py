from __future__ import annotations

import re
from pathlib import Path

from scaletest.controlplane.binaries.versions import COMPONENTS, FAMILIES, component_named

GUIDE = (Path(__file__).parents[3] / "docs/guide/binaries.md").read_text(encoding="utf-8")


def test_the_guide_lists_exactly_the_pinned_versions() -> None:
    expected = [(family.title, minor, patch) for family in FAMILIES for minor, patch in family.pins.items()]
    rows = re.findall(r"^\| (\w+) \| (\d+\.\d+) \| (\d+\.\d+\.\d+) \|$", GUIDE, re.MULTILINE)

    assert sorted(expected) == sorted(rows)


def test_the_guide_names_every_environment_variable() -> None:
    for name in COMPONENTS:
        assert component_named(name).environment_key in GUIDE
    for family in FAMILIES:
        assert f"SCALETEST_MIRROR_{family.name.upper()}" in GUIDE
