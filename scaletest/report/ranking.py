"""Variants by what their searches found, the largest N* first: what an author can gain by a change, and what a change costs.

A factor compares a variant with the first of the matrix. Where N* is *derived* (``search.beyond``), what was made as it is stands first, as a lower bound.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scaletest.analysis.limiting import Finding, Resource
from scaletest.analysis.saturation import Point, Saturation
from scaletest.analysis.search import Reason
from scaletest.analysis.searchlog import SearchLog
from scaletest.core.matrixdir import VARIANT_AXIS, MatrixInfo, VariantEntry
from scaletest.core.units import format_count
from scaletest.report import matrix_document as doc
from scaletest.report.glyphs import NOTHING
from scaletest.report.saturation import load_text, made_as_it_is

__all__ = ["Searched", "rank", "rank_factor"]

_SHORT: Final = {
    Resource.MEMORY: "memory",
    Resource.CPU: "CPU",
    Resource.HOST_CPU: "CPU of the host",
    Resource.APF: "APF",
    Resource.ETCD_SPACE: "space of etcd",
    Resource.ETCD_FSYNC: "disk of etcd",
    Resource.ETCD_CPU: "CPU of etcd",
    Resource.GENERATOR: "load driver",
}

_ENDED: Final = {
    Reason.NEVER_FAILED: "nothing failed: the search ends there",
    Reason.GENERATOR_LIMIT: "the load generator could not make more",
    Reason.OUT_OF_TIME: "the time for the search was over",
    Reason.CUT: "the search was cut short",
}


@dataclass(frozen=True, slots=True)
class Searched:
    """A variant, and what the search of each of its runs that count found."""

    entry: VariantEntry
    found: Sequence[Saturation]


def rank(info: MatrixInfo, variants: Sequence[Searched]) -> doc.RankingReport | None:
    """Rank the variants of a matrix; None where none of them was searched, or they were searched for different things."""
    logs = [found.log for variant in variants for found in variant.found]
    if len({(log.parameter, log.unit) for log in logs}) != 1:
        return None
    first = _Summary(variants[0])
    ranks = [(summary := _Summary(variant), _report(info, summary, first)) for variant in variants]
    # Of equals, the order of the matrix.
    ranks.sort(key=lambda item: item[0].load_key, reverse=True)
    log = next(iter(logs))
    return doc.RankingReport(
        parameter=log.parameter,
        unit=log.unit,
        holds=list(log.holds),
        reference=_label(variants[0].entry),
        ranks=[report for _, report in ranks],
    )


class _Summary:
    """The runs of a variant together; NaN for what was not found."""

    def __init__(self, variant: Searched) -> None:
        self.entry = variant.entry
        self.found = variant.found
        held = [found.found.holds for found in variant.found if found.found.holds is not None]
        made = [value for found in variant.found if (value := made_as_it_is(found.log, found.found)) is not None]
        failed = [found.found.fails for found in variant.found]
        self.log: SearchLog | None = variant.found[0].log if variant.found else None
        self.capacity = statistics.median(held) if held else math.nan
        self.made = statistics.median(made) if made else math.nan
        self.low = self._lightest(held)
        known = [value for value in failed if value is not None]
        self.fails_at = self._heaviest(known) if known and len(known) == len(failed) else math.nan
        self.derived = bool(held) and self.log is not None and self.log.is_derived(self.capacity)

    def _lightest(self, values: Sequence[float]) -> float:
        return min(values, key=self._key, default=math.nan)

    def _heaviest(self, values: Sequence[float]) -> float:
        return max(values, key=self._key, default=math.nan)

    def _key(self, value: float) -> float:
        return self.log.space.key(value) if self.log is not None else math.nan

    @property
    def load_key(self) -> float:
        """A number that grows with N*."""
        if not math.isnan(self.capacity):
            return self._key(self.capacity)
        # Nothing held: less than the lightest load, which says more than nothing at all.
        return -math.inf if math.isnan(self.fails_at) else self._key(self.fails_at) - 1e6

    def factor(self, value: float, first: _Summary) -> float:
        """Return how many times the load of the first variant a load is."""
        if self.log is None or first.log is None:
            return math.nan
        return math.exp(self._key(value) - first._key(first.capacity))

    @property
    def points(self) -> Iterator[Point]:
        """The steps at N* that counted."""
        for found in self.found:
            yield from (point for point in found.points if point.step.value == self.capacity and point.step.counted)


def _report(info: MatrixInfo, summary: _Summary, first: _Summary) -> doc.RankReport:
    return doc.RankReport(
        variant=summary.entry.name,
        label=_label(summary.entry),
        summary=_words(info.profile, summary.entry),
        runs=len(summary.found),
        capacity=summary.capacity,
        low=summary.low,
        fails_at=summary.fails_at,
        derived=summary.derived,
        made_as_it_is=summary.made,
        factor=summary.factor(summary.capacity, first),
        measured_factor=summary.factor(summary.made, first),
        gave_out=_several(_gave_out(found) for found in summary.found),
        past=_several(found.past.behaviour.value if found.past is not None else None for found in summary.found),
        said=_said(summary),
        notes=list(_notes(info, summary, first)),
    )


def _label(entry: VariantEntry) -> str:
    """Name a variant by its values; of the profile's own variants the name alone says enough."""
    values = (value if key == VARIANT_AXIS else f"{key}={value}" for key, value in entry.values.items())
    return ", ".join(values) or entry.name


