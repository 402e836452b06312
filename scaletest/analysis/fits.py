"""Laws fitted to the curve of a saturation search. Estimates: each comes with its residuals, none decides anything.

**Universal Scalability Law** (N. J. Gunther, "A simple capacity model of massively parallel transaction systems", CMG 1993; "Guerrilla
Capacity Planning", Springer 2007)::

    X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1))

λ is the throughput of one client, σ the share that is serial (contention), κ the cost of keeping clients coherent, which is
what bends the curve down behind its peak at N = √((1 - σ) / κ). Divided by X it is linear in its coefficients, ``N/X = a + b (N - 1) + c N (N - 1)``, so
no optimiser is needed: least squares, each equation weighted so that relative errors of X count, with a > 0 and b, c ≥ 0.

**Agents law**: N agents, one per node, that list B(N) bytes every T seconds ask for N B(N) / T bytes a second; m API servers
deliver m C. Demand meets capacity at N*. Where every agent lists objects that stand on the nodes, B(N) = k s N and
N* = √(m C T / (k s)): four times the servers carry twice the nodes. Where the fleet is fixed, B does not depend on N and N* = m C T / B is
linear. Measured answers are some of both, B(N) = B₀ + b N, and N* is the positive root of b N² + B₀ N = m C T.

Both are solved here in a few lines of plain Python: the normal equations are 3 × 3 at most, and numpy and scipy would add more than
100 MB to an installation that has no other use for them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["AgentsLaw", "Residual", "UslFit", "agents_law", "fit_answer_bytes", "fit_usl", "least_squares"]


@dataclass(frozen=True, slots=True)
class Residual:
    """What a law says of a point, and what was measured."""

    load: float
    measured: float
    predicted: float

    @property
    def relative(self) -> float:
        """Measured over predicted, less one."""
        return self.measured / self.predicted - 1


@dataclass(frozen=True, slots=True)
class UslFit:
    """The Universal Scalability Law of a curve."""

    per_client: float
    """λ: throughput of the first client."""
    contention: float
    """σ."""
    coherence: float
    """κ."""
    residuals: tuple[Residual, ...]

    def throughput(self, load: float) -> float:
        """Return the throughput at a load."""
        return self.per_client * load / (1 + self.contention * (load - 1) + self.coherence * load * (load - 1))

    @property
    def peak_load(self) -> float:
        """The load at which throughput is largest; infinite where the curve never bends down."""
        if self.coherence == 0:
            return math.inf
        return math.sqrt(max(0.0, 1 - self.contention) / self.coherence)

    @property
    def peak(self) -> float:
        """The largest throughput: at the peak, or the limit λ / σ that a curve without one approaches; infinite without contention."""
        if math.isfinite(self.peak_load):
            return self.throughput(max(1.0, self.peak_load))
        return self.per_client / self.contention if self.contention > 0 else math.inf

    @property
    def worst_residual(self) -> float:
        """The largest relative residual, as a share."""
        return max(abs(item.relative) for item in self.residuals)


def fit_usl(points: Sequence[tuple[float, float]]) -> UslFit | None:
    """Fit (load, throughput) pairs; None with fewer than three different loads, or where no such curve fits."""
    known = [(load, rate) for load, rate in points if load > 0 and rate > 0]
    if len({load for load, _ in known}) < 3:
        return None
    columns = [[1.0] * len(known), [load - 1 for load, _ in known], [load * (load - 1) for load, _ in known]]
    weights = [rate / load for load, rate in known]
    weighted = [[value * weight for value, weight in zip(column, weights, strict=True)] for column in columns]
    found = _not_negative(weighted, [1.0] * len(known))
    if found is None or found[0] <= 0:
        return None
    base, serial, coherent = found
    fit = UslFit(1 / base, serial / base, coherent / base, ())
    residuals = tuple(Residual(load, rate, fit.throughput(load)) for load, rate in known)
    return UslFit(fit.per_client, fit.contention, fit.coherence, residuals)


@dataclass(frozen=True, slots=True)
class AgentsLaw:
    """Where the demand of agents that list meets the capacity of API servers."""

    servers: int
    """m."""
    capacity_bytes_per_s: float
    """C, of one API server."""
    period_s: float
    """T."""
    fixed_bytes: float
    """B₀: the part of an answer that does not depend on the load."""
    bytes_per_agent: float
    """b = k s: what an answer grows by with each agent, whose node brings objects of its own."""
    residuals: tuple[Residual, ...] = ()
    """Of the size of an answer."""

    @property
    def limit(self) -> float:
        """N*: the number of agents whose demand is the capacity."""
        supply = self.servers * self.capacity_bytes_per_s * self.period_s
        if self.bytes_per_agent == 0:
            return supply / self.fixed_bytes if self.fixed_bytes > 0 else math.inf
        root = math.sqrt(self.fixed_bytes**2 + 4 * self.bytes_per_agent * supply)
        # The same as (root - B₀) / 2b, without the difference of two nearly equal numbers.
        return 2 * supply / (root + self.fixed_bytes)

    @property
    def formula(self) -> str:
        """The law that this is mostly: by which part of the answer is larger at the limit."""
        grows = self.bytes_per_agent * self.limit >= self.fixed_bytes
        return "sqrt(m·C·T / (k·s))" if grows else "m·C·T / B"


def fit_answer_bytes(points: Sequence[tuple[float, float]]) -> tuple[float, float, tuple[Residual, ...]] | None:
    """Fit the size of answers over the load, (agents, bytes): B₀ and b, neither below 0; None without a point."""
    known = [(load, size) for load, size in points if load > 0 and size > 0]
    if not known:
        return None
    weights = [1 / size for _, size in known]
    columns = [weights, [load * weight for (load, _), weight in zip(known, weights, strict=True)]]
    if len({load for load, _ in known}) < 2:
        columns = columns[:1]
    found = _not_negative(columns, [1.0] * len(known))
    if found is None:
        return None
    fixed, grows = found[0], found[1] if len(found) > 1 else 0.0
    return fixed, grows, tuple(Residual(load, size, fixed + grows * load) for load, size in known)


def agents_law(
    sizes: Sequence[tuple[float, float]], *, servers: int, capacity_bytes_per_s: float, period_s: float
) -> AgentsLaw | None:
    """Return the law for measured (agents, bytes of an answer); None where nothing was measured."""
    fitted = fit_answer_bytes(sizes)
    if fitted is None or not capacity_bytes_per_s > 0 or not period_s > 0:
        return None
    fixed, grows, residuals = fitted
    return AgentsLaw(servers, capacity_bytes_per_s, period_s, fixed, grows, residuals)


def least_squares(columns: Sequence[Sequence[float]], target: Sequence[float]) -> list[float] | None:
    """Solve ``columns · x ≈ target`` by modified Gram-Schmidt; None where columns depend on each other.

    Orthogonal columns keep the digits that normal equations would square away: N and N² of 50 to 20,000 agents are nearly alike.
    """
    orthogonal: list[list[float]] = []
    upper: list[list[float]] = []
    for column in columns:
        rest, coefficients = list(column), []
        for base in orthogonal:
            share = _dot(base, rest)
            coefficients.append(share)
            rest = [value - share * part for value, part in zip(rest, base, strict=True)]
        norm = math.hypot(*rest)
        if norm <= 1e-10 * math.hypot(*column):
            return None
        orthogonal.append([value / norm for value in rest])
        upper.append([*coefficients, norm])
    left = list(target)
    shares: list[float] = []
    for base in orthogonal:
        share = _dot(base, left)
        shares.append(share)
        left = [value - share * part for value, part in zip(left, base, strict=True)]
    solution = [0.0] * len(columns)
    for row in reversed(range(len(columns))):
        known = sum(upper[later][row] * solution[later] for later in range(row + 1, len(columns)))
        solution[row] = (shares[row] - known) / upper[row][row]
    return solution


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def _not_negative(columns: Sequence[Sequence[float]], target: Sequence[float]) -> list[float] | None:
    """Solve least squares with no coefficient below 0: of all subsets of columns whose solution has none, the best."""
    best, best_error = None, math.inf
    for size in range(1, len(columns) + 1):
        for chosen in itertools.combinations(range(len(columns)), size):
            part = least_squares([columns[index] for index in chosen], target)
            if part is None or min(part) < 0:
                continue
            solution = [0.0] * len(columns)
            for index, value in zip(chosen, part, strict=True):
                solution[index] = value
            fitted = [
                sum(x * column[row] for x, column in zip(solution, columns, strict=True)) for row in range(len(target))
            ]
            error = math.fsum((wanted - got) ** 2 for wanted, got in zip(target, fitted, strict=True))
            if error < best_error * (1 - 1e-12):
                best, best_error = solution, error
    return best
