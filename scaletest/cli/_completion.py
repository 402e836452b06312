"""What the shell offers for an argument or option: names and keys, found without reading a run or a whole schema unless it must.

A completion never fails: where something is missing or wrong, nothing is offered, and the shell offers files.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final

import typer

from scaletest.cli._formats import COMPARED, Format
from scaletest.cli._settings import settings_here
from scaletest.core.settings import RESULTS, SETTINGS

__all__ = [
    "against",
    "baselines",
    "binaries",
    "clusters",
    "comparison_files",
    "complete_for_bash",
    "fail_rules",
    "matrix_keys",
    "metrics",
    "profiles",
    "report_files",
    "runs",
    "set_keys",
    "setting_keys",
    "sides",
    "sizes",
    "variants",
]

_Completer = Callable[[typer.Context, str], list[str]]


def _never_failing(complete: Callable[[Mapping[str, Any], str], Iterable[str]]) -> _Completer:
    """Return what Typer calls for a completion: with the arguments so far, and the word that is begun."""

    @wraps(complete)
    def completed(context: typer.Context, incomplete: str) -> list[str]:
        try:
            return [word for word in complete(_given(context), incomplete) if word.startswith(incomplete)]
        except Exception:  # noqa: BLE001 -- whatever it is, a shell's prompt is no place to say it
            return []

    # Typer reads what it may pass from here.
    completed.__annotations__ = {"context": typer.Context, "incomplete": str}
    del completed.__wrapped__
    return completed


def _given(context: typer.Context) -> dict[str, Any]:
    """Return the arguments and options so far, by parameter."""
    # Behind an option that waits for its value, Click has not told the arguments apart yet.
    names = [parameter.name for parameter in context.command.params if parameter.param_type_name == "argument"]
    told = {name: value for name, value in context.params.items() if value is not None}
    return {**dict(zip(names, context.args, strict=False)), **told}


@_never_failing
def profiles(_given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer built-in profiles, and YAML files that lie here."""
    from scaletest.core.paths import data_file_dir

    yield from (path.stem for path in sorted(data_file_dir("profiles").glob("*.yaml")))
    yield from sorted(path.name for suffix in ("*.yaml", "*.yml") for path in Path().glob(suffix))


