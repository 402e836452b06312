"""JSON that scaletest prints, held to its published schema."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator

from scaletest.report.json_report import Form, schema_file

__all__ = ["valid"]


def valid(text: str, form: Form) -> Any:
    """Return what a JSON text holds; it is valid by the published schema, and has neither NaN nor infinity."""
    data = json.loads(text, parse_constant=_refuse)
    Draft202012Validator(json.loads(schema_file(form).read_text(encoding="utf-8"))).validate(data)
    return data


def _refuse(constant: str) -> float:
    msg = f"JSON has no {constant}"
    raise ValueError(msg)
