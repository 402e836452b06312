"""The settings that hold for this command line, and the options that they stand for."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scaletest.core.settings import SETTINGS, Setting, Settings, resolve_settings

if TYPE_CHECKING:
    from scaletest.profile.overrides import VersionSetting

__all__ = ["defaults_of", "settings", "settings_here", "use_settings", "versions_of"]

_CURRENT: Final[ContextVar[Settings | None]] = ContextVar("settings", default=None)


def _user_file() -> Path:
    """Return the user's configuration file; may not be there."""
    import platformdirs

    return Path(platformdirs.user_config_dir("scaletest")) / "config.toml"


def settings_here() -> Settings:
    """Return what environment, project and user say in this directory, without any flag. Raises UsageError."""
    from scaletest.core.project import find_project

    return resolve_settings(os.environ, find_project(Path()), _user_file())


def settings() -> Settings:
    """Return the settings of this command line. Raises UsageError."""
    return _CURRENT.get() or settings_here()


def use_settings(found: Settings) -> None:
    """Have ``settings`` return these from now on."""
    _CURRENT.set(found)


def versions_of(found: Settings) -> list[VersionSetting]:
    """Return the versions that settings name in place of a profile's."""
    from scaletest.profile.overrides import VersionSetting

    return [
        VersionSetting(component, found[component], found.origin(component))
        for component in ("kubernetes", "etcd")
        if found[component] is not None
    ]


def defaults_of(command: Any, found: Settings, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the defaults that settings give to the options of a Click command and those under it: its ``default_map``."""
    defaults: dict[str, Any] = {}
    for name, inner in getattr(command, "commands", {}).items():
        defaults[name] = defaults_of(inner, found, (*path, name))
    for parameter in command.params:
        for setting in SETTINGS.values():
            if setting.option in parameter.opts and _fills(setting, found, path):
                defaults[parameter.name] = found[setting.key]
    return defaults


def _fills(setting: Setting, found: Settings, path: tuple[str, ...]) -> bool:
    if setting.key not in found.values or (setting.commands is not None and " ".join(path) not in setting.commands):
        return False
    # Not every command has every form: `profiles show` prints YAML, and no text. Text is what they print anyway.
    return setting.key != "format" or found[setting.key] != "text"
