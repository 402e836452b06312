"""``scaletest config``: which settings hold here, and where each comes from."""

from __future__ import annotations

import enum
import json
from typing import Annotated, Any

import typer

from scaletest.cli._completion import setting_keys
from scaletest.cli._settings import settings
from scaletest.cli._streams import answer, hand_over, tell
from scaletest.core.errors import UsageError
from scaletest.core.settings import SETTINGS, Settings

__all__ = ["app"]

app = typer.Typer(help="Show the settings that hold here.", no_args_is_help=True)


class Format(enum.StrEnum):
    """How settings are printed."""

    TEXT = "text"
    JSON = "json"


@app.command()
def show(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY", help="Only these settings.", autocompletion=setting_keys),
    ] = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say where every value comes from.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="Print as text or JSON.")] = Format.TEXT,
) -> None:
    """Print the settings that hold in this directory.

    A flag goes over SCALETEST_KEY in the environment, that over [tool.scaletest] in the project's pyproject.toml, that over
    the user's config.toml, and that over what a profile says. --origin names these files.

    Examples:
      scaletest config show
      scaletest config show --origin
      SCALETEST_KUBERNETES=1.36 scaletest config show kubernetes --format json
    """
    found = settings()
    for key in keys or ():
        if key not in SETTINGS:
            msg = f"{key}: no such setting"
            raise UsageError(msg, hint=f"There are: {', '.join(SETTINGS)}.")
    shown = keys or list(SETTINGS)
    if format_ is Format.JSON:
        entries = {key: _entry(found, key, origin=origin) for key in shown}
        hand_over(json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
    else:
        _print_table(found, shown, origin=origin)
    for name in found.strange:
        tell(f"warning: {name} in the environment is no setting")


def _effective(found: Settings, key: str) -> Any:
    """Return what holds, as JSON has it; None where a profile says it, or nobody."""
    from scaletest.core import paths

    fixed = {"cache-dir": paths.cache_dir(), "state-dir": paths.state_dir(), "baselines": found.baselines}
    value = SETTINGS[key].default if found[key] is None else found[key]
    value = fixed.get(key, value)
    return list(value) if isinstance(value, tuple) else value if value is None or isinstance(value, int) else str(value)


def _entry(found: Settings, key: str, *, origin: bool) -> Any:
    value = _effective(found, key)
    return {"value": value, "origin": found.origin(key)} if origin else value


def _print_table(found: Settings, keys: list[str], *, origin: bool) -> None:
    rows = [(key, _text(found, key), found.origin(key)) for key in keys]
    wide, wider = (max(len(row[column]) for row in rows) for column in (0, 1))
    for key, value, where in rows:
        answer(f"{key:<{wide}}  {value:<{wider}}  {where}" if origin else f"{key:<{wide}}  {value}")
    if origin:
        answer()
        for title, file in (("project", found.project.file), ("user", found.user_file)):
            answer(f"{title:<{wide}}  {file}{'' if file.is_file() else ' (not there)'}")


def _text(found: Settings, key: str) -> str:
    value = _effective(found, key)
    if value is None:
        return f"({SETTINGS[key].otherwise})"
    return ", ".join(value) if isinstance(value, list) else str(value)
