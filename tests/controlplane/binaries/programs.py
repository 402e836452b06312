"""Stand-ins for the real programs that answer ``--version`` as those do."""

from __future__ import annotations

from pathlib import Path
from typing import Self

OUTPUTS = {
    "kubernetes": "Kubernetes v{version}",
    "etcd": "etcd Version: {version}",
    "kwok": "kwok version v{version} go1.26.8 (linux/amd64)",
}


def program(family: str, version: str, *, size_bytes: int = 0) -> bytes:
    """A script that prints its version, padded to a size."""
    text = f"#!/bin/sh\necho '{OUTPUTS[family].format(version=version)}'\nexit 0\n"
    return text.encode().ljust(size_bytes, b"#")


def put(path: Path, content: bytes) -> Path:
    """Write an executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path


class RecordedProgress:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.tasks: list[RecordedTask] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def task(self, label: str, unit: str) -> RecordedTask:
        task = RecordedTask(label, unit)
        self.tasks.append(task)
        return task


class RecordedTask:
    def __init__(self, label: str = "", unit: str = "bytes") -> None:
        self.label, self.unit = label, unit
        self.updates: list[tuple[int, int | None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, done: int, total: int | None = None) -> None:
        self.updates.append((done, total))
