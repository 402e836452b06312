"""The ``variants`` block of a profile: what it is compared with itself in."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from scaletest.profile.model import Model

__all__ = ["VariantSpec"]


class VariantSpec(Model):
    """One variant of a profile: what it changes, and what that is in words."""

    summary: str = Field(min_length=1, description="One sentence: what is other than in the profile as it stands.")
    changes: dict[str, Any] = Field(
        default_factory=dict,
        alias="set",
        description="Values by the keys that `--set` takes; none: the profile as it stands.",
    )
