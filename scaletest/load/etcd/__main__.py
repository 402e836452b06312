"""``python -m scaletest.load.etcd``: a process of an ``etcd`` flow, started by the load driver (``scaletest.load.etcdflow``).

It ends when it is told to, when its standard input ends, and when its parent dies; each time it asks no more from then on, and where it can it
removes its keys.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
from typing import Any, Final

from scaletest.core.errors import ScaletestError
from scaletest.load.capacity import raise_descriptor_limit
from scaletest.load.etcd.pipe import WorkerConfig, decode, encode
from scaletest.load.etcd.worker import Worker

_PR_SET_PDEATHSIG: Final = 1
STOP_WITHIN_S: Final = 6
_MOST_LINE_BYTES: Final = 2**20


async def main() -> int:
    """Obey the driver until it says stop, or is gone."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader(limit=_MOST_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    transport, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)

    def send(kind: str, **fields: Any) -> None:
        transport.write(encode(kind, **fields))

    line = await commands.readline()
    if not line:
        return 0
    worker = Worker(WorkerConfig.from_json(decode(line)["config"]), send)
    try:
        await worker.fill()
    except ScaletestError as error:
        send("failed", message=error.message, hint=error.hint)
        transport.close()
        return 1
    send("filled")
    # What is there now stays: it need not be looked through for garbage again and again.
    gc.collect()
    gc.freeze()
    told = await _obey(commands, worker, send)
    await worker.stop()
    if told:
        send("stopped")
    transport.close()
    return 0


async def _obey(commands: asyncio.StreamReader, worker: Worker, send: Any) -> bool:
    """Do what the driver says; returns whether it said stop, and is there to hear of it."""
    while line := await commands.readline():
        command = decode(line)
        match command["type"]:
            case "begin":
                worker.begin(float(command["origin_s"]))
            case "rate":
                worker.set_rate(float(command["rate_per_s"]), float(command["origin_s"]))
            case "block":
                connections, requests = worker.block()
                send("blocked", connections=connections, requests=requests)
            case "unblock":
                worker.unblock()
            case "stop":
                return True
            case other:
                msg = f"an etcd process does not expect {other!r}"
                raise ValueError(msg)
    return False


if __name__ == "__main__":
    # The end of the driver is noticed by the end of standard input. It is told by a signal, too: should the event loop be held up, or etcd not let
    # the keys be removed, the process still ends.
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(STOP_WITHIN_S))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # Ctrl-C is the owner's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise_descriptor_limit()
    status = asyncio.run(main())
    sys.stdout.flush()
    os._exit(status)
