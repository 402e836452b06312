"""Quantities with units, as people write them in profiles and on the command line.

A duration is ``500ms``, ``20s``, ``1m30s``, ``2h``; a size is ``3.1KB`` (decimal) or ``2GiB``
(binary, as Kubernetes writes ``2Gi``); a rate is ``80/s`` or ``4800/m``; a share is ``1%``.
A bare number has no unit and is refused, except 0.
"""

from __future__ import annotations

import re

__all__ = [
    "format_bytes",
    "format_count",
    "format_duration",
    "format_share",
    "parse_bytes",
    "parse_duration_s",
    "parse_rate_per_s",
    "parse_share",
]

_DURATION_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE_UNITS_BYTES = {
    "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30,
}  # fmt: skip
_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
_DURATION_PART = re.compile(rf"({_NUMBER})(us|ms|s|m|h)")
_DURATION = re.compile(rf"(?:{_NUMBER}(?:us|ms|s|m|h))+")
_SIZE = re.compile(rf"({_NUMBER})\s*([A-Za-z]+)")
_RATE = re.compile(rf"({_NUMBER})\s*/\s*(s|m|h)")
_SHARE = re.compile(rf"({_NUMBER})\s*%")


def parse_duration_s(text: str | float) -> float:
    """Parse a duration into seconds. Raises ValueError with the accepted forms."""
    if text == 0:
        return 0.0
    if isinstance(text, str):
        stripped = text.strip()
        if stripped == "0":
            return 0.0
        if _DURATION.fullmatch(stripped):
            return sum(float(number) * _DURATION_UNITS_S[unit] for number, unit in _DURATION_PART.findall(stripped))
    msg = f"{text!r} is not a duration: write 500ms, 20s, 1m30s or 2h"
    raise ValueError(msg)


def parse_bytes(text: str | float) -> int:
    """Parse a size into bytes. Raises ValueError with the accepted forms."""
    if text == 0:
        return 0
    if isinstance(text, str):
        match = _SIZE.fullmatch(text.strip())
        if match and match[2] in _SIZE_UNITS_BYTES:
            return round(float(match[1]) * _SIZE_UNITS_BYTES[match[2]])
    msg = f"{text!r} is not a size: write 512B, 3KB, 64MiB or 2GiB"
    raise ValueError(msg)


def parse_rate_per_s(text: str | float) -> float:
    """Parse a rate into events per second. Raises ValueError with the accepted forms."""
    if isinstance(text, str) and (match := _RATE.fullmatch(text.strip())):
        return float(match[1]) / _DURATION_UNITS_S[match[2]]
    msg = f"{text!r} is not a rate: write 80/s or 4800/m"
    raise ValueError(msg)


def parse_share(text: str | float) -> float:
    """Parse a share (``1%`` or a number from 0 to 1) into a fraction. Raises ValueError."""
    if isinstance(text, str) and (match := _SHARE.fullmatch(text.strip())):
        return float(match[1]) / 100.0
    if isinstance(text, int | float) and not isinstance(text, bool) and 0 <= text <= 1:
        return float(text)
    msg = f"{text!r} is not a share: write 1% or a number from 0 to 1"
    raise ValueError(msg)


def format_duration(seconds: float) -> str:
    """Format seconds with three significant digits: ``850 µs``, ``12.3 ms``, ``1.25 s``, ``2m05s``."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995e-3:
        return f"{_three_digits(seconds * 1e6)} µs"
    if seconds < 0.9995:
        return f"{_three_digits(seconds * 1e3)} ms"
    if seconds < 99.95:
        return f"{_three_digits(seconds)} s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}h{minutes:02d}m{secs:02d}s" if hours else f"{minutes}m{secs:02d}s"


def format_bytes(size_bytes: float) -> str:
    """Format bytes in binary units with three significant digits: ``62.7 MiB``."""
    if size_bytes < 0:
        return "-" + format_bytes(-size_bytes)
    value, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 999.5 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} B" if unit == "B" else f"{_three_digits(value)} {unit}"


def format_count(count: float) -> str:
    """Format a count with thousands separators: ``20,000``; fractions keep three digits."""
    return f"{count:,.0f}" if float(count).is_integer() or abs(count) >= 1000 else _three_digits(count)


def format_share(share: float) -> str:
    """Format a fraction as a percentage: ``99.4 %``."""
    return f"{share * 100:.3g} %" if share < 0.9995 or share == 1 else f"{share * 100:.2f} %"


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
