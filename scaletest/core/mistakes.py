"""What pydantic finds wrong with values, in our words: its own speak of inputs, dictionaries and valid integers."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

__all__ = ["expected", "first_mistake", "of_argument"]

_EXPECTED: Final[dict[str, str]] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "string_unicode": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "enum": "{expected}",
}
"""By pydantic's error type; read as "must be …"."""
_OTHER: Final = "a value of another kind"


def expected(details: ErrorDetails) -> str:
    """Return what was expected where something of a wrong type or size stands."""
    context = {key: f"{value:,}" if isinstance(value, int) else value for key, value in details.get("ctx", {}).items()}
    return _EXPECTED.get(details["type"], _OTHER).format(**context)


def first_mistake(error: ValidationError) -> str:
    """Return the first mistake of a file that a program wrote, as ``KEY: what``."""
    details = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in details["loc"])
    what = _what(details)
    return f"{key}: {what}" if key else what


def of_argument(error: ValidationError) -> str:
    """Return what is wrong with an argument of the command line, which Typer has pydantic read."""
    details = error.errors(include_url=False)[0]
    # Ours and Typer's own messages have the value in them.
    return _what(details) if details["type"] == "value_error" else f"{details['input']!r} {_what(details)}"


def _what(details: ErrorDetails) -> str:
    match details["type"]:
        case "missing":
            return "missing"
        case "too_short" | "string_too_short":
            return "empty"
        case "value_error":
            return str(details["ctx"]["error"])
    return f"must be {expected(details)}"
