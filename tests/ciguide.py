"""The workflow in ``docs/guide/ci.md``, as its tests read it: there is no other copy."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

GUIDE = Path(__file__).parent.parent / "docs" / "guide" / "ci.md"


def workflow() -> dict[Any, Any]:
    """Return the one workflow of the page."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    loaded: dict[Any, Any] = yaml.safe_load(text)
    return loaded


@dataclass(frozen=True)
class Step:
    """A step that runs something."""

    job: str
    run: str
    env: dict[str, str]
    """Of workflow and job."""

    def commands(self) -> list[list[str]]:
        """Return the arguments of each ``scaletest`` in it, variables filled in as the shell would."""
        lines = [shlex.split(line) for line in self.run.replace("\\\n", " ").splitlines()]
        filled = [[_filled(word, self.env) for word in line] for line in lines]
        return [line[1:] for line in filled if line[:1] == ["scaletest"]]


def _filled(word: str, env: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: env[found.group(1)], word)


def steps(**changed: str) -> list[Step]:
    """Return the steps that run something, in the order of the page; ``changed`` are variables set otherwise, wherever they are set."""
    told = workflow()
    of_github = {"GITHUB_RUN_ID": "1234567", "GITHUB_RUN_ATTEMPT": "1"}
    return [
        Step(
            job=name,
            run=step["run"],
            env={**of_github, **told["env"], **job.get("env", {}), **changed},
        )
        for name, job in told["jobs"].items()
        for step in job["steps"]
        if "run" in step
    ]


def shell_env(step: Step, **more: str) -> dict[str, str]:
    """Return the environment in which a step's shell runs."""
    return {**os.environ, **step.env, **more}
