"""What Jenkins takes for JUnit XML: the rules of ``junit-10.xsd`` of its xUnit plugin, as far as scaletest writes such elements."""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree as ET

__all__ = ["problems"]

_TIME: Final = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_MIXED: Final = frozenset({"failure", "error", "skipped", "system-out", "system-err"})
_REQUIRED: Final = {
    "testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}, "property": {"name", "value"},
}  # fmt: skip
_ALLOWED: Final = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "time", "classname", "group"},
    "failure": {"type", "message"}, "error": {"type", "message"}, "skipped": {"type", "message"},
    "system-out": set(), "system-err": set(),
}  # fmt: skip
_CHILDREN: Final = {
    "testsuites": {"testsuite"},
    "testsuite": {"testsuite", "properties", "testcase", "system-out", "system-err"},
    "properties": {"property"},
    "testcase": {"skipped", "error", "failure", "system-out", "system-err"},
}  # fmt: skip


def problems(root: ET.Element) -> list[str]:
    """Return what the schema does not allow."""
    if root.tag != "testsuites":
        return [f"{root.tag} is the root"]
    return [problem for element in root.iter() for problem in _problems(element)]


def _problems(element: ET.Element) -> list[str]:
    tag, given = element.tag, set(element.keys())
    found = [f"{tag} has {name}" for name in sorted(given - _ALLOWED.get(tag, set()))]
    found += [f"{tag} lacks {name}" for name in sorted(_REQUIRED.get(tag, set()) - given)]
    found += [f"{tag} holds {child.tag}" for child in element if child.tag not in _CHILDREN.get(tag, set())]
    if tag not in _MIXED and ((element.text or "").strip() or any((child.tail or "").strip() for child in element)):
        found.append(f"{tag} holds text")
    found += [
        f"{tag}: {element.get(name)} is no number"
        for name in ("tests", "failures", "errors", "skipped")
        if name in given and not str(element.get(name)).isdigit()
    ]
    if "time" in given and not _TIME.fullmatch(str(element.get("time"))):
        found.append(f"{tag}: {element.get('time')} is no time")
    if "timestamp" in given and not _TIMESTAMP.fullmatch(str(element.get("timestamp"))):
        found.append(f"{tag}: {element.get('timestamp')} is no time stamp")
    return found
