"""When a component that exited is started again: the kubelet's back-off."""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.controlplane.plan import RestartBackoff

__all__ = ["BackoffState", "wait_before_restart_s"]


def wait_before_restart_s(policy: RestartBackoff, restarts_in_row: int) -> float:
    """Return the wait before the next restart after ``restarts_in_row`` restarts: 0, 10, 20, 40 … 300 s."""
    if restarts_in_row <= 0:
        return 0.0
    wait_s = policy.first_s
    for _ in range(restarts_in_row - 1):
        if wait_s >= policy.most_s:
            break
        wait_s *= policy.factor
    return min(wait_s, policy.most_s)


@dataclass(slots=True)
class BackoffState:
    """Counts the restarts in a row of one component."""

    policy: RestartBackoff
    restarts_in_row: int = 0

    def after_exit(self, ran_s: float) -> float:
        """Return the wait before the restart of a component that ran for ``ran_s``, and count it."""
        if ran_s >= self.policy.reset_after_s:
            self.restarts_in_row = 0
        wait_s = wait_before_restart_s(self.policy, self.restarts_in_row)
        self.restarts_in_row += 1
        return wait_s
