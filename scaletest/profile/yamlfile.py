"""YAML text into plain values, with the line of every key.

The scalars are those of YAML 1.2's JSON schema: ``true``, ``false``, ``null``, whole numbers and decimal
fractions. Everything else is text: ``on``, ``no``, ``1e3``, ``0x10``, ``12:30`` and ``2026-01-01`` are what they look like.
A key given twice is an error. Aliases are followed, merge keys (``<<``) and tags are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final

from yaml.composer import Composer
from yaml.error import MarkedYAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from scaletest.core.errors import Problem, ProfileError
from scaletest.core.texts import encodable
from scaletest.profile.places import Path, dotted

__all__ = ["LARGEST_FILE_BYTES", "Document", "parse_text", "read_text", "resolve_scalar"]

LARGEST_FILE_BYTES: Final = 256 * 1024
"""PyYAML reads 160 KB in a second of CPU time; the largest profile that a person writes is far smaller."""
_MOST_VALUES: Final = 50_000
"""Aliases included: nine levels of nine aliases would make a thousand million values of one line each."""

_DEEPEST: Final = 64
"""Levels of lists and maps, aliases included; a profile has about ten."""

_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final[tuple[tuple[str, re.Pattern[str], list[str]], ...]] = (
    ("null", re.compile(r"(?:null|~|)\Z"), ["n", "~", ""]),
    ("bool", re.compile(r"(?:true|false)\Z"), ["t", "f"]),
    # Up to 18 digits: a longer number would not survive as one in JSON, and none is meant.
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z"), list("-+0123456789")),
    ("float", re.compile(r"(?:[-+]?[0-9]{1,18}\.[0-9]*|\.[0-9]+)\Z"), list("-+.0123456789")),
)


class _Resolver(BaseResolver):
    pass


for _kind, _pattern, _first in _SCALARS:
    _Resolver.add_implicit_resolver(_TAG + _kind, _pattern, _first)


class _Loader(Reader, Scanner, Parser, Composer, _Resolver):
    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        _Resolver.__init__(self)


_TOO_DEEP: Final = "is nested too deeply: no profile is"


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a YAML text, and the 1-based line of each key or list item."""

    data: Any
    lines: dict[Path, int]
    problems: list[Problem]

    def line(self, path: Path) -> int:
        """Return the line of a path, or of the nearest part of it that the text has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_text(path: FilePath) -> str:
    """Read a UTF-8 text file. Raises ProfileError that says why it is none."""

    def problem(what: str, line: int | None = None) -> Problem:
        return Problem(what, file=str(path), line=line)

    try:
        if path.is_dir():
            raise ProfileError([problem("is a directory, not a profile")])
        if path.exists() and not path.is_file():
            raise ProfileError([problem("is no ordinary file")])
        with path.open("rb") as stream:
            raw = stream.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        raise ProfileError([problem("no such file")]) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ProfileError([problem(f"cannot be read: {reason}")]) from None
    if len(raw) > LARGEST_FILE_BYTES:
        raise ProfileError([problem(f"is larger than {LARGEST_FILE_BYTES // 1024} KiB: no profile is")])
    if b"\0" in raw:
        raise ProfileError([problem("is not a text file")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ProfileError([problem(f"is not UTF-8 (byte 0x{raw[error.start]:02x})", line)]) from None


def resolve_scalar(text: str) -> Any:
    """Return the value of a plain scalar: None, bool, int, float or the text itself."""
    for kind, pattern, _ in _SCALARS:
        if pattern.match(text):
            return _convert(kind, text)
    return text


def _convert(kind: str, text: str) -> Any:
    match kind:
        case "null":
            return None
        case "bool":
            return text == "true"
        case "int":
            return int(text)
    return float(text)


def parse_text(text: str, file: str) -> Document:
    """Parse YAML. Raises ProfileError, with ``file`` and the line, for text that is not YAML.

    Duplicate keys, tags and merge keys are in the document's ``problems``, so that others can be found too.
    """
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"holds a character that YAML does not allow (U+{ord(text[error.position]):04X})"
        raise ProfileError([Problem(what, file=file, line=line)]) from None
    except MarkedYAMLError as error:
        raise ProfileError([_syntax_problem(error, file)]) from None
    except RecursionError:
        begun = None if loader is None else int(loader.line) + 1
        raise ProfileError([Problem(_TOO_DEEP, file=file, line=begun)]) from None
    builder = _Builder(file)
    data = None if root is None else builder.build(root, ())
    return Document(data, builder.lines, builder.problems)


@dataclass(slots=True)
class _Builder:
    """Turns nodes into plain values; several aliases of one node become equal but separate values."""

    file: str
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _values: int = 0
    _open: set[int] = field(default_factory=set)

    def build(self, node: Node, path: Path) -> Any:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise ProfileError([Problem(f"holds more than {_MOST_VALUES:,} values, aliases included", file=self.file)])
        if len(path) > _DEEPEST:
            raise ProfileError([Problem(_TOO_DEEP, file=self.file, line=node.start_mark.line + 1)])
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self._refuse(node, path, "an alias to something that it is part of")
            return None
        self._open.add(id(node))
        if node.tag not in {None, _TAG + "map", _TAG + "seq"}:
            self._refuse(node, path, f"tags are not supported: {node.tag.removeprefix(_TAG)}")
        value = self._mapping(node, path) if isinstance(node, MappingNode) else self._sequence(node, path)
        self._open.discard(id(node))
        return value

    def _refuse(self, node: Node, path: Path, what: str) -> None:
        self.problems.append(Problem(what, file=self.file, line=node.start_mark.line + 1, key=dotted(path) or None))

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if kind == "str":
            return encodable(node.value)
        known = next((pattern for name, pattern, _ in _SCALARS if name == kind), None)
        if known is None or not known.match(node.value):
            self._refuse(node, path, f"tags are not supported: {kind}")
            return node.value
        return _convert(kind, node.value)

    def _sequence(self, node: Node, path: Path) -> list[Any]:
        assert isinstance(node, SequenceNode)
        return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._refuse(key_node, path, "a key must be text; put text with { or [ in quotes")
                continue
            key = encodable(key_node.value)
            place = (*path, key)
            if key == "<<" and key_node.style is None:
                self._refuse(key_node, place, "merge keys are not supported: write the keys out")
                continue
            if key in values:
                self._refuse(key_node, place, f"the key is given twice, first in line {self.lines[place]}")
                continue
            self.lines[place] = key_node.start_mark.line + 1
            values[key] = self.build(value_node, place)
        return values


_EXPLANATIONS: Final[tuple[tuple[str, str], ...]] = (
    (r"character '\\t'", "a tab: YAML is indented with spaces"),
    (r"character '[@`%]'", "text that begins with this character must be in quotes"),
    (r"mapping values are not allowed", "a ': ' where none can be: wrong indentation, or text that must be in quotes"),
    (r"could not find expected ':'", "a line without ': ', or a quote that is not closed in the line before"),
    (r"unexpected end of stream", "a quote is opened and not closed"),
    (r"unexpected document separator", "a quote is opened and not closed"),
    (r"expected ',' or '[\]}]'", "a bracket is not closed, or a comma is missing"),
    (r"expected <block end>", "wrong indentation, or text after a closing quote or bracket"),
    (r"expected the node content", "a value is missing"),
    (r"undefined alias", "the alias refers to no anchor before it"),
    (r"duplicate anchor", "the anchor is given twice"),
    (r"but found another document", "a second document begins: a profile is one"),
    (r"but found '<document start>'", "text after the end of the document, or wrong indentation"),
    (r"unknown escape character", "an unknown escape in double quotes: use single quotes"),
)


def _syntax_problem(error: MarkedYAMLError, file: str) -> Problem:
    found = " ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    begun = error.context_mark
    explanation = next((text for pattern, text in _EXPLANATIONS if re.search(pattern, found)), None)
    hint = None
    if begun is not None and mark is not None and begun.line != mark.line:
        hint = f"what it belongs to begins in line {begun.line + 1}"
    line = mark.line + 1 if mark is not None else None
    what = f"not valid YAML: {explanation}" if explanation else f"not valid YAML: {error.problem or found}"
    return Problem(what, file=file, line=line, hint=hint)
