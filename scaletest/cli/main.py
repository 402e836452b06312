"""The ``scaletest`` command: its verbs, and how errors become messages and exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from scaletest import __version__
from scaletest.cli import (
    baseline,
    binaries,
    clean,
    cluster,
    compare,
    config,
    doctor,
    gate,
    history,
    init,
    open_page,
    profiles,
    report,
    run,
    runs,
)
from scaletest.cli._common import ColorOption, CommandGroup, QuietOption, VerboseOption, complete_commands, take_common
from scaletest.cli._completion import complete_for_bash
from scaletest.cli._settings import defaults_of, settings_here, use_settings
from scaletest.cli._streams import answer, is_verbose, name_standard_output, of_standard_output, reader_may_go, tell
from scaletest.core.errors import ExitCode, ScaletestError, UsageError, of_the_machine

__all__ = ["app", "main", "refuse_empty"]

app = typer.Typer(
    name="scaletest",
    cls=CommandGroup,
    help="Control-plane load and scale tests for Kubernetes: real control planes, fake nodes, measured verdicts.",
    epilog="""\
First run:  scaletest run smoke      A profile of your own:  scaletest init

Exit codes: 0 pass, 99 failed, 4 invalid or not to be told, 3 environment, 2 wrong usage, 130 interrupted, 1 a bug.
""",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help, as kubectl prints it: importing what draws boxes takes longer than all else that --help does.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("run")(run.run)
app.command("init", short_help="Write a commented profile to begin with.")(init.init)
app.command("report")(report.report)
app.command("compare", short_help="Compare runs with others, beyond chance.")(compare.compare)
app.command("gate", short_help="Run a profile several times: is it worse than before?")(gate.gate)
app.command("history", short_help="Show metrics over many runs, and where they shifted.")(history.history)
app.command("open", short_help="Open the HTML report of a run in a browser.")(open_page.open_report)
app.add_typer(runs.app, name="runs")
app.command("doctor")(doctor.doctor)
app.command("clean", short_help="Remove what dead clusters have left behind.")(clean.clean)
app.add_typer(baseline.app, name="baseline")
app.add_typer(profiles.app, name="profiles")
app.add_typer(cluster.app, name="cluster", short_help="Start, show and end clusters that stay up.")
app.add_typer(binaries.app, name="binaries", short_help="List, fetch, build and verify binaries.")
app.add_typer(config.app, name="config")
complete_commands(app)


def _print_version(asked: bool) -> None:
    if asked:
        answer(f"scaletest {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    color: ColorOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    try:
        found = settings_here()
    except UsageError:
        if "--help" in sys.argv:
            # What helps to mend a mistake does not wait for it to be mended.
            return
        raise
    # Other processes of ours, and what is far from the command line, look there.
    os.environ.update(found.to_environment())
    context.default_map = defaults_of(context.command, found)
    use_settings(found)
    take_common(color, quiet=quiet, verbose=verbose)


def main() -> None:
    """Run the command line and exit with one of ``ExitCode``."""
    _open_closed_streams()
    name_standard_output()
    _end_in_order_by_signal()
    offered = complete_for_bash(os.environ, _complete)
    if offered is not None:
        sys.stdout.write(offered)
        return
    try:
        refuse_empty(sys.argv[1:])
        code = _run()
        # What is still in the buffer would fail at the exit, where nobody is told.
        with reader_may_go():
            pass
    except ScaletestError as error:
        sys.exit(_tell(error))
    except BrokenPipeError:
        # The reader went away (`scaletest profiles list | head`); nothing is left to say to it.
        sys.stderr.close()
        sys.exit(int(ExitCode.PASS))
    except KeyboardInterrupt:
        tell("scaletest: interrupted")
        sys.exit(int(ExitCode.INTERRUPTED))
    except (OSError, MemoryError, RuntimeError) as error:
        problem = of_standard_output(error) or of_the_machine(error)
        if problem is None:
            raise
        sys.exit(_tell(problem))
    sys.exit(code)


def _run() -> str | int | None:
    """Run the command; return its exit code."""
    try:
        app()
    except SystemExit as end:
        # Click ends in 1 when the reader went away.
        return int(ExitCode.PASS) if isinstance(end.__context__, BrokenPipeError) else end.code
    return int(ExitCode.PASS)


def refuse_empty(words: Sequence[str]) -> None:
    """Refuse empty arguments, of which paths would become the current directory. Raises UsageError."""
    for before, word in zip(["scaletest", *words], words, strict=False):
        option, equals, value = word.partition("=")
        if not word:
            msg = f"the argument behind {before} is empty"
        elif option.startswith("--") and equals and not value:
            msg = f"{option} is empty"
        else:
            continue
        raise UsageError(msg, hint="A variable of the shell that is not set makes such an argument.")


def _complete(variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
    app(prog_name="scaletest")


def _end_in_order_by_signal() -> None:
    """Have SIGTERM and the end of the terminal do what Ctrl-C does, where nothing better is set up yet.

    By default they end the process on the spot: in the middle of a build the compiler would go on, alone.
    """
    for signum in (signal.SIGTERM, signal.SIGHUP):
        # Ignored under nohup, which stays so.
        if signal.getsignal(signum) is signal.SIG_DFL:
            signal.signal(signum, signal.default_int_handler)


def _open_closed_streams() -> None:
    """Have something stand in the place of standard streams that were closed (``scaletest … >&-``).

    Else the next file that is opened would be standard output, and a journal would get what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def _tell(error: ScaletestError) -> int:
    """Say what went wrong; return the exit code."""
    # Where standard error is gone too (a closed terminal, a full disk), the exit code has to do.
    with contextlib.suppress(OSError):
        if is_verbose():
            import traceback

            traceback.print_exception(error)
        tell(f"scaletest: {error.message}")
        if error.hint:
            tell(f"  {error.hint}")
    return int(error.exit_code)
