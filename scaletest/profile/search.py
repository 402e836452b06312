"""The ``search`` block of a profile: which parameter is searched for its saturation point, and when a load holds.

A load is written as its parameter is: ``500``, ``80/s``, ``10s``. What is searched is the number in it.

Loads heavier than ``to`` can be *derived* (``beyond``): the heaviest that is made as it is, with a second parameter that makes it heavier by a known factor. 4,000 agents
that ask every 2 s ask as often as 20,000 that ask every 10 s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from scaletest.core.units import write_number
from scaletest.profile.forms import Condition, PositiveDurationS, Share
from scaletest.profile.model import Model

__all__ = ["BeyondSpec", "Load", "SearchSpec", "SearchStepSpec", "parse_load"]

_LOAD = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([A-Za-z/%]{0,8})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Load:
    """A number with what is written after it."""

    number: float
    whole: bool
    """Whether it can only be a whole number: a count, which has no unit."""
    unit: str = ""

    def at(self, number: float) -> str:
        """Write another number as this load is written."""
        return f"{int(number) if self.whole else write_number(number)}{self.unit}"

    def value(self, number: float) -> str | int | float:
        """Return the parameter's value for another number."""
        return self.at(number) if self.unit else int(number) if self.whole else number


def parse_load(value: str | float) -> Load:
    """Parse a parameter's value. Raises ValueError for what is no number, or is not more than 0."""
    text = write_number(value) if isinstance(value, float) else str(value)
    match = None if isinstance(value, bool) else _LOAD.fullmatch(text)
    if match is None:
        msg = f"{value!r} is no number that can be searched: write 500, 80/s or 10s"
        raise ValueError(msg)
    number, unit = float(match[1]), match[2]
    if number <= 0:
        msg = f"{value!r} must be more than 0: each load of the search is a multiple of the one before"
        raise ValueError(msg)
    return Load(number, whole=not unit and "." not in text and not isinstance(value, float), unit=unit)


class SearchStepSpec(Model):
    """How long a load is kept before it is judged."""

    at_least_s: PositiveDurationS = Field(
        30.0,
        alias="atLeast",
        description="Shortest time at full load: at least three periods of what the agents do.",
    )
    at_most_s: PositiveDurationS = Field(
        120.0,
        alias="atMost",
        description="Longest time for the load to settle; what has not by then is judged as it is.",
    )

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.at_least_s > self.at_most_s:
            msg = "atLeast must not be longer than atMost"
            raise ValueError(msg)
        return self


class BeyondSpec(Model):
    """How loads beyond `to` are made, for which this machine has no room: by the heaviest that it has room for, working harder.

    A load of k times that one is made by it, with this parameter k times as heavy. What is found there is derived, and is called so.
    """

    parameter: str = Field(min_length=1, description="Numeric parameter, for example the period at which agents ask.")
    to: str | int | float = Field(
        description="Its heaviest value, written as the parameter is. Its own value is that of all loads up to the other `to`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        parse_load(self.to)
        return self


class SearchSpec(Model):
    """A search for the saturation point: the largest load at which everything in ``holds`` holds.

    It begins when the last phase ends, with the flows that run then. The lightest load is the parameter's own value.
    """

    parameter: str = Field(
        min_length=1, description="Numeric parameter that is searched. Its value in `parameters` is the lightest load."
    )
    to: str | int | float = Field(
        description="Heaviest load, written as the parameter is (`20000`, `500/s`, `1s`); smaller than it where less loads more."
    )
    beyond: BeyondSpec | None = Field(
        None, description="Loads beyond `to`, and beyond the nodes that fit into memory; none: the search ends there."
    )
    resolution: Share = Field(0.05, description="Width of the interval at which the search ends, noise permitting.")
    factor: Annotated[float, Field(ge=1.1, le=10)] = Field(
        2.0, description="Growth from load to load until one fails; then the gap is bisected."
    )
    step: SearchStepSpec = Field(default_factory=SearchStepSpec, description="How long each load is kept.")
    holds: list[Condition] = Field(
        min_length=1, description="A load holds when all of these do, over the steady part of its step."
    )
    past: list[Annotated[float, Field(gt=1, le=100)]] = Field(
        default_factory=lambda: [1.25, 1.5, 2.0, 4.0],
        description="Multiples of the saturation load that are tried after the search, in this order.",
    )
    back: float = Field(
        0.5, gt=0, le=1, description="Part of the saturation load to which the load goes back at the end."
    )
    recover_within_s: PositiveDurationS = Field(
        120.0,
        alias="recoverWithin",
        description="How long after that the control plane has to recover; one that does not is metastable.",
    )
    at_most_s: PositiveDurationS = Field(
        3600.0, alias="atMost", description="Time for the whole search; what was found by then is the result."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 0.001 <= self.resolution <= 1:
            msg = "resolution must be from 0.1% to 100%"
            raise ValueError(msg)
        if sorted(set(self.past)) != self.past:
            msg = "past must rise"
            raise ValueError(msg)
        parse_load(self.to)
        return self
