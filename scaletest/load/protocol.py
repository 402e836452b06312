"""What a driver and its owner say to each other: one JSON object a line, each with its ``type``.

    owner → driver    configure, start_flow, begin, set_target, set_rate, set_servers, stop_flow, block, unblock, quit
    driver → owner    ready, flow_started, flow_changed, flow_stopped, error, record

``record`` carries a journal record, the same that the driver has already appended to the journal. Every command about a flow
gets one answer, and the answers about one flow come in the order of the commands: ``flow_started`` to ``start_flow``,
``flow_stopped`` to ``stop_flow``, ``flow_changed`` to the others, or an ``error`` that names the flow.
No secret is sent: credentials are paths of files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.journal import Record
from scaletest.load.shares import WHOLE, Share
from scaletest.profile.schema import FlowSpec

__all__ = [
    "Begin",
    "Block",
    "Command",
    "Configure",
    "DriverError",
    "FlowChanged",
    "FlowStart",
    "FlowStarted",
    "FlowStopped",
    "Quit",
    "Ready",
    "RecordReport",
    "Report",
    "SetRate",
    "SetServers",
    "SetTarget",
    "StopFlow",
    "Unblock",
    "decode_command",
    "decode_report",
    "encode",
]


@dataclass(frozen=True, slots=True)
class Configure:
    """The first command: where the run's journal is, when its clock began (``time.monotonic()``), how often to write.

    Without a journal records are reported and nothing else: whoever owns the driver makes its own of them.
    """

    journal: Path | None
    clock_origin_s: float
    interval_s: float = 1.0

    type = "configure"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        journal = str(self.journal) if self.journal else None
        return {"journal": journal, "clock_origin_s": self.clock_origin_s, "interval_s": self.interval_s}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Configure:
        """Read what ``to_json`` gave."""
        journal = Path(data["journal"]) if data["journal"] else None
        return cls(journal, float(data["clock_origin_s"]), float(data["interval_s"]))


@dataclass(frozen=True, slots=True)
class FlowStart:
    """Start a flow.

    ``target`` is the number of agents (of connections of arrivals and etcd, of pods of a churn, of a locustfile's users). Each agent stands on the node that has the fewest, and
    has that node's credential where ``node_credentials`` are given (one for each of ``nodes``), else that of ``access``.
    ``source_addresses`` are local addresses that connections are spread over; none: the kernel's choice.
    ``directory`` is that of the profile, which a locustfile's path is relative to. ``etcd_endpoint`` is for ``etcd`` flows.
    ``share`` is which part of a flow this driver makes: ``target``, ``nodes`` and the rollout are those of the part, the rate of arrivals is that of the whole, and nothing
    arrives before ``begin``.
    """

    flow: str
    spec: FlowSpec
    access: ApiAccess
    target: int
    nodes: tuple[str, ...] = ()
    node_credentials: tuple[Credential, ...] = ()
    seed: int = 0
    source_addresses: tuple[str, ...] = ()
    directory: Path | None = None
    etcd_endpoint: str | None = None
    share: Share = WHOLE

    type = "start_flow"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "flow": self.flow,
            "spec": self.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
            "access": self.access.to_json(),
            "target": self.target,
            "nodes": list(self.nodes),
            "node_credentials": [credential.to_json() for credential in self.node_credentials],
            "seed": self.seed,
            "source_addresses": list(self.source_addresses),
            "directory": str(self.directory) if self.directory else None,
            "etcd_endpoint": self.etcd_endpoint,
            "share": list(self.share),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FlowStart:
        """Read what ``to_json`` gave."""
        return cls(
            flow=data["flow"],
            spec=FlowSpec.model_validate(data["spec"]),
            access=ApiAccess.from_json(data["access"]),
            target=int(data["target"]),
            nodes=tuple(data["nodes"]),
            node_credentials=tuple(Credential.from_json(item) for item in data["node_credentials"]),
            seed=int(data["seed"]),
            source_addresses=tuple(data["source_addresses"]),
            directory=Path(data["directory"]) if data["directory"] else None,
            etcd_endpoint=data["etcd_endpoint"],
            share=(int(data["share"][0]), int(data["share"][1])),
        )


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin the arrivals of a share, or go on at another rate, that of all shares together.

    ``origin_s`` (``time.monotonic()``) is that of the schedules of all shares.
    """

    flow: str
    origin_s: float
    rate_per_s: float | None = None
    """None: what the flow's profile says."""

    type = "begin"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"flow": self.flow, "origin_s": self.origin_s, "rate_per_s": self.rate_per_s}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Begin:
        """Read what ``to_json`` gave."""
        return cls(data["flow"], float(data["origin_s"]), data["rate_per_s"])


@dataclass(frozen=True, slots=True)
class SetTarget:
    """Grow or shrink a flow.

    ``nodes`` with their credentials are added to the known ones, ``gone`` are taken away: their agents stop at once. Of
    more agents than ``target`` the newest stop. ``source_addresses`` are for new connections; none: those of before.
    """

    flow: str
    target: int
    rollout_per_s: float | None = None
    nodes: tuple[str, ...] = ()
    node_credentials: tuple[Credential, ...] = ()
    gone: tuple[str, ...] = ()
    source_addresses: tuple[str, ...] = ()

    type = "set_target"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "flow": self.flow,
            "target": self.target,
            "rollout_per_s": self.rollout_per_s,
            "nodes": list(self.nodes),
            "node_credentials": [credential.to_json() for credential in self.node_credentials],
            "gone": list(self.gone),
            "source_addresses": list(self.source_addresses),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SetTarget:
        """Read what ``to_json`` gave."""
        credentials = tuple(Credential.from_json(item) for item in data["node_credentials"])
        nodes, gone = tuple(data["nodes"]), tuple(data["gone"])
        addresses = tuple(data["source_addresses"])
        return cls(data["flow"], int(data["target"]), data["rollout_per_s"], nodes, credentials, gone, addresses)


