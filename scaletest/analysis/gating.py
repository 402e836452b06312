"""The regression gate: rules such as ``p99:10%`` held against the changes of a comparison.

The metrics of a rule are named in full, or from any dot on; ``*`` stands for anything between two dots, at the end for all that
follows; ``kube-`` may be left out, and what stands in brackets: ``apiserver.memory``, ``operator.p50``, ``flow.*.p99``, ``probe.*``.
``max_rps`` is ``search.capacity``. What is allowed is a share of the base
(``10%``), of shares percentage points, or an amount with the metric's unit (``50ms``, ``200MiB``, ``1``).

A rule fails where a metric got worse by more than is allowed, and both tests of the comparison say that it is no chance.
"""

from __future__ import annotations

import difflib
import fnmatch
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from scaletest.analysis.changes import SETTING, Change, Setting
from scaletest.analysis.comparison import Comparison, What, names_of
from scaletest.analysis.metrickinds import ANY, MetricKind, Scale, Unit, kind_of, split_name
from scaletest.core import units
from scaletest.core.errors import ExitCode, UsageError
from scaletest.core.gaterules import split_rule
from scaletest.profile.objectives import Dimension

__all__ = [
    "ALL_RULE",
    "Check",
    "Despite",
    "Gate",
    "GateOutcome",
    "Rule",
    "decide",
    "is_clear",
    "parse_rule",
    "refuse_unknown",
]

GateOutcome = Literal["pass", "fail", "undecided"]

Despite = Literal["profile", "host", "versions", "limits", "few-samples"]
"""What a gate is told not to mind."""

