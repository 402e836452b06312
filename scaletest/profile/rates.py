"""When requests are due: the part of the schema that flows with a schedule share."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from scaletest.profile.forms import PositiveDurationS, PositiveRatePerS
from scaletest.profile.model import Model

__all__ = ["PacedSpec", "RampSpec", "RateStepSpec"]


class RampSpec(Model):
    """A rate that changes evenly, and then stays."""

    from_per_s: PositiveRatePerS = Field(alias="from", description="Rate at the start.")
    to_per_s: PositiveRatePerS = Field(alias="to", description="Rate at the end, and from then on.")
    over_s: PositiveDurationS = Field(alias="over", description="Time that the change takes.")


class RateStepSpec(Model):
    """A rate for a time."""

    rate_per_s: PositiveRatePerS = Field(alias="rate", description="Arrivals per second.")
    for_s: PositiveDurationS = Field(alias="for", description="How long; the last rate stays.")


class PacedSpec(Model):
    """Requests with a schedule of their own (an open model), or a closed loop."""

    of_each: ClassVar[str] = "on each connection"
    """What has one request in flight in a closed loop."""

    rate_per_s: PositiveRatePerS | None = Field(None, alias="rate", description="Arrivals per second.")
    ramp: RampSpec | None = Field(None, description="A rate that rises or falls evenly.")
    steps: list[RateStepSpec] | None = Field(None, min_length=1, description="One rate after the other.")
    process: Literal["poisson", "even", "closed"] = Field(
        "poisson",
        description=(
            "`poisson`: independent clients, exponential gaps. `even`: equal gaps. `closed`: no schedule and no rate; every "
            "connection (of `etcd`: every client) asks again as soon as it was answered."
        ),
    )
    max_in_flight: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Arrivals begun and not ended; one that comes on top is dropped, and counted. Default: 1,000.",
    )

    @property
    def most_in_flight(self) -> int:
        """Arrivals that may be begun and not ended. The default is five seconds of silence at 200/s."""
        return self.max_in_flight or 1_000

    @property
    def is_closed(self) -> bool:
        """Whether it is a closed loop."""
        return self.process == "closed"

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        given = [name for name in ("rate_per_s", "ramp", "steps") if getattr(self, name) is not None]
        if self.process == "closed":
            if given:
                msg = "a closed loop has no rate: leave out rate, ramp and steps"
                raise ValueError(msg)
            if self.max_in_flight is not None:
                msg = f"a closed loop has one request in flight {self.of_each}: leave out maxInFlight"
                raise ValueError(msg)
        elif len(given) != 1:
            msg = "arrivals have exactly one of rate, ramp, steps"
            raise ValueError(msg)
        return self
