"""What pydantic finds is said in our words."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from scaletest.core.mistakes import first_mistake


class _Inner(BaseModel):
    count: int = Field(ge=1, le=2_000)
    word: Literal["a", "b"] = "a"
    names: list[str] = Field(default=["x"], min_length=1)
    share: float = 0.5


class _Outer(BaseModel):
    inner: dict[str, _Inner]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "inner: missing"),
        ({"inner": []}, "inner: must be a mapping"),
        ({"inner": {"x": 3}}, "inner.x: must be a mapping"),
        ({"inner": {"x": {"count": "many"}}}, "inner.x.count: must be a whole number"),
        ({"inner": {"x": {"count": 0}}}, "inner.x.count: must be at least 1"),
        ({"inner": {"x": {"count": 9_000}}}, "inner.x.count: must be at most 2,000"),
        ({"inner": {"x": {"count": 1, "word": "c"}}}, "inner.x.word: must be 'a' or 'b'"),
        ({"inner": {"x": {"count": 1, "names": []}}}, "inner.x.names: empty"),
        ({"inner": {"x": {"count": 1, "names": [None]}}}, "inner.x.names.0: must be text"),
        ({"inner": {"x": {"count": 1, "share": "half"}}}, "inner.x.share: must be a number"),
    ],
)
def test_a_mistake_is_said_with_its_key(given: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _Outer.model_validate(given)

    assert said == first_mistake(caught.value)
