"""A resolved profile as YAML, plain or with the origin of every value beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from scaletest.core.units import write_number
from scaletest.profile.loading import Origin
from scaletest.profile.parameters import AS_WRITTEN, escape
from scaletest.profile.places import Path, dotted, leaves
from scaletest.profile.yamlfile import parse_text

__all__ = ["to_yaml", "to_yaml_with_origins"]

_ORIGIN_COLUMN = 56
"""A longer line has its origin one space further right."""


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - as in PyYAML
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - as in PyYAML
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # One value, one line: so that its origin can stand beside it.
    style = '"' if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _float(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    # Without an exponent, which would read back as text.
    text = write_number(value)
    return dumper.represent_scalar("tag:yaml.org,2002:float", text if "." in text else f"{text}.0")


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _float)


def to_yaml(resolved: Mapping[str, Any], searched: Mapping[Path, str] | None = None) -> str:
    """Write a resolved profile so that it loads as the same profile; ``searched`` are texts that hold a search's parameter."""
    text: str = yaml.dump(
        _escaped(dict(resolved), (), searched or {}),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1 << 30,
    )
    return text


def to_yaml_with_origins(
    resolved: Mapping[str, Any], provenance: Mapping[str, Origin], searched: Mapping[Path, str] | None = None
) -> str:
    """Write a resolved profile with a comment behind each value that says where it came from."""
    text = to_yaml(resolved, searched)
    document = parse_text(text, "resolved")
    origins = {
        document.lines[path]: f"# {provenance[dotted(path)]}"
        for path, _ in leaves(resolved)
        if dotted(path) in provenance
    }
    lines = [
        f"{line:<{_ORIGIN_COLUMN}} {origins[number]}" if number in origins else line
        for number, line in enumerate(text.splitlines(), start=1)
    ]
    return "\n".join(lines) + "\n"


def _escaped(value: Any, path: Path, searched: Mapping[Path, str]) -> Any:
    if path in searched:
        return searched[path]
    if isinstance(value, dict):
        return {
            key: item if path and path[0] in AS_WRITTEN else _escaped(item, (*path, key), searched)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_escaped(item, (*path, index), searched) for index, item in enumerate(value)]
    return escape(value, path) if isinstance(value, str) else value
