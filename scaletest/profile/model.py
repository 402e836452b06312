"""The base of all parts of a profile."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

__all__ = ["Model", "refuse"]


class Model(BaseModel):
    """Base of all parts: frozen, camelCase, unknown keys refused, nothing coerced (``"50"`` is no number)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)


def refuse(misfits: Iterable[tuple[bool, str]]) -> None:
    """Raise ValueError with the first message whose condition is true: what validators say of keys that do not go together."""
    for wrong, message in misfits:
        if wrong:
            raise ValueError(message)
