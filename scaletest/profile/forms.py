"""How values are written in a profile: quantities with units, names, versions, Kubernetes labels.

Each type parses what people write, refuses the rest with the accepted forms, and writes its value
so that it reads back exactly. ``Form`` is what the profile reference says about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from scaletest.core import units
from scaletest.core.settingforms import VERSION_PATTERN
from scaletest.profile.objectives import parse_objective

__all__ = [
    "RUN_TIME_WORDS",
    "CapBytes",
    "Condition",
    "DurationS",
    "EnvName",
    "FlagName",
    "Form",
    "KubeName",
    "LabelKey",
    "LabelValue",
    "Name",
    "ObjectBytes",
    "OnlyTrue",
    "PeriodS",
    "PodBytes",
    "PositiveDurationS",
    "PositiveRatePerS",
    "Quantity",
    "Share",
    "SizeBytes",
    "StepLabel",
    "Version",
    "size_between",
    "without_run_time_words",
]

RUN_TIME_WORDS: Final = ("node",)
"""``{node}`` in a step is filled in by each agent while it runs."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the profile reference describes a type."""

    text: str


def without_run_time_words(text: str) -> str:
    """Return the text with each run-time word replaced by a plain one, so that its form can be checked."""
    for word in RUN_TIME_WORDS:
        text = text.replace(f"{{{word}}}", word)
    return text


def _positive(value: float) -> float:
    if value <= 0:
        msg = "must be more than 0"
        raise ValueError(msg)
    return value


SHORTEST_PERIOD_S: Final = 0.01
"""An answer of an idle API server takes 5 to 40 ms, and every observation is a line of the journal: more often than a hundred
times a second, the looking is the load."""


def _no_flood(value: float) -> float:
    if value < SHORTEST_PERIOD_S:
        msg = f"must be at least {units.write_duration(SHORTEST_PERIOD_S)}: looked at more often, the looking would be the load"
        raise ValueError(msg)
    return value


def size_between(low_bytes: int, high_bytes: int) -> AfterValidator:
    """Return the check of a size that has limits."""

    def check(value: int) -> int:
        if not low_bytes <= value <= high_bytes:
            msg = f"must be from {units.write_bytes(low_bytes)} to {units.write_bytes(high_bytes)}"
            raise ValueError(msg)
        return value

    return AfterValidator(check)


def _matching(pattern: str, noun: str, form: str) -> AfterValidator:
    compiled = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if not compiled.fullmatch(without_run_time_words(value)):
            msg = f"{value!r} is not {noun}: {form}"
            raise ValueError(msg)
        return value

    return AfterValidator(check)


def _text_not_number(value: object) -> object:
    if isinstance(value, float | int) and not isinstance(value, bool):
        msg = f'put the version in quotes: "{value}" (without them 1.30 is the number 1.3)'
        raise ValueError(msg)
    return value


def _quantity(value: object) -> object:
    # Kubernetes' resource.Quantity: a number with an SI, binary or decimal-exponent suffix.
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    is_text = isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}(\.[0-9]+)?(m|k|[MGTPE]|[KMGTPE]i)?", value)
    if not (is_count or is_text):
        msg = f"{value!r} is not a quantity: write 8, 500m or 64Gi"
        raise ValueError(msg)
    return value


def _only_true(value: object) -> object:
    # Literal[True] alone takes 1 for True.
    if value is not True:
        msg = "must be true, or left out"
        raise ValueError(msg)
    return value


def _objective(value: str) -> str:
    parse_objective(value)
    return value


def _unit(parse: Callable[[Any], object], write: Callable[[Any], str]) -> tuple[BeforeValidator, PlainSerializer]:
    return BeforeValidator(parse), PlainSerializer(write, return_type=str)


DurationS = Annotated[
    float, *_unit(units.parse_duration_s, units.write_duration), Form("duration (`500ms`, `20s`, `1m30s`)")
]
PositiveDurationS = Annotated[DurationS, AfterValidator(_positive)]
PeriodS = Annotated[DurationS, AfterValidator(_no_flood)]
SizeBytes = Annotated[int, *_unit(units.parse_bytes, units.write_bytes), Form("size (`3KB`, `2GiB`)")]
# 16 MiB: less than any component's own program text; it would only ever be killed.
CapBytes = Annotated[SizeBytes, size_between(16 * 2**20, 2**44)]
# 256 KiB is the API's limit on the annotations of one object, with which a pod is padded.
PodBytes = Annotated[SizeBytes, size_between(0, 250 * 10**3)]
# 1 MiB is the API's limit on the data of a ConfigMap or Secret, and under etcd's 1.5 MiB per request.
ObjectBytes = Annotated[SizeBytes, size_between(0, 10**6)]
PositiveRatePerS = Annotated[
    float, *_unit(units.parse_rate_per_s, units.write_rate), AfterValidator(_positive), Form("rate (`80/s`, `4800/m`)")
]
Share = Annotated[float, *_unit(units.parse_share, units.write_share), Form("share (`10%`)")]

Name = Annotated[
    str,
    _matching(
        r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", "a name", "use lower-case letters, digits and hyphens, at most 42"
    ),
    Form("name"),
]
Version = Annotated[
    str,
    _matching(VERSION_PATTERN, "a version", "write 1.37 or 1.37.2"),
    BeforeValidator(_text_not_number),
    Form("version, in quotes"),
]
StepLabel = Annotated[
    str, _matching(r"[A-Za-z0-9_-]{1,60}", "a label", "use letters, digits, hyphens and underscores"), Form("text")
]
KubeName = Annotated[
    str,
    _matching(
        r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?",
        "a Kubernetes name",
        "use lower-case letters, digits, hyphens and dots",
    ),
    Form("Kubernetes name"),
]
FlagName = Annotated[str, _matching(r"[a-z0-9][a-z0-9-]*", "a flag", "leave out the leading dashes"), Form("flag")]
EnvName = Annotated[
    str,
    _matching(r"[A-Za-z_][A-Za-z0-9_]*", "an environment variable", "use letters, digits and underscores"),
    Form("environment variable"),
]
LabelKey = Annotated[
    str,
    _matching(
        r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
        "a label key",
        "write NAME or PREFIX/NAME",
    ),
    Form("label key"),
]
LabelValue = Annotated[
    str,
    _matching(
        r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?",
        "a label value",
        "use letters, digits, '-', '_' and '.', at most 63",
    ),
    Form("text"),
]
Quantity = Annotated[str | int, BeforeValidator(_quantity), Form("quantity (`8`, `500m`, `64Gi`)")]
OnlyTrue = Annotated[Literal[True], BeforeValidator(_only_true), Form("`true`")]
Condition = Annotated[str, AfterValidator(_objective), Form("objective")]