_ANYBODY: Final = f"[{ANY}]"
_ALIASES: Final = {"max_rps": "search.capacity", "max_load": "search.capacity"}
_DIMENSIONS: Final[dict[Unit, Dimension]] = {
    "seconds": Dimension.DURATION, "bytes": Dimension.BYTES, "per_second": Dimension.RATE, "cores": Dimension.COUNT,
    "count": Dimension.COUNT, "share": Dimension.SHARE,
}  # fmt: skip
_DIFFERS: Final[dict[What, str]] = {
    What.PROFILE: "profiles", What.HOST: "hosts", What.VERSIONS: "versions", What.LIMITS: "limits",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """How much worse which metrics may become."""

    text: str
    given_by: str
    metrics: str
    allowed: str | None
    """As written; None: the smallest change that is called of each kind."""

    def allows(self, kind: MetricKind, base: float) -> float:
        """Return what is allowed, on the scale of ``Change.worsening``. Raises UsageError for a unit that the metric has not."""
        if self.allowed is None:
            return kind.least_change(base)
        if self.allowed.endswith("%"):
            share = float(self.allowed[:-1]) / 100
            return share if kind.scale is Scale.RATIO or kind.unit == "share" else share * abs(base)
        dimension = _DIMENSIONS[kind.unit]
        try:
            amount = dimension.parse(self.allowed)
        except ValueError as error:
            msg = f"{self.text} ({self.given_by}): {error}"
            raise UsageError(msg, hint=f"A percentage is possible for every metric: {self.metrics}:10%") from None
        return amount / base if kind.scale is Scale.RATIO and base > 0 else amount

    def matches(self, metric: str) -> bool:
        """Whether the rule is about a metric."""
        wanted, have = split_name(_ALIASES.get(self.metrics, self.metrics)), split_name(metric)
        first = len(have) - len(wanted)
        if wanted[-1] == ANY:
            return any(all(map(_part_matches, wanted, have[start:])) for start in range(first + 1))
        return first >= 0 and all(map(_part_matches, wanted, have[first:]))


ALL_RULE: Final = Rule("any metric", "default", "*", None)
"""What is gated where nobody says what: any called change for the worse."""


def _part_matches(wanted: str, part: str) -> bool:
    if part == ANY:
        return True
    if part.endswith(_ANYBODY):
        wanted = wanted.partition("[")[0]
    forms = {part, part.partition("[")[0]}
    forms |= {form.removeprefix("kube-") for form in forms}
    # Brackets are part of a name here, not a set of characters.
    pattern = wanted.replace("[", "[[]")
    return any(fnmatch.fnmatchcase(form, pattern) for form in forms)


def parse_rule(text: str, given_by: str) -> Rule:
    """Parse ``p99:10%``. Raises UsageError for what is no rule."""
    try:
        metrics, allowed = split_rule(text)
    except ValueError as error:
        msg = f"{given_by}: {error}"
        raise UsageError(msg) from None
    return Rule(text, given_by, metrics, allowed)


@dataclass(frozen=True, slots=True)
class Check:
    """A rule held against one metric."""

    rule: Rule
    metric: str
    allowed: float
    change: Change | None
    """None for a metric that the new side has not."""
    outcome: GateOutcome
    why: str | None
    """Why it is undecided."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate came to."""

    outcome: GateOutcome
    kept: tuple[str, ...]
    """What keeps the gate from deciding at all."""
    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the outcome."""
        return {"pass": ExitCode.PASS, "fail": ExitCode.FAILED, "undecided": ExitCode.INVALID}[self.outcome]


def decide(
    comparison: Comparison, rules: Sequence[Rule], *, despite: Collection[Despite] = (), setting: Setting = SETTING
) -> Gate:
    """Hold rules against a comparison. Raises UsageError for a rule about a metric that neither side has.

    Runs that are invalid, and differences of profile, host, versions or limits that are not among ``despite``, keep the gate from deciding. A
    metric with too few samples does not decide, unless ``few-samples`` is among ``despite``: then its change decides alone.
    """
    changes = {change.metric: change for change in comparison.changes}
    names = names_of(comparison)
    refuse_unknown(rules, names)
    checks: list[Check] = []
    for rule in rules:
        metrics = [name for name in names if rule.matches(name)]
        compared = [
            name for name in metrics if name in changes or (name in comparison.lost and rule.allowed is not None)
        ]
        checks += [_check(rule, name, changes.get(name), despite, setting) for name in compared]
        if not compared:
            checks.append(Check(rule, metrics[0], math.nan, None, "undecided", "not measured in base"))
    kept = tuple(_kept(comparison, despite))
    return Gate(_outcome(kept, checks), kept, tuple(checks))


def refuse_unknown(rules: Sequence[Rule], names: Sequence[str], where: str = "these runs") -> None:
    """Raise UsageError for a rule about none of the metrics that there are, with the near names, and for an amount that its metrics have not.

    Names may hold ``*`` (``measures.possible_metrics``).
    """
    for rule in rules:
        matched = [name for name in names if rule.matches(name)]
        if not matched:
            raise _no_metric(rule, names, where)
        for kind in filter(None, map(kind_of, matched)):
            rule.allows(kind, base=1.0)


def _outcome(kept: Sequence[str], checks: Sequence[Check]) -> GateOutcome:
    outcomes = {check.outcome for check in checks}
    if kept:
        return "undecided"
    if "fail" in outcomes:
        return "fail"
    # What the default rule cannot tell of some metrics is said in the table. Where it can tell of those alone that are equal anyway, it is no gate.
    asked = [check for check in checks if check.rule is not ALL_RULE]
    told = any(check.outcome == "pass" and check.change is not None and not check.change.constant for check in checks)
    if any(check.outcome == "undecided" for check in asked) or not (asked or told):
        return "undecided"
    return "pass"


def _kept(comparison: Comparison, despite: Collection[Despite]) -> Iterable[str]:
    for side in (comparison.base, comparison.new):
        if not side.valid:
            yield f"{side.name} has no valid run"
    for what, said in _DIFFERS.items():
        found = [item for item in comparison.differences if item.what is what]
        if found and what.value not in despite:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            first = found[0]
            yield f"different {said}: {first.key} is {first.base} and {first.new}{more} (gate all the same: --despite {what.value})"


def _check(
    rule: Rule, metric: str, change: Change | None, despite: Collection[Despite], setting: Setting
) -> Check:  # fmt: skip
    if change is None:
        return Check(rule, metric, math.nan, None, "undecided", "not measured in new")
    allowed = rule.allows(change.kind, change.base)
    exceeded = change.worsening >= allowed * (1 - 1e-9) and change.worsening > 0
    if change.why is not None:
        if "few-samples" in despite and not math.isnan(change.change):
            return Check(rule, metric, allowed, change, "fail" if exceeded else "pass", None)
        # Equal values of few runs are still equal.
        if change.constant:
            return Check(rule, metric, allowed, change, "pass", None)
        return Check(rule, metric, allowed, change, "undecided", change.why)
    failed = exceeded and change.is_significant(setting)
    return Check(rule, metric, allowed, change, "fail" if failed else "pass", None)


def is_clear(gate: Gate) -> bool:
    """Whether further runs are not worth their time: no checked metric can have become worse by what is allowed.

    That is so where the interval of each lies on the allowed side. Such a stop lets no false alarm in; a failure is for ``decide`` to find.
    """
    return (
        gate.outcome == "pass"
        and bool(gate.checks)
        and all(check.change is not None and _worst_end(check.change) < check.allowed for check in gate.checks)
    )


def _worst_end(change: Change) -> float:
    end = change.high if change.kind.better == "lower" else -change.low
    return math.inf if math.isnan(end) else end


def _no_metric(rule: Rule, names: Sequence[str], where: str) -> UsageError:
    short = {".".join(split_name(name)[-count:]) for name in names for count in (1, 2, 3)} | set(names)
    whole = sorted(name for name in short if ANY not in name)
    near = difflib.get_close_matches(rule.metrics, whole, n=5, cutoff=0.5)
    msg = f"{rule.text} ({rule.given_by}): no metric {rule.metrics} in {where}"
    listed = near or sorted({split_name(name)[-1] for name in names})
    return UsageError(msg, hint=f"{'Near' if near else 'There are'}: {', '.join(listed)}")


def said_amount(kind: MetricKind, value: float) -> str:
    """Format a value of a metric for people."""
    if math.isnan(value):
        return "not measured"
    if math.isinf(value):
        return "no answer" if kind.scale is Scale.RATIO else "never"
    if kind.unit == "cores":
        return f"{units.format_count(value)} cores"
    return _DIMENSIONS[kind.unit].format(value)
