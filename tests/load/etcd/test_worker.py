"""What a process of an ``etcd`` flow does while answers come in."""

from __future__ import annotations

import asyncio
import time

from scaletest.load.etcd.pipe import WorkerConfig
from scaletest.load.etcd.worker import Worker
from scaletest.profile.etcd import EtcdSpec
from tests.load.etcd.test_connection import HEADERS, Wire, answer, settings


def test_what_is_due_is_sent_between_answers_that_come_in_one_read() -> None:
    """Thousands of answers that a stall of etcd held up take tens of milliseconds: what is due in them must not wait, nor look on time."""
    spec = EtcdSpec.model_validate(
        {"rate": "1000/s", "process": "even", "operations": [{"op": "put"}], "keys": 10, "connections": 1}
    )

    async def check() -> list[int]:
        worker = Worker(WorkerConfig("writes", "http://127.0.0.1:1", spec, (0, 1), 7), lambda *_, **__: None)
        wire = Wire(worker._on_end)
        wire.connection.data_received(settings())
        worker._slots._slots[0].connection = wire.connection
        worker.begin(time.monotonic() - 0.05)
        await asyncio.sleep(0.02)
        asked = [stream for kind, _, stream, _ in await wire.frames() if kind == HEADERS]
        # The event loop does not come round from here on.
        time.sleep(0.02)  # noqa: ASYNC251
        wire.connection.data_received(b"".join(answer(stream) for stream in asked[:3]))
        sent = [stream for kind, _, stream, _ in wire.taken() if kind == HEADERS]
        for task in worker._tasks:
            task.cancel()
        return sent

    assert len(asyncio.run(check())) >= 15
