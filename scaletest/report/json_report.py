"""Reports as JSON, and their published schemas (draft 2020-12), one beside this file for each form.

``python -m scaletest.report.json_report`` writes the schemas anew; a test holds the files to the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter

from scaletest.report.comparison_document import ComparisonDocument
from scaletest.report.document import Document
from scaletest.report.history_document import HistoryDocument
from scaletest.report.matrix_document import MatrixDocument
from scaletest.report.runlist import ListedRunReport

__all__ = ["FORMS", "Form", "render_json", "schema_file", "schema_text"]

Form = Literal["report", "matrix", "comparison", "history", "runs"]

_RUNS: Final = TypeAdapter(list[ListedRunReport])

FORMS: Final[dict[Form, tuple[str, TypeAdapter[Any]]]] = {
    "report": ("scaletest report", TypeAdapter(Document)),
    "matrix": ("scaletest matrix report", TypeAdapter(MatrixDocument)),
    "comparison": ("scaletest comparison", TypeAdapter(ComparisonDocument)),
    "history": ("scaletest history", TypeAdapter(HistoryDocument)),
    "runs": ("scaletest list of runs", _RUNS),
}
"""Title and type of each form."""


def render_json(document: BaseModel | list[ListedRunReport]) -> str:
    """Write a report on a run or matrix, a comparison, a history, or a list of runs as a JSON text that ends in a newline."""
    if isinstance(document, BaseModel):
        return document.model_dump_json(indent=2) + "\n"
    return _RUNS.dump_json(document, indent=2).decode() + "\n"


def schema_file(form: Form) -> Path:
    """Return the path of the published schema of a form."""
    return Path(__file__).with_name(f"{form}.schema.json")


def schema_text(form: Form) -> str:
    """Return the text of the published schema of a form."""
    title, adapter = FORMS[form]
    more = {"title": title, "$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**adapter.json_schema(mode="serialization"), **more}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for form in FORMS:
        schema_file(form).write_text(schema_text(form), encoding="utf-8")
