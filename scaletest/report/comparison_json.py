"""A comparison as JSON, and its published schema.

``python -m scaletest.report.comparison_json`` writes ``comparison.schema.json`` anew; a test holds the file to the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from scaletest.report.comparison_document import ComparisonDocument

__all__ = ["COMPARISON_SCHEMA_FILE", "comparison_schema", "render_comparison_json"]

COMPARISON_SCHEMA_FILE: Final = Path(__file__).with_name("comparison.schema.json")


def render_comparison_json(document: ComparisonDocument) -> str:
    """Write the comparison as a JSON document that ends in a newline."""
    return document.model_dump_json(indent=2) + "\n"


def comparison_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a comparison."""
    schema = ComparisonDocument.model_json_schema(mode="serialization")
    title = {"title": "scaletest comparison", "$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**schema, **title}


def comparison_schema_text() -> str:
    """Return the text of the published schema file."""
    return json.dumps(comparison_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    COMPARISON_SCHEMA_FILE.write_text(comparison_schema_text(), encoding="utf-8")
