"""``scaletest profiles``: list, show and validate profiles."""

from __future__ import annotations

import enum
import json
from typing import Annotated

import typer

from scaletest.cli import _completion as complete
from scaletest.cli._options import ProfileArgument, SetOption, SizeOption
from scaletest.cli._streams import answer, hand_over, tell
from scaletest.core.errors import Problem, ProfileError, UsageError

__all__ = ["app"]

app = typer.Typer(help="List, show and validate profiles.", no_args_is_help=True)

VariantOption = Annotated[
    str | None,
    typer.Option(
        "--variant",
        metavar="NAME",
        help="Take one of the variants that the profile names.",
        autocompletion=complete.variants,
    ),
]


class TextOrJson(enum.StrEnum):
    """Output formats of a list."""

    TEXT = "text"
    JSON = "json"


class YamlOrJson(enum.StrEnum):
    """Output formats of a profile."""

    YAML = "yaml"
    JSON = "json"


@app.command("list")
def list_profiles(
    output: Annotated[TextOrJson, typer.Option("--format", help="How to write it.")] = TextOrJson.TEXT,
) -> None:
    """List the built-in profiles.

    Examples:
      scaletest profiles list
      scaletest profiles list --format json
    """
    from scaletest.profile.builtin import built_in_profiles

    profiles = built_in_profiles()
    if output is TextOrJson.JSON:
        entries = [{"name": entry.name, "summary": entry.summary, "path": str(entry.path)} for entry in profiles]
        hand_over(json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
        return
    width = max((len(entry.name) for entry in profiles), default=0)
    for entry in profiles:
        answer(f"{entry.name:<{width}}  {entry.summary}")


@app.command("show")
def show(
    profile: ProfileArgument,
    set_: SetOption = None,
    size: SizeOption = None,
    variant: VariantOption = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say where every value came from.")] = False,
    source: Annotated[
        bool, typer.Option("--source", help="Print the file as it was written: to copy it, and make it yours.")
    ] = False,
    output: Annotated[YamlOrJson, typer.Option("--format", help="How to write it.")] = YamlOrJson.YAML,
) -> None:
    """Print a profile as it will be run: parameters filled in, defaults included.

    Examples:
      scaletest profiles show smoke
      scaletest profiles show smoke --source
      scaletest profiles show smoke --set nodes=200 --origin
    """
    from scaletest.cli._settings import settings, versions_of
    from scaletest.profile.loading import load_profile
    from scaletest.profile.render import to_yaml, to_yaml_with_origins

    if source:
        if set_ or size or variant or origin or output is not YamlOrJson.YAML:
            msg = "--source prints the file as it stands: no other option goes with it"
            raise UsageError(msg)
        hand_over(load_profile(profile).path.read_text(encoding="utf-8"))
        return
    loaded = load_profile(profile, set_ or [], size=size, variant=variant, versions=versions_of(settings()))
    _print_warnings(loaded.warnings)
    if output is YamlOrJson.JSON:
        shown: dict[str, object] = {"profile": loaded.resolved}
        if origin:
            shown["origins"] = {key: str(where) for key, where in loaded.provenance.items()}
        hand_over(json.dumps(shown, indent=2, ensure_ascii=False) + "\n")
    elif origin:
        hand_over(to_yaml_with_origins(loaded.resolved, loaded.provenance, loaded.searched))
    else:
        hand_over(to_yaml(loaded.resolved, loaded.searched))


@app.command("validate")
def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="YAML files or names of built-in profiles.", autocompletion=complete.profiles
        ),
    ],
    set_: SetOption = None,
) -> None:
    """Check profiles in each of their sizes and variants; all problems of all files are shown, and any ends in exit code 2.

    Examples:
      scaletest profiles validate mine.yaml
      scaletest profiles validate profiles/*.yaml
    """
    from scaletest.profile.loading import load_profile
    from scaletest.runner.versions import version_problems

    problems: list[Problem] = []
    for reference in files:
        try:
            loaded = load_profile(reference, set_ or [])
            others = [load_profile(reference, set_ or [], size=size) for size in loaded.profile.sizes]
            others += [load_profile(reference, set_ or [], variant=name) for name in loaded.profile.variants]
        except ProfileError as error:
            problems.extend(error.problems)
        except UsageError as error:
            problems.append(Problem(error.message, hint=error.hint))
        else:
            _print_warnings(loaded.warnings)
            unknown = [problem for each in [loaded, *others] for problem in version_problems(each)]
            problems.extend(unknown)
            if not unknown:
                answer(f"{reference}: valid")
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise ProfileError(list(dict.fromkeys(problems)), hint=f"{count} found")


def _print_warnings(warnings: list[Problem]) -> None:
    for warning in warnings:
        tell(f"warning: {warning}")
