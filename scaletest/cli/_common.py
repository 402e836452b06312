"""What every command has: ``--color``, ``--quiet`` and ``--verbose``, before or behind its name, and examples at the end of its help.

Examples stand in the docstring of a command, the last thing in it, under a line ``Examples:``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from scaletest.cli._settings import settings, use_settings
from scaletest.cli._streams import Verbosity, detail, set_verbosity
from scaletest.core.consoles import Color, choose_color
from scaletest.core.errors import ScaletestError, UsageError, shorten

__all__ = ["ColorOption", "CommandGroup", "QuietOption", "VerboseOption", "complete_commands", "take_common"]

ColorOption = Annotated[Color | None, typer.Option("--color", help="When output has colours. [default: auto]")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but warnings and errors.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Say on stderr where things come from.")]

_HEADING = "\nExamples:\n"


class CommandGroup(TyperGroup):
    """The root command: what Click says of wrong arguments is as short as what we say, and in words of ours."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Parse the options before the command's name."""
        with _in_our_words():
            return super().make_context(*args, **more)

    def invoke(self, *args: Any, **more: Any) -> Any:
        """Parse the command's own arguments, and run it."""
        with _in_our_words():
            return super().invoke(*args, **more)


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except ScaletestError:
        # In our words already, whatever it was raised from.
        raise
    except Exception as error:
        # Click's errors; Typer has classes of its own for them that it does not export.
        if isinstance(message := getattr(error, "message", None), str):
            setattr(error, "message", shorten(_of_pydantic(error.__cause__) or message))  # noqa: B010
        raise


def _of_pydantic(cause: BaseException | None) -> str | None:
    if cause is None:
        return None
    # Only where something is wrong: it costs the start of a command more than all else.
    from pydantic import ValidationError

    from scaletest.core.mistakes import of_argument

    return of_argument(cause) if isinstance(cause, ValidationError) else None


def take_common(color: Color | None, *, quiet: bool, verbose: bool) -> None:
    """Put into force what settings say of colours and words, under the options given here. Raises UsageError."""
    if quiet and verbose:
        msg = "--quiet and --verbose exclude each other"
        raise UsageError(msg)
    found = settings()
    if color is not None:
        found = found.with_flag("color", color.value, "--color")
    if quiet or verbose:
        option = "--quiet" if quiet else "--verbose"
        found = found.with_flag("verbosity", option.removeprefix("--"), option)
    use_settings(found)
    choose_color(Color(found["color"] or Color.AUTO))
    set_verbosity(Verbosity(found["verbosity"] or Verbosity.NORMAL))


def complete_commands(app: typer.Typer) -> None:
    """Give all commands of an application, and of those under it, the common options, and the end of their help."""
    for command in app.registered_commands:
        assert command.callback is not None
        text, _, examples = inspect.cleandoc(command.callback.__doc__ or "").partition(_HEADING)
        command.help = text
        # The mark keeps Click from filling these lines into a paragraph.
        command.epilog = f"\b{_HEADING}{examples}"
        command.callback = _with_common(command.callback)
    for group in app.registered_groups:
        assert group.typer_instance is not None
        complete_commands(group.typer_instance)


def _with_common(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that takes the common options, too."""

    @functools.wraps(command)
    def with_common(*, color: Color | None, quiet: bool, verbose: bool, **arguments: Any) -> Any:
        take_common(color, quiet=quiet, verbose=verbose)
        for key, value in settings().values.items():
            detail(f"{key} is {value.value} ({value.origin})")
        return command(**arguments)

    own = inspect.signature(command, eval_str=True)
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, default, annotation in (
            ("color", None, ColorOption),
            ("quiet", False, QuietOption),
            ("verbose", False, VerboseOption),
        )
    ]
    # The signature has the types; Typer would work out their texts once more: 10 of the 100 ms of a help page.
    with_common.__annotations__ = {}
    setattr(with_common, "__signature__", own.replace(parameters=[*own.parameters.values(), *common]))  # noqa: B010
    return with_common
