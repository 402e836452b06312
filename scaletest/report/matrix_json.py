"""The report on a matrix as JSON, and its published schema.

``python -m scaletest.report.matrix_json`` writes ``matrix.schema.json`` anew; a test holds the file to the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from scaletest.report.matrix_document import MatrixDocument

__all__ = ["MATRIX_SCHEMA_FILE", "matrix_schema", "render_matrix_json"]

MATRIX_SCHEMA_FILE: Final = Path(__file__).with_name("matrix.schema.json")


def render_matrix_json(document: MatrixDocument) -> str:
    """Write the report as a JSON document that ends in a newline."""
    return document.model_dump_json(indent=2) + "\n"


def matrix_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the report on a matrix."""
    schema = MatrixDocument.model_json_schema(mode="serialization")
    title = {"title": "scaletest matrix report", "$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**schema, **title}


def matrix_schema_text() -> str:
    """Return the text of the published schema file."""
    return json.dumps(matrix_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    MATRIX_SCHEMA_FILE.write_text(matrix_schema_text(), encoding="utf-8")