@dataclass(frozen=True, slots=True)
class SetRate:
    """Have a flow of arrivals, etcd or churn go on at another rate, from now on and without end; its connections stay."""

    flow: str
    rate_per_s: float

    type = "set_rate"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"flow": self.flow, "rate_per_s": self.rate_per_s}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SetRate:
        """Read what ``to_json`` gave. Raises ValueError for a rate that is not above 0."""
        rate_per_s = float(data["rate_per_s"])
        if not 0.0 < rate_per_s < float("inf"):
            msg = f"a rate is above 0: {rate_per_s}"
            raise ValueError(msg)
        return cls(data["flow"], rate_per_s)


@dataclass(frozen=True, slots=True)
class SetServers:
    """Name the API servers among which a flow's new connections choose; standing connections stay where they are."""

    flow: str
    servers: tuple[str, ...]

    type = "set_servers"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"flow": self.flow, "servers": list(self.servers)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SetServers:
        """Read what ``to_json`` gave."""
        return cls(data["flow"], tuple(data["servers"]))


@dataclass(frozen=True, slots=True)
class _AboutFlow:
    flow: str

    type = ""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"flow": self.flow}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Any:
        """Read what ``to_json`` gave."""
        return cls(data["flow"])


@dataclass(frozen=True, slots=True)
class StopFlow(_AboutFlow):
    """Stop all agents of a flow at once."""

    type = "stop_flow"


@dataclass(frozen=True, slots=True)
class Block(_AboutFlow):
    """Cut a flow's network path: its connections are closed, new ones refused."""

    type = "block"


@dataclass(frozen=True, slots=True)
class Unblock(_AboutFlow):
    """Open a flow's network path again."""

    type = "unblock"


@dataclass(frozen=True, slots=True)
class FlowStarted(_AboutFlow):
    """The flow's first agents are being started."""

    type = "flow_started"


@dataclass(frozen=True, slots=True)
class FlowChanged:
    """The command is done; what it ended, as counted by the driver itself."""

    flow: str
    agents_stopped: int = 0
    connections_closed: int = 0
    requests_cut_short: int = 0
    """Requests without a whole answer on those connections, standing watches among them."""

    type = "flow_changed"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "flow": self.flow,
            "agents_stopped": self.agents_stopped,
            "connections_closed": self.connections_closed,
            "requests_cut_short": self.requests_cut_short,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FlowChanged:
        """Read what ``to_json`` gave."""
        return cls(
            data["flow"],
            int(data["agents_stopped"]),
            int(data["connections_closed"]),
            int(data["requests_cut_short"]),
        )


@dataclass(frozen=True, slots=True)
class FlowStopped(_AboutFlow):
    """All agents of the flow have stopped, its last record is written."""

    type = "flow_stopped"


@dataclass(frozen=True, slots=True)
class Quit:
    """Stop everything, write what is left, exit."""

    type = "quit"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {}

    @classmethod
    def from_json(cls, _data: dict[str, Any]) -> Quit:
        """Read what ``to_json`` gave."""
        return cls()


@dataclass(frozen=True, slots=True)
class Ready:
    """The driver is configured and listens."""

    pid: int

    type = "ready"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"pid": self.pid}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Ready:
        """Read what ``to_json`` gave."""
        return cls(int(data["pid"]))


@dataclass(frozen=True, slots=True)
class DriverError:
    """A command could not be done. ``usage`` tells a user's mistake (a locustfile) from the machine's."""

    message: str
    hint: str | None = None
    flow: str | None = None
    usage: bool = False

    type = "error"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"message": self.message, "hint": self.hint, "flow": self.flow, "usage": self.usage}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DriverError:
        """Read what ``to_json`` gave."""
        return cls(data["message"], data["hint"], data["flow"], data["usage"])


@dataclass(frozen=True, slots=True)
class RecordReport:
    """A record that the driver has appended to the journal."""

    record: Record

    type = "record"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"record": self.record}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RecordReport:
        """Read what ``to_json`` gave."""
        return cls(data["record"])


Command = Configure | FlowStart | Begin | SetTarget | SetRate | SetServers | StopFlow | Block | Unblock | Quit
Report = Ready | FlowStarted | FlowChanged | FlowStopped | DriverError | RecordReport

_COMMANDS: dict[str, type[Command]] = {
    kind.type: kind
    for kind in (Configure, FlowStart, Begin, SetTarget, SetRate, SetServers, StopFlow, Block, Unblock, Quit)
}
_REPORTS: dict[str, type[Report]] = {
    kind.type: kind for kind in (Ready, FlowStarted, FlowChanged, FlowStopped, DriverError, RecordReport)
}


def encode(message: Command | Report) -> bytes:
    """Return a message as one line."""
    return json.dumps({"type": message.type, **message.to_json()}, separators=(",", ":")).encode() + b"\n"


def decode_command(line: bytes) -> Command:
    """Read a command. Raises ValueError for anything else."""
    command: Command = _decode(line, _COMMANDS)
    return command


def decode_report(line: bytes) -> Report:
    """Read a report. Raises ValueError for anything else."""
    report: Report = _decode(line, _REPORTS)
    return report


def _decode(line: bytes, kinds: dict[str, Any]) -> Any:
    try:
        data = json.loads(line)
        return kinds[data["type"]].from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        msg = f"not a message of the driver's protocol: {line[:120]!r}: {error}"
        raise ValueError(msg) from error
