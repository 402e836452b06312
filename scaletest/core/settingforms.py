"""The types of settings: how each is written in a TOML file and in the environment, and what it is read as."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scaletest.core.gaterules import split_rule
from scaletest.core.units import whole_number

__all__ = ["PATH", "RULES", "URL", "VERSION", "VERSION_PATTERN", "Form", "choice", "count"]


@dataclass(frozen=True, slots=True)
class Form:
    """A type of settings. Both readers raise ValueError that says what the value is not."""

    from_text: Callable[[str], Any]
    """Reads what stands in the environment, where everything is text."""
    from_toml: Callable[[Any, Path], Any]
    """Reads a TOML value of a file in a directory."""
    choices: tuple[str, ...] = ()


VERSION_PATTERN: Final = r"v?[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4}(-[0-9A-Za-z.-]{1,40})?)?"
"""Versions of Kubernetes and etcd, as settings and profiles have them."""
_VERSION: Final = re.compile(VERSION_PATTERN, re.ASCII)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        msg = f"{value!r} is no {what}: write it in quotes"
        raise ValueError(msg)
    if not value:
        msg = f"an empty text is no {what}"
        raise ValueError(msg)
    if "\0" in value:
        msg = f"{value!r} is no {what}: it holds a NUL character"
        raise ValueError(msg)
    return value


def _form(what: str, read: Callable[[str], Any], choices: tuple[str, ...] = ()) -> Form:
    """Return a type whose values are texts in both."""
    return Form(read, lambda value, _directory: read(_text(value, what)), choices)


def _path_in(value: Any, directory: Path) -> Path:
    path = directory / Path(_text(value, "path")).expanduser()
    try:
        # As a person would write it here.
        return path.relative_to(Path.cwd())
    except (ValueError, FileNotFoundError):
        return path


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        msg = f"{text!r} is no version: write 1.37 or 1.37.2"
        raise ValueError(msg)
    return text


def _url(text: str) -> str:
    if not text.startswith(("https://", "http://")):
        msg = f"{text!r} is no URL: it begins with https:// or http://"
        raise ValueError(msg)
    return text


def _rules_in(value: Any, _directory: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(rule, str) for rule in value):
        msg = 'not a list of texts: write ["p99:10%"]'
        raise ValueError(msg)
    return _checked_rules(value)


def _rules(text: str) -> tuple[str, ...]:
    return _checked_rules(rule.strip() for rule in text.split(",") if rule.strip())


def _checked_rules(rules: Iterable[str]) -> tuple[str, ...]:
    checked = tuple(rules)
    for rule in checked:
        split_rule(rule)
    return checked


def choice(*words: str) -> Form:
    """Return the type of one of some words."""

    def read(text: str) -> str:
        if text not in words:
            msg = f"{text!r} is none of {', '.join(words)}"
            raise ValueError(msg)
        return text

    return _form(f"one of {', '.join(words)}", read, words)


def count(least: int, most: int) -> Form:
    """Return the type of whole numbers."""

    def check(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            msg = f"{value!r} is no whole number from {least} to {most}"
            raise ValueError(msg)
        return value

    def read(text: str) -> int:
        number = whole_number(text)
        return check(text if number is None else number)

    return Form(read, lambda value, _directory: check(value))


PATH: Final = Form(lambda text: Path(text).expanduser(), _path_in)
"""A file or directory; in a file, relative to the directory of that file."""
VERSION: Final = _form("version", _version)
URL: Final = _form("URL", _url)
RULES: Final = Form(_rules, _rules_in)
"""Rules of the gate; in the environment with commas between them."""
