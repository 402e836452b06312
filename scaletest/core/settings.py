"""Settings: what a user, a project or the environment says once for all commands, and where each value came from.

From the strongest to the weakest: the flag of a command, ``SCALETEST_KEY`` in the environment, ``[tool.scaletest]`` in the
project's ``pyproject.toml``, the user's ``config.toml``, and last what the profile or scaletest itself says.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from scaletest.core.errors import UsageError
from scaletest.core.project import Project
from scaletest.core.settingforms import PATH, RULES, URL, VERSION, Form, choice, count
from scaletest.core.tomlplaces import TomlFile, read_toml

__all__ = ["MOST_REPEATS", "RESULTS", "SETTINGS", "Setting", "Settings", "Source", "Value", "resolve_settings"]

_PREFIX: Final = "SCALETEST_"
_OURS: Final = frozenset({"SCALETEST_SUPERVISOR"})
"""Variables of this name that are no settings: a mark on our own processes."""

RESULTS: Final = Path("results")

MOST_REPEATS: Final = 30
"""Of a gate; 30 pairs of runs of a minute take an hour."""

Source = Literal["flag", "environment", "project", "user", "default"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    key: str
    """As in the files; a dot leads into a table."""
    form: Form
    meaning: str
    default: str | None
    """What holds where nobody sets it, if that is a fixed value."""
    otherwise: str = ""
    """Else: where it comes from then."""
    option: str | None = None
    """The option of commands that it stands for."""
    commands: tuple[str, ...] | None = None
    """The commands whose option gets it as its default; None: all that have the option."""

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return _PREFIX + self.key.upper().replace("-", "_").replace(".", "_")


def _binary(component: str) -> Setting:
    meaning, otherwise = f"The {component} program.", "the first source that has it"
    return Setting(f"binary.{component}", PATH, meaning, None, otherwise, "--binary", ())


def _mirror(family: str) -> Setting:
    return Setting(f"mirror.{family}", URL, f"Where releases of {family} come from.", None, "the official releases")


_COLORS: Final = choice("auto", "always", "never")
_VERBOSITIES: Final = choice("quiet", "normal", "verbose")

SETTINGS: Final[Mapping[str, Setting]] = {
    setting.key: setting
    for setting in (
        Setting("results", PATH, "Directory that holds the runs.", str(RESULTS), option="--results"),
        Setting("baselines", PATH, "Directory of baselines.", None, ".scaletest/baselines of the project", "--baselines"),
        Setting("kubernetes", VERSION, "Kubernetes version.", None, "the profile's", "--kubernetes"),
        Setting("etcd", VERSION, "etcd version.", None, "the profile's", "--etcd"),
        Setting("fail", RULES, "Rules of the regression gate.", None, "the profile's, or every metric", "--fail", ()),
        Setting(
            "repeat", count(1, MOST_REPEATS), "Most runs of each side of a gate.", None, "the profile's, or 8", "--repeat",
            ("gate",),
        ),
        Setting("format", choice("text", "json"), "What is printed on stdout.", "text", option="--format"),
        Setting("color", _COLORS, "When output has colours.", "auto", option="--color", commands=()),
        Setting("verbosity", _VERBOSITIES, "How much stderr says.", "normal", option="--quiet, --verbose", commands=()),
        Setting("cache-dir", PATH, "Directory of downloaded and built binaries.", None, "the user's cache directory"),
        Setting("state-dir", PATH, "Directory of clusters that exist now.", None, "the user's state directory"),
        *map(_binary, ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")),
        *map(_binary, ("kwok-controller", "kwokctl")),
        *map(_mirror, ("kubernetes", "etcd", "kwok")),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a setting that somebody set."""

    value: Any
    source: Source
    origin: str
    """Where exactly: an option, a variable, or a file and line."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; a key that nobody set is not in ``values``."""

    project: Project
    user_file: Path
    values: Mapping[str, Value] = field(default_factory=dict)
    strange: tuple[str, ...] = ()
    """Variables that look like settings and are none."""

    def __getitem__(self, key: str) -> Any:
        """Return what was set; None where nobody did."""
        return self.values[key].value if key in self.values else None

    def origin(self, key: str) -> str:
        """Return where a value came from; ``default`` where nobody set it."""
        return self.values[key].origin if key in self.values else "default"

    @property
    def baselines(self) -> Path:
        """Directory of baselines."""
        return self["baselines"] or self.project.baselines

    def with_flag(self, key: str, value: Any, option: str) -> Settings:
        """Return the settings under an option of the command line, which goes over all else."""
        return replace(self, values={**self.values, key: Value(value, "flag", option)})

    def to_environment(self) -> dict[str, str]:
        """Return the variables that say what files say: of settings without an option of their own, which other processes read too."""
        return {
            SETTINGS[key].variable: str(value.value)
            for key, value in self.values.items()
            if value.source in {"project", "user"} and key.startswith(("cache-dir", "state-dir", "binary.", "mirror."))
        }


