"""An etcd that keeps nothing, on gRPC's own server: prints its port, and ends with its standard input. How it answers is up to the flow's name.

full…      every put: no space
nospace…   so from the 21st put on
silent…    from the 21st put on no answer
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import aetcd.rpc as wire
import grpc
import grpc.aio

NO_SPACE = "etcdserver: mvcc: database space exceeded"
FIRST_PUTS = 20

puts: Counter[str] = Counter()
watchers: dict[bytes, list[asyncio.Queue[bytes]]] = {}


async def put(message: bytes, context: Any) -> bytes:
    request = wire.PutRequest.FromString(message)
    flow = re.sub(rb"/scaletest/([a-z-]+).*", rb"\1", request.key).decode()
    puts[flow] += 1
    if flow.startswith("full") or (flow.startswith("nospace") and puts[flow] > FIRST_PUTS):
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, NO_SPACE)
    if flow.startswith("silent") and puts[flow] > FIRST_PUTS:
        await asyncio.sleep(60)
    for queue in watchers.get(request.key, []):
        queue.put_nowait(request.value)
    return b""


async def nothing(_message: bytes, _context: Any) -> bytes:
    return b""


async def watch(messages: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
    create = wire.WatchRequest.FromString(await anext(aiter(messages))).create_request
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    watchers.setdefault(create.key, []).append(queue)
    yield wire.WatchResponse(created=True).SerializeToString()
    while True:
        answer = wire.WatchResponse()
        answer.events.add().kv.value = await queue.get()
        yield answer.SerializeToString()


async def main() -> None:
    server = grpc.aio.server()
    unary = grpc.unary_unary_rpc_method_handler
    kv = {"Put": unary(put), "Range": unary(nothing), "DeleteRange": unary(nothing), "Txn": unary(nothing)}
    lease = {"LeaseGrant": unary(nothing), "LeaseRevoke": unary(nothing)}
    streams = {"Watch": grpc.stream_stream_rpc_method_handler(watch)}
    server.add_generic_rpc_handlers(
        tuple(
            grpc.method_handlers_generic_handler(f"etcdserverpb.{name}", handlers)
            for name, handlers in (("KV", kv), ("Lease", lease), ("Watch", streams))
        )
    )
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    sys.stdout.flush()
    await server.start()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(0)


asyncio.run(main())
