"""What a churn flow does next: its groups of pods, the life that each leads, and what each operation costs.

A Deployment is created, scaled, rolled, scaled … in an order that differs from group to group, deleted, and created anew under another name; a Job and a
bare pod are created and deleted. Whatever is missing is created first, so that the population stays as large as it was asked to be,
up to the scaling: a Deployment of X pods gets a number drawn evenly from X/2 to 3X/2, as the official load test has it (kubernetes/perf-tests,
``clusterloader2/testing/load/config.yaml``).

The cost of an operation is the number of pods that the controllers create or delete because of it, at least 1. Divided by the rate it is the time until the
next operation, which is how that test paces 10 pods a second.

Pure: randomness comes in.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from scaletest.profile.churn import ChurnSpec

__all__ = ["Act", "Group", "Kind", "Move", "Population", "compose"]


class Kind(enum.Enum):
    """What a group's pods belong to."""

    DEPLOYMENT = "deployment"
    JOB = "job"
    POD = "pod"


class Act(enum.Enum):
    """What is done to a group."""

    CREATE = "create"
    SCALE = "scale"
    ROLL = "roll"
    DELETE = "delete"


_LIFE: Final = {
    Kind.DEPLOYMENT: (Act.SCALE, Act.ROLL, Act.DELETE),
    Kind.JOB: (Act.DELETE,),
    Kind.POD: (Act.DELETE,),
}
"""What follows a group's creation, in order."""


@dataclass(slots=True, eq=False)
class Group:
    """A Deployment, a Job or a pod; ``pods`` is its size by plan, ``replicas`` what it was asked to have last."""

    kind: Kind
    pods: int
    serial: int
    namespace: int
    generation: int = 0
    replicas: int = 0
    exists: bool = False
    age: int = 0
    """How many acts of its life are done."""
    busy: bool = False
    doomed: bool = False
    """Whether the population has become too large for it."""

    @property
    def name(self) -> str:
        """Name of its object; another one each time that it is created."""
        return f"{self.kind.value}-{self.serial:05d}-{self.generation}"


@dataclass(frozen=True, slots=True)
class Move:
    """An operation: ``replicas`` is what the group has after it, ``cost`` the pods created or deleted."""

    group: Group
    act: Act
    replicas: int
    cost: int

    @property
    def step(self) -> str:
        """Name in reports."""
        return f"{self.act.value}-{self.group.kind.value}"


def compose(pods: int, spec: ChurnSpec) -> Counter[tuple[Kind, int]]:
    """Return how many groups of which size make up a population of exactly ``pods`` pods."""
    found: Counter[tuple[Kind, int]] = Counter()
    of_jobs = round(pods * spec.jobs)
    bare = min(pods - of_jobs, round(pods * spec.bare_pods))
    for kind, whole in ((Kind.DEPLOYMENT, pods - of_jobs - bare), (Kind.JOB, of_jobs)):
        left = 0.0
        for size in sorted(spec.sizes, key=lambda size: -size.pods):
            left += whole * size.share
            # Sums of shares are not exact.
            groups = int(left / size.pods + 1e-6)
            found[kind, size.pods] += groups
            left -= groups * size.pods
    found[Kind.POD, 1] = pods - sum(size * count for (_, size), count in found.items())
    return +found


class Population:
    """The groups of a flow. ``next_move`` begins an operation, ``ended`` ends it."""

    def __init__(self, spec: ChurnSpec, namespaces: int, random: Random) -> None:
        self._spec = spec
        self._namespaces = namespaces
        self._random = random
        self._serial = 0
        self._absent: deque[Group] = deque()
        self._turn: deque[Group] = deque()
        """Groups that exist, in the order in which they come next."""
        self._doomed: deque[Group] = deque()

    @property
    def groups(self) -> Iterable[Group]:
        """All groups that are to be, whether they exist at this moment or not."""
        return (*self._absent, *self._turn)

    @property
    def is_standing(self) -> bool:
        """Whether every group exists."""
        return not self._absent

    @property
    def is_being_made(self) -> bool:
        """Whether every group exists, or its creation is under way."""
        return all(group.busy for group in self._absent)

    @property
    def has_new(self) -> bool:
        """Whether some group has never been created."""
        return any(not group.generation for group in self._absent)

    @property
    def replicas(self) -> int:
        """Pods that the groups which exist were asked to have."""
        return sum(group.replicas for group in (*self._turn, *self._doomed))

    def resize(self, pods: int) -> None:
        """Add groups, or doom those that are too many."""
        wanted = compose(pods, self._spec)
        have = Counter((group.kind, group.pods) for group in self.groups)
        added: list[Group] = []
        for (kind, size), count in (wanted - have).items():
            for _ in range(count):
                added.append(Group(kind, size, self._serial, self._serial % self._namespaces))
                self._serial += 1
        self._random.shuffle(added)
        self._absent.extend(added)
        surplus = have - wanted
        for group in [*self._absent, *self._turn]:
            if surplus[group.kind, group.pods] > 0:
                surplus[group.kind, group.pods] -= 1
                self._doom(group)

    def next_move(self) -> Move | None:
        """Return the next operation, its group busy from now on; None when every group is busy."""
        for queue in (self._doomed, self._absent, self._turn):
            for _ in range(len(queue)):
                group = queue[0]
                queue.rotate(-1)
                if not group.busy:
                    group.busy = True
                    return self._move(group)
        return None

    def ended(self, move: Move, *, done: bool, missing: bool = False) -> None:
        """End an operation: whether it was ``done``, or the group's object turned out to be ``missing``.

        What was not done is tried again when the group's turn comes.
        """
        group = move.group
        group.busy = False
        if missing:
            self._gone(group)
        elif done:
            group.replicas = move.replicas
            match move.act:
                case Act.CREATE:
                    self._came(group)
                case Act.DELETE:
                    self._gone(group)
                case _:
                    group.age += 1
        elif group.doomed and not group.exists:
            self._doomed.remove(group)

    def _move(self, group: Group) -> Move:
        if not group.exists:
            return Move(group, Act.CREATE, group.pods, group.pods)
        act = Act.DELETE if group.doomed else _LIFE[group.kind][group.age]
        match act:
            case Act.SCALE:
                replicas = self._random.randint(-(-group.pods // 2), group.pods * 3 // 2)
                return Move(group, act, replicas, max(1, abs(replicas - group.replicas)))
            case Act.ROLL:
                return Move(group, act, group.replicas, 2 * group.replicas)
            case _:
                return Move(group, act, 0, group.replicas)

    def _came(self, group: Group) -> None:
        group.exists = True
        if not group.doomed:
            self._absent.remove(group)
            self._turn.append(group)
        life = len(_LIFE[group.kind])
        # The first lives begin at different points, so that operations of all kinds follow each other from the start.
        group.age = group.serial % life if not group.generation else 0

    def _gone(self, group: Group) -> None:
        if group.doomed:
            self._doomed.remove(group)
            return
        if group.exists:
            self._turn.remove(group)
            self._absent.append(group)
        group.exists, group.age, group.replicas = False, 0, 0
        group.generation += 1

    def _doom(self, group: Group) -> None:
        (self._turn if group in self._turn else self._absent).remove(group)
        group.doomed = True
        if group.exists or group.busy:
            self._doomed.append(group)
