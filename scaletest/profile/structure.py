"""The schema as a tree to walk: which keys can stand at a place, and what values they take."""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from scaletest.profile.forms import Form
from scaletest.profile.places import Path
from scaletest.profile.schema import Profile

__all__ = ["Shape", "key_of", "shape_at", "shape_of", "shape_of_field"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What can stand at a place: a model with fixed keys, a list, a map with free or fixed keys, or a scalar."""

    kind: Literal["model", "list", "map", "scalar"]
    model: type[BaseModel] | None = None
    item: Any = None
    choices: tuple[str, ...] | None = None
    """Fixed keys of a map; None when they are free. For a scalar: the words that it may be."""
    scalars: frozenset[type] = field(default_factory=frozenset)
    optional: bool = False
    form: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that the schema fixes; empty for lists, scalars and maps with free keys."""
        if self.model is not None:
            return tuple(key_of(name, info) for name, info in self.model.model_fields.items())
        return self.choices or () if self.kind == "map" else ()

    @property
    def holds_scalars(self) -> bool:
        """Whether this is a map of scalars: its keys may hold dots (``nvidia.com/gpu``)."""
        return self.kind == "map" and shape_of(self.item).kind == "scalar"

    def child(self, part: str | int) -> Shape | None:
        """Return the shape under a key or index; None when the schema has no such place."""
        if self.model is not None:
            fields = {key_of(name, info): info for name, info in self.model.model_fields.items()}
            return shape_of_field(fields[part]) if isinstance(part, str) and part in fields else None
        if self.kind == "list":
            return shape_of(self.item) if isinstance(part, int) else None
        if self.kind == "map" and isinstance(part, str) and (self.choices is None or part in self.choices):
            return shape_of(self.item)
        return None


def key_of(name: str, info: FieldInfo) -> str:
    """Return the YAML key of a field."""
    return info.alias or name


def shape_of_field(info: FieldInfo) -> Shape:
    """Return the shape of a model's field."""
    return shape_of(info.annotation, tuple(info.metadata))


def shape_of(annotation: Any, metadata: tuple[Any, ...] = ()) -> Shape:
    """Return the shape of a type annotation of the schema."""
    while get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        metadata = (*inner, *metadata)
    form = next((item.text for item in metadata if isinstance(item, Form)), None)
    origin = get_origin(annotation)
    if origin in {Union, types.UnionType}:
        return _union(annotation, form)
    if origin is Literal:
        values = get_args(annotation)
        return Shape("scalar", choices=tuple(map(str, values)), scalars=frozenset(map(type, values)), form=form)
    if origin is list:
        return Shape("list", item=get_args(annotation)[0])
    if origin is dict:
        key, item = get_args(annotation)
        key_shape = shape_of(key)
        return Shape("map", item=item, choices=key_shape.choices, form=key_shape.form)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Shape("model", model=annotation)
    return Shape("scalar", scalars=frozenset({annotation}), form=form)


def _union(annotation: Any, form: str | None) -> Shape:
    members = [member for member in get_args(annotation) if member is not type(None)]
    optional = len(members) < len(get_args(annotation))
    shapes = [shape_of(member) for member in members]
    if len(shapes) == 1:
        only = shapes[0]
        return Shape(
            only.kind, only.model, only.item, only.choices, only.scalars, optional=optional, form=form or only.form
        )
    words = tuple(word for shape in shapes for word in shape.choices or ())
    return Shape(
        "scalar",
        choices=words or None,
        scalars=frozenset().union(*(shape.scalars for shape in shapes)),
        optional=optional,
        form=form,
    )


def shape_at(path: Path) -> Shape | None:
    """Return the shape at a path of a profile; None when the schema has no such place."""
    shape: Shape | None = Shape("model", model=Profile)
    for part in path:
        if shape is None:
            return None
        shape = shape.child(part)
    return shape
