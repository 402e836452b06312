"""The one place that knows ruptures: a library for change points, which brings numpy and scipy and is therefore an extra.

It is imported when it is asked for, and no sooner.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType

from scaletest.analysis.changepoints import Segmenter
from scaletest.core.errors import EnvironmentProblem

__all__ = ["load_segmenter"]


def load_segmenter(load: Callable[[str], ModuleType] = importlib.import_module) -> Segmenter:
    """Return what segments a series exactly (ruptures' ``KernelCPD`` with the linear kernel, in C: the sum of squares).

    Raises EnvironmentProblem when ruptures is not installed.
    """
    try:
        numpy, ruptures = load("numpy"), load("ruptures")
    except ImportError as error:
        msg = f"change points are found by the library ruptures, which is not installed ({error})"
        raise EnvironmentProblem(msg, hint="Install it: python -m pip install 'scaletest[history]'") from None

    def segment(values: Sequence[float], penalty: float, shortest: int) -> Sequence[int]:
        detection = ruptures.KernelCPD(kernel="linear", min_size=shortest).fit(numpy.asarray(values, dtype=float))
        # Ends of segments: the last is the end of the series.
        return [int(end) for end in detection.predict(pen=penalty)[:-1]]

    return segment
