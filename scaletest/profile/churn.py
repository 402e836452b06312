"""The schema of a ``churn`` flow: Deployments, Jobs and pods that are made, changed and deleted all the time.

Defaults are those of the official load test (kubernetes/perf-tests, ``clusterloader2/testing/load/config.yaml``): groups of 250, 30
and 5 pods with a quarter, a quarter and a half of the pods; 10 pods created or deleted a second; 3,000 pods in a namespace (100 nodes with
30 pods each); one Job of each size in a namespace, which is 285 of its 3,000 pods.
"""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from scaletest.profile.forms import PositiveDurationS, PositiveRatePerS, Share
from scaletest.profile.model import Model, refuse

__all__ = ["CHURN_STEPS", "WATCH_STEP", "ChurnSizeSpec", "ChurnSpec"]

WATCH_STEP: Final = "watch-pods"
CHURN_STEPS: Final = (
    "create-deployment", "scale-deployment", "roll-deployment", "delete-deployment",
    "create-job", "delete-job", "create-pod", "delete-pod", WATCH_STEP,
)  # fmt: skip
"""What a churn flow asks for, by its names in reports."""

PODS_PER_NAMESPACE: Final = 3_000


class ChurnSizeSpec(Model):
    """Deployments and Jobs of one size."""

    pods: int = Field(ge=1, le=5_000, description="Pods of each.")
    share: Share = Field(
        description="Share of all pods of Deployments, and of all pods of Jobs, in groups of this size."
    )


_OFFICIAL_SIZES: Final = (
    ChurnSizeSpec(pods=250, share=0.25),
    ChurnSizeSpec(pods=30, share=0.25),
    ChurnSizeSpec(pods=5, share=0.5),
)


class ChurnSpec(Model):
    """A population of pods under Deployments, under Jobs and on their own, and operations that change it at a rate.

    Deployments are created, scaled, rolled and deleted; Jobs and bare pods are created and deleted. Defaults without a reason of their own are the
    official load test's (kubernetes/perf-tests, testing/load).
    """

    pods: int | None = Field(None, ge=1, le=150_000, description="Pods of the population.")
    pods_per_node: int | None = Field(None, ge=1, le=110, description="The same, for every node of the fleet.")
    rate_per_s: PositiveRatePerS = Field(
        10.0,
        alias="rate",
        description=(
            "Pods that operations create or delete per second. Creating or deleting N pods counts N, scaling the difference, rolling 2 N."
        ),
    )
    rollout_per_s: PositiveRatePerS | None = Field(
        None,
        alias="rollout",
        description="Pods created per second until the population stands. Default: as `rate`.",
    )
    sizes: list[ChurnSizeSpec] = Field(
        default_factory=lambda: list(_OFFICIAL_SIZES),
        min_length=1,
        description=(
            "Sizes of Deployments and Jobs with their shares, 100 % together. Pods that make no whole group go to the next smaller size, and at last to pods on "
            "their own. Default: 250, 30 and 5 pods with 25, 25 and 50 %."
        ),
    )
    jobs: Share = Field(
        0.095, description="Share of the pods that belong to Jobs. Their pods succeed as soon as they run."
    )
    bare_pods: Share = Field(
        0.05,
        description="Share of the pods on their own. The official load has none; a single pod tells most of start-up.",
    )
    namespaces: Annotated[int, Field(ge=1, le=1_000)] | None = Field(
        None, description="Namespaces of the flow's own. Default: one for each 3,000 pods."
    )
    connections: int = Field(4, ge=1, le=1_000, description="Connections that operations are sent on.")
    timeout_s: PositiveDurationS = Field(60.0, alias="timeout", description="Client time-out of one request.")
    start_within_s: PositiveDurationS = Field(
        30.0,
        alias="startWithin",
        description="A pod that is not Ready so long after it was created counts as infinitely long in `pod_startup` measures.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(
            [
                ((self.pods is None) == (self.pods_per_node is None), "churn takes exactly one of pods, podsPerNode"),
                (
                    abs(sum(size.share for size in self.sizes) - 1.0) > 1e-6,
                    "the shares of sizes must be 100 % together",
                ),
                (self.jobs + self.bare_pods > 1.0, "jobs and barePods must not be more than 100 % together"),
            ]
        )
        return self

    def total(self, nodes: int) -> int:
        """Pods for a fleet of ``nodes``."""
        return self.pods if self.pods is not None else (self.pods_per_node or 0) * nodes

    def namespaces_for(self, pods: int) -> int:
        """Namespaces for so many pods."""
        return self.namespaces or max(1, -(-pods // PODS_PER_NAMESPACE))
