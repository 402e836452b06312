"""The base of all parts of a profile."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

__all__ = ["Model"]


class Model(BaseModel):
    """Base of all parts: frozen, camelCase, unknown keys refused, nothing coerced (``"50"`` is no number)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)