def resolve_settings(environ: Mapping[str, str], project: Project, user_file: Path) -> Settings:
    """Read all places. Raises UsageError, with file, line and key, for a key that there is not and a value of a wrong type."""
    values = {
        **_from_file(user_file, (), "user"),
        **_from_file(project.file, ("tool", "scaletest"), "project"),
        **_from_environment(environ),
    }
    known = {setting.variable for setting in SETTINGS.values()} | _OURS
    strange = sorted(name for name in environ if name.startswith(_PREFIX) and name not in known)
    return Settings(project, user_file, values, tuple(strange))


def _from_environment(environ: Mapping[str, str]) -> dict[str, Value]:
    values = {}
    for key, setting in SETTINGS.items():
        # Set to nothing is not set, as for every variable that a shell has.
        if text := environ.get(setting.variable):
            try:
                values[key] = Value(setting.form.from_text(text), "environment", setting.variable)
            except ValueError as error:
                msg = f"{setting.variable}: {error}"
                raise UsageError(msg) from None
    return values


def _from_file(path: Path, table: tuple[str, ...], source: Source) -> dict[str, Value]:
    _refuse_what_is_no_file(path)
    file = read_toml(path)
    if file is None:
        return {}
    given: Any = file.data
    for depth, part in enumerate(table, start=1):
        given = given.get(part, {})
        if not isinstance(given, dict):
            raise _wrong(file, table[:depth], "no table")
    values = {}
    for keys, value in _leaves(given):
        key = ".".join(keys)
        if key not in SETTINGS:
            raise _unknown(file, (*table, *keys), key)
        try:
            read = SETTINGS[key].form.from_toml(value, path.parent.absolute())
        except ValueError as error:
            raise _wrong(file, (*table, *keys), str(error)) from None
        values[key] = Value(read, source, f"{path}:{file.line((*table, *keys))}")
    return values


def _refuse_what_is_no_file(path: Path) -> None:
    """Raise UsageError for a directory or pipe of a file's name (it would wait for a writer), and for a link to nothing."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if not path.is_symlink():
            return
        msg = f"{path}: a link to nothing"
        raise UsageError(msg, hint="Settings would stand there: mend the link or remove it.") from None
    except OSError:
        return
    if stat.S_ISDIR(mode) or stat.S_ISFIFO(mode):
        msg = f"{path}: {'a directory' if stat.S_ISDIR(mode) else 'a pipe'}, not a file"
        raise UsageError(msg, hint="Settings would stand there: give it another name.")


def _leaves(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what stands in a table and in those tables within it that settings have."""
    for key, value in values.items():
        keys = (*above, key)
        if isinstance(value, dict) and any(known.startswith(".".join(keys) + ".") for known in SETTINGS):
            yield from _leaves(value, keys)
        else:
            yield keys, value


def _wrong(file: TomlFile, keys: tuple[str, ...], what: str, hint: str | None = None) -> UsageError:
    line = file.line(keys)
    place = f"{file.path}:{line}" if line is not None else str(file.path)
    return UsageError(f"{place}: {'.'.join(keys)}: {what}", hint=hint)


def _unknown(file: TomlFile, keys: tuple[str, ...], key: str) -> UsageError:
    # Needed for a mistake only.
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(key.replace("_", "-"), SETTINGS, n=1)
    meant = f"Did you mean {near[0]}? " if near else ""
    return _wrong(file, keys, "no such setting", f"{meant}There are: {', '.join(SETTINGS)}.")
