"""Golden texts: what is drawn, as it was when somebody last looked at it.

``SCALETEST_UPDATE_GOLDEN=1 pytest tests/report`` writes all of them anew; look at what ``git diff`` shows. Texts with colours (``.ansi``) are to be looked
at in a terminal: ``cat tests/report/golden/outage-80.ansi``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["GOLDEN", "check_golden"]

GOLDEN: Final = Path(__file__).parent / "golden"


def check_golden(name: str, actual: str) -> None:
    """Hold a text to the file of this name."""
    path = GOLDEN / name
    if os.environ.get("SCALETEST_UPDATE_GOLDEN"):
        path.write_text(actual, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == actual
