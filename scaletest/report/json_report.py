"""The report as JSON, and its published schema.

``python -m scaletest.report.json_report`` writes ``report.schema.json`` anew; a test holds the file to the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from scaletest.report.document import Document

__all__ = ["SCHEMA_FILE", "render_json", "report_schema"]

SCHEMA_FILE: Final = Path(__file__).with_name("report.schema.json")


def render_json(document: Document) -> str:
    """Write the report as a JSON document that ends in a newline."""
    return document.model_dump_json(indent=2) + "\n"


def report_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the report."""
    schema = Document.model_json_schema(mode="serialization")
    title = {"title": "scaletest report", "$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**schema, **title}


def schema_text() -> str:
    """Return the text of the published schema file."""
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