def _words(profile: Mapping[str, Any], entry: VariantEntry) -> str | None:
    variant = profile.get("variants", {}).get(entry.values.get(VARIANT_AXIS))
    return str(variant["summary"]) if variant else None


def _several(words: Iterator[str | None]) -> str | None:
    return ", ".join(dict.fromkeys(word for word in words if word is not None)) or None


def _gave_out(found: Saturation) -> str | None:
    if found.attribution is None:
        return None
    return "none at its limit" if found.attribution.limit is None else _resource(found.attribution.limit)


def _resource(limit: Finding) -> str:
    return f"APF {limit.subject}" if limit.resource is Resource.APF else _SHORT[limit.resource]


def _said(summary: _Summary) -> str:
    log = summary.log
    if log is None or (math.isnan(summary.made) and math.isnan(summary.fails_at)):
        return NOTHING
    if math.isnan(summary.made):
        return f"< {load_text(log, summary.fails_at)}"
    if summary.derived:
        return f"≥ {load_text(log, summary.made)}"
    return _interval(log, summary)


def _interval(log: SearchLog, summary: _Summary) -> str:
    if math.isnan(summary.fails_at):
        return f"≥ {load_text(log, summary.low)}"
    return f"{load_text(log, summary.low)} – {load_text(log, summary.fails_at)}"


def _notes(info: MatrixInfo, summary: _Summary, first: _Summary) -> Iterator[str]:
    log = summary.log
    if log is None:
        yield "not searched"
        return
    if summary.derived:
        times = factor_text(summary.factor(summary.capacity, first))
        yield f"derived: {_interval(log, summary)}{f' ({times} ×)' if times else ''}{_from(info, summary, log)}"
    reasons = dict.fromkeys(found.found.reason for found in summary.found)
    for reason in reasons:
        if reason in _ENDED:
            yield _ENDED[reason]
    why = next((step.reason for step in reversed(log.at(summary.fails_at)) if step.reason), "")
    if Reason.NEVER_HELD in reasons:
        yield f"the lightest load failed: {why}" if why else "the lightest load failed"
    elif why and any(found.attribution is not None and found.attribution.limit is None for found in summary.found):
        # No resource says why it failed: then what did not hold does.
        yield f"at {load_text(log, summary.fails_at)}: {why}"


def _from(info: MatrixInfo, summary: _Summary, log: SearchLog) -> str:
    """Say what a derived N* rests on: the answers per second that were measured, times the period that they stand for."""
    rates = [point.answers_per_s for point in summary.points if not math.isnan(point.answers_per_s)]
    landing = log.space.landing
    if not rates or landing is None:
        return ""
    own = _own_value(info, summary.entry, log)
    by = f", from {format_count(round(statistics.median(rates)))} answers/s"
    return f"{by} × {own} at {load_text(log, landing)}" if own is not None else f"{by} at {load_text(log, landing)}"


def _own_value(info: MatrixInfo, entry: VariantEntry, log: SearchLog) -> str | None:
    """Return what the parameter that makes derived loads is where none is derived."""
    changed = entry.changes.get(f"parameters.{log.beyond}")
    value = info.profile.get("parameters", {}).get(log.beyond) if changed is None else changed
    return None if value is None else str(value)


def rank_factor(rank: doc.RankReport, ranking: doc.RankingReport) -> str:
    """Write the factor of a variant against the first: a lower bound where more than was made, or no failure, stands behind it."""
    is_reference = rank.label == ranking.reference
    factor = factor_text(rank.factor if is_reference else rank.measured_factor)
    at_least = "≥ " if factor and not is_reference and (rank.derived or rank.fails_at is None) else ""
    return f"{at_least}{factor}"


def factor_text(factor: float | None) -> str:
    """Write a factor; empty where there is none."""
    if factor is None or math.isnan(factor):
        return ""
    return f"{factor:.2f}" if factor < 10 else format_count(round(factor))