@_never_failing
def runs(given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer runs, the newest first."""
    return _runs(given)


@_never_failing
def baselines(given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer saved baselines."""
    return _baselines(given)


@_never_failing
def sides(given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer what can be compared: saved baselines and runs."""
    return [*_baselines(given), *_runs(given)]


def _runs(given: Mapping[str, Any]) -> list[str]:
    from scaletest.core.rundir import run_names

    results = Path(given.get("results") or RESULTS)
    # Settings give options their defaults in commands that are run only.
    names = run_names(settings_here()["results"] or RESULTS if results == RESULTS else results)
    return ["latest", *reversed(names)] if names else []


def _baselines(given: Mapping[str, Any]) -> list[str]:
    directory = Path(given.get("baselines") or settings_here().baselines)
    return sorted(path.stem for path in directory.glob("*.json"))


@_never_failing
def clusters(_given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer clusters that exist now."""
    from scaletest.core.paths import clusters_dir

    return sorted(path.parent.name for path in clusters_dir().glob("*/cluster.json"))


@_never_failing
def sizes(given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer the sizes that the profile names."""
    return list(_values_of(given).get("sizes") or ())


@_never_failing
def variants(given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Offer the variants that the profile names; behind a comma those that are not chosen yet."""
    *chosen, _ = incomplete.split(",")
    return [",".join([*chosen, name]) for name in _values_of(given).get("variants") or () if name not in chosen]


def _values_of(given: Mapping[str, Any]) -> dict[str, Any]:
    from scaletest.profile.builtin import find_profile
    from scaletest.profile.yamlfile import parse_text, read_text

    path = find_profile(given["profile"])
    data = parse_text(read_text(path), str(path)).data
    return data if isinstance(data, dict) else {}


@_never_failing
def set_keys(given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Offer the parameters of the profile, the keys of its schema one dot further, and behind ``=`` the words that the value may be."""
    return _keys_or_words(_values_of(given), incomplete)


@_never_failing
def matrix_keys(given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Offer the same for the values of a matrix, behind a comma too."""
    key, equals, text = incomplete.partition("=")
    *chosen, _ = text.split(",")
    words = _keys_or_words(_values_of(given), key + equals)
    if not equals:
        return words
    return [
        f"{key}={','.join([*chosen, word])}"
        for _, _, word in (item.partition("=") for item in words)
        if word not in chosen
    ]


def _keys_or_words(data: dict[str, Any], incomplete: str) -> list[str]:
    from scaletest.profile.overrides import next_keys

    key, equals, _ = incomplete.partition("=")
    return [f"{key}={word}" for word in _words(data, key)] if equals else next_keys(data, incomplete)


def _words(data: dict[str, Any], key: str) -> Sequence[str]:
    """Return the words that a value may be; none where it may be anything."""
    from scaletest.profile.actions import LEVERS
    from scaletest.profile.structure import shape_at

    written = f"{{{key}}}"
    if any(action.get("lever") == written for phase in data["phases"] for action in phase.get("do") or ()):
        return LEVERS
    if data.get("controlPlane", {}).get("kubernetes") == written or key == "controlPlane.kubernetes":
        return _known("kubernetes")
    shape = shape_at(tuple(int(part) if part.isdigit() else part for part in key.split(".")))
    if shape is None or shape.kind != "scalar":
        return ()
    return shape.choices or (("true", "false") if shape.scalars == {bool} else ())


def _known(family: str) -> list[str]:
    from scaletest.controlplane.binaries.versions import known_versions

    return list(known_versions()[family])


@_never_failing
def against(given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Offer what the base of a gate may have other than the new."""
    if incomplete.startswith("set:"):
        return [f"set:{word}" for word in _keys_or_words(_values_of(given), incomplete.removeprefix("set:"))]
    key, equals, _ = incomplete.partition("=")
    return [f"{key}={version}" for version in _known(key)] if equals else ["kubernetes=", "etcd=", "set:"]


@_never_failing
def fail_rules(given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer the metrics that a rule may name: their kinds, and those of the baseline that is compared with."""
    from scaletest.analysis.metrickinds import MEASURES

    names = [*MEASURES, *_metrics(given)]
    return [f"{name}:" for name in dict.fromkeys(names)]


@_never_failing
def metrics(_given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer the kinds of metrics that runs are compared by."""
    from scaletest.analysis.metrickinds import MEASURES

    return list(MEASURES)


def _metrics(given: Mapping[str, Any]) -> list[str]:
    import json

    name = given.get("baseline") or given.get("base")
    path = Path(given.get("baselines") or settings_here().baselines) / f"{name}.json"
    if name is None or not path.is_file():
        return []
    return sorted(json.loads(path.read_text(encoding="utf-8"))["runs"][0]["metrics"])


@_never_failing
def report_files(_given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Offer the forms of a report of a run, then files."""
    return _form_and_path(Format, incomplete)


@_never_failing
def comparison_files(_given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Offer the forms of a report of a comparison, then files."""
    return _form_and_path(COMPARED, incomplete)


@_never_failing
def binaries(_given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Offer the programs of a control plane, then files."""
    return _form_and_path((key.removeprefix("binary.") for key in SETTINGS if key.startswith("binary.")), incomplete)


def _form_and_path(names: Iterable[str], incomplete: str) -> list[str]:
    name, equals, text = incomplete.partition("=")
    if not equals:
        return [f"{item}=" for item in names]
    directory = Path(text) if text.endswith("/") else Path(text).parent
    begin = text if text.endswith("/") else text[: len(text) - len(Path(text).name)]
    return [f"{name}={begin}{path.name}{'/' if path.is_dir() else ''}" for path in sorted(directory.iterdir())]


@_never_failing
def setting_keys(_given: Mapping[str, Any], _incomplete: str) -> Iterable[str]:
    """Offer the keys of settings."""
    return SETTINGS


_BREAKS: Final = re.compile(r"[=:]+")


def complete_for_bash(environ: Mapping[str, str], answer: Callable[[Mapping[str, str]], None]) -> str | None:
    """Answer a completion of bash, which takes ``nodes=5`` for three words; None when this is no such completion.

    ``answer`` prints, for variables in place of those given, what is to be offered for whole words.
    """
    given = environ.get("COMP_WORDS", "").split("\n")
    if environ.get("_SCALETEST_COMPLETE") != "complete_bash" or len(given) < 2:
        return None
    words, index = _rejoined(given, int(environ["COMP_CWORD"]))
    with contextlib.redirect_stdout(io.StringIO()) as offered, contextlib.suppress(SystemExit):
        answer({"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(index)})
    # Bash replaces what stands behind the last break.
    word = words[index] if index < len(words) else ""
    value = word.partition("=")[2] if word.startswith("--") else word
    kept = max((match.end() for match in _BREAKS.finditer(value)), default=0)
    lines = [line for line in offered.getvalue().splitlines() if line]
    return "".join(f"{line[kept:]}\n" for line in lines if line[:kept] == value[:kept])


def _rejoined(given: Sequence[str], at: int) -> tuple[list[str], int]:
    """Join the words that bash has split at ``=`` and ``:``; return them with the number of the one that is completed."""
    words: list[str] = []
    index = 0
    open_ = False
    for number, word in enumerate(given):
        breaks = _BREAKS.fullmatch(word) is not None
        if words and (breaks or open_):
            words[-1] += word
        else:
            words.append(word)
        open_ = breaks
        if number == at:
            index = len(words) - 1
    return words, index if at < len(given) else len(words)
