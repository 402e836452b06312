"""Whose mistake it is: options that stand for values of a profile, and are read as ``--set`` is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from scaletest.core.errors import ProfileError

__all__ = ["blamed_on"]


@contextmanager
def blamed_on(options: Mapping[str, str]) -> Iterator[None]:
    """Have mistakes in overrides told as mistakes in the options that stand for them, by override (``KEY=VALUE``)."""
    said = {f"--set {override}": option for override, option in options.items()}
    try:
        yield
    except ProfileError as error:
        problems = [replace(problem, file=said.get(problem.file or "", problem.file)) for problem in error.problems]
        raise ProfileError(problems, hint=error.hint) from None
