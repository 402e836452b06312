import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.access import Credential
from scaletest.core.kubernetesapi import ApiError, KubernetesApi
from scaletest.fleet.fields import Json
from tests.serving import Serve


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_an_object_is_created_in_its_collection_under_our_field_manager(served: Serve) -> None:
    async def check() -> tuple[Json, list[tuple[str, str]]]:
        async with served(lambda _method, _path, body: (201, {**body, "uid": "u"})) as server:
            async with KubernetesApi(server.access) as api:
                created = await api.create("/api/v1/nodes", {"kind": "Node"})
            return created, server.requests

    created, requests = asyncio.run(check())

    assert {"kind": "Node", "uid": "u"} == created
    assert [("POST", "/api/v1/nodes?fieldManager=scaletest")] == requests


def test_a_refusal_carries_its_status_and_the_servers_words(served: Serve) -> None:
    async def check() -> ApiError:
        answer = {"kind": "Status", "message": 'nodes "x" already exists'}
        async with served(lambda *_: (409, answer)) as server, KubernetesApi(server.access) as api:
            with pytest.raises(ApiError) as caught:
                await api.create("/api/v1/nodes", {})
        return caught.value

    error = asyncio.run(check())

    assert (409, "http_409") == (error.status, error.outcome)
    assert 'POST /api/v1/nodes as system:masters: 409 nodes "x" already exists' == error.message


def test_a_server_that_is_not_there_is_refused(served: Serve, ca_file: Path) -> None:
    async def check() -> ApiError:
        async with served(lambda *_: (200, {})) as server:
            access = replace(server.access, servers=(f"http://127.0.0.1:{free_port()}",))
            async with KubernetesApi(access) as api:
                with pytest.raises(ApiError) as caught:
                    await api.get("/api/v1/nodes/x")
        return caught.value

    assert "refused" == asyncio.run(check()).outcome


def test_a_server_that_does_not_answer_times_out(ca_file: Path, served: Serve) -> None:
    async def check() -> ApiError:
        listener = socket.create_server(("127.0.0.1", 0))
        with listener:
            async with served(lambda *_: (200, {})) as server:
                access = replace(server.access, servers=(f"http://127.0.0.1:{listener.getsockname()[1]}",))
                async with KubernetesApi(access, timeout_s=0.2) as api:
                    with pytest.raises(ApiError, match=r"no answer within 0\.2 s") as caught:
                        await api.get("/api/v1/nodes/x")
        return caught.value

    assert "timeout" == asyncio.run(check()).outcome


def test_a_token_is_sent_as_bearer(served: Serve, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("abc\n")

    async def check() -> dict[str, str]:
        async with served(lambda *_: (200, {"items": []})) as server:
            access = replace(server.access, credential=Credential("on-call", token_file=token_file))
            async with KubernetesApi(access) as api:
                return dict(api._headers)

    assert "Bearer abc" == asyncio.run(check())["Authorization"]


def test_rows_of_a_table_are_returned_without_their_objects(served: Serve) -> None:
    async def check() -> tuple[list[list[Any]], list[tuple[str, str]]]:
        rows = {"kind": "Table", "rows": [{"cells": ["gpu-00000", "Ready"]}]}
        async with served(lambda *_: (200, rows)) as server, KubernetesApi(server.access) as api:
            return await api.table("/api/v1/nodes"), server.requests

    cells, requests = asyncio.run(check())

    assert [["gpu-00000", "Ready"]] == cells
    assert [("GET", "/api/v1/nodes?resourceVersion=0&includeObject=None")] == requests
