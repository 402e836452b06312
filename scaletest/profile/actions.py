"""What the runner can do when a phase begins: faults, levers, and changes of the fleet.

foreground   done before the clock of the phase goes on: grow, block, unblock, kill, freeze, thaw, restart, slowDisk
background   under way while the phase lasts, and ended with it: shrink, deleteRollout, applyFlowControl, addApiServers, captureProfiles
lever        a named set of the others (``scaletest.profile.levers``)
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from scaletest.profile.forms import Name, PositiveDurationS
from scaletest.profile.names import ComponentName, check_identity

__all__ = [
    "BACKGROUND",
    "LEVERS",
    "Action",
    "AddApiServersAction",
    "CaptureProfilesAction",
    "ComponentAction",
    "DeleteRolloutAction",
    "FlowAction",
    "FlowControlAction",
    "LeverName",
    "ResizeAction",
    "SlowDiskAction",
]

LeverName = Literal["none", "block-agents", "scale-down", "add-api-servers", "apf", "all-three"]
LEVERS: Final[tuple[LeverName, ...]] = (
    "none", "block-agents", "scale-down", "add-api-servers", "apf", "all-three",
)  # fmt: skip

MOST_ADDED_API_SERVERS: Final = 7


def _operator(value: str) -> str:
    if check_identity(value) == "node":
        msg = "an operator cannot be a node"
        raise ValueError(msg)
    return value


OperatorIdentity = Annotated[str, AfterValidator(_operator)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)


class ResizeAction(_Model):
    """A change of a pool's size."""

    pool: Name = Field(description="Pool to change.")
    by: int = Field(ge=1, le=100_000, description="Number of nodes.")


class FlowAction(_Model):
    """A flow whose network path is cut or opened."""

    flow: Name = Field(description="Flow that runs at this point.")


class ComponentAction(_Model):
    """A component of the control plane; with several API servers, the first."""

    component: ComponentName = Field(description="Component to act on.")


class FlowControlAction(_Model):
    """API Priority and Fairness objects: a break-glass level for operators, and a small one for the agents.

    Applied through the API, tried again every 5 s until it takes them or the phase ends.
    """

    identity: OperatorIdentity = Field("system:masters", description="Who applies them.")
    operator_shares: int = Field(
        30,
        ge=1,
        le=1_000,
        description="Concurrency shares of the operators' level (the defaults of Kubernetes sum to 245).",
    )
    agent_shares: int = Field(
        1,
        ge=1,
        le=1_000,
        description="Concurrency shares of the agents' level, which borrows nothing and rejects the rest.",
    )


class DeleteRolloutAction(_Model):
    """The rollback: delete the DaemonSet that a flow belongs to, through the API.

    Tried again every 5 s until the phase ends. It is done when the DaemonSet is gone and 95 % of the agents have
    stopped because of it.
    """

    flow: Name = Field(description="Flow with a `daemonSet`.")
    identity: OperatorIdentity = Field("system:masters", description="Who deletes it.")


class AddApiServersAction(_Model):
    """Further API servers on the same etcd, each with the limits of the first."""

    count: int = Field(ge=1, le=MOST_ADDED_API_SERVERS, description="Number of API servers to add.")


class SlowDiskAction(_Model):
    """Delay every fdatasync of etcd while the phase lasts; needs `strace`."""

    delay_s: PositiveDurationS = Field(alias="delay", description="Delay of each fdatasync.")


class CaptureProfilesAction(_Model):
    """Profiles of every API server: CPU over some seconds, then heap and goroutines. The report says where its time went."""

    seconds: int = Field(10, ge=1, le=60, description="Length of the CPU profile.")


class Action(_Model):
    """Something the runner does when a phase begins: exactly one of its keys."""

    grow: ResizeAction | None = Field(None, description="Add nodes with their pods to a pool.")
    shrink: ResizeAction | None = Field(
        None,
        description=(
            "End the newest machines of a pool: their agents stop at once, their objects are deleted as far as the API "
            "answers while the phase lasts."
        ),
    )
    block: FlowAction | None = Field(
        None, description="Cut a flow's network path: connections closed, new ones refused."
    )
    unblock: FlowAction | None = Field(None, description="Open a flow's network path again.")
    kill: ComponentAction | None = Field(None, description="SIGKILL; restarted with the kubelet's back-off.")
    freeze: ComponentAction | None = Field(None, description="SIGSTOP, until `thaw`.")
    thaw: ComponentAction | None = Field(None, description="SIGCONT.")
    restart: ComponentAction | None = Field(None, description="SIGTERM; restarted with the kubelet's back-off.")
    apply_flow_control: FlowControlAction | None = Field(
        None, description="Apply API Priority and Fairness objects for operators and agents, through the API."
    )
    delete_rollout: DeleteRolloutAction | None = Field(
        None, description="Roll a flow's DaemonSet back, through the API."
    )
    add_api_servers: AddApiServersAction | None = Field(None, description="Start further API servers on the same etcd.")
    slow_disk: SlowDiskAction | None = Field(None, description="Slow etcd's disk while the phase lasts.")
    capture_profiles: CaptureProfilesAction | None = Field(
        None, description="Capture CPU, heap and goroutine profiles of the API servers."
    )
    lever: LeverName | None = Field(None, description="A named set of actions against an overload.")

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            possible = ", ".join(to_camel(name) for name in type(self).model_fields)
            msg = f"an action has exactly one of {possible}"
            raise ValueError(msg)
        return self

    @property
    def name(self) -> str:
        """The key, as the profile spells it."""
        (name,) = self.model_dump(exclude_none=True, by_alias=True)
        return str(name)

    @property
    def in_background(self) -> bool:
        """Whether the phase goes on while it is under way."""
        return self.name in BACKGROUND


BACKGROUND: Final = frozenset({"shrink", "deleteRollout", "applyFlowControl", "addApiServers", "captureProfiles"})
"""Actions that may take as long as their phase: they need the API, or start a server on a busy machine."""
