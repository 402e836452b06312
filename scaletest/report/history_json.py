"""A history as JSON, and its published schema.

``python -m scaletest.report.history_json`` writes ``history.schema.json`` anew; a test holds the file to the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from scaletest.report.history_document import HistoryDocument

__all__ = ["HISTORY_SCHEMA_FILE", "history_schema", "render_history_json"]

HISTORY_SCHEMA_FILE: Final = Path(__file__).with_name("history.schema.json")


def render_history_json(document: HistoryDocument) -> str:
    """Write a history as a JSON document that ends in a newline."""
    return document.model_dump_json(indent=2) + "\n"


def history_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a history."""
    schema = HistoryDocument.model_json_schema(mode="serialization")
    title = {"title": "scaletest history", "$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**schema, **title}


def history_schema_text() -> str:
    """Return the text of the published schema file."""
    return json.dumps(history_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    HISTORY_SCHEMA_FILE.write_text(history_schema_text(), encoding="utf-8")
