"""A small HTTP server that answers as the test wants, for the clients to talk to over a real socket."""

import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from scaletest.core.access import ApiAccess, Credential

Answer = Callable[[str, str, Any], tuple[int, Any]]
"""(method, path with query, body) -> (status, JSON body; a string is sent as it is)."""


@dataclass
class Served:
    access: ApiAccess
    requests: list[tuple[str, str]] = field(default_factory=list)


Serve = Callable[[Answer], AbstractAsyncContextManager[Served]]


def server_maker(ca_file: Path) -> Serve:
    @asynccontextmanager
    async def serve(answer: Answer) -> AsyncIterator[Served]:
        async def handle(request: web.Request) -> web.Response:
            server.requests.append((request.method, request.path_qs))
            text = await request.text()
            status, body = answer(request.method, request.path_qs, json.loads(text) if text else None)
            return (
                web.Response(text=body, status=status)
                if isinstance(body, str)
                else web.json_response(body, status=status)
            )

        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listener).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = Served(ApiAccess((url,), ca_file, Credential("system:masters")))
        try:
            yield server
        finally:
            await runner.cleanup()

    return serve
