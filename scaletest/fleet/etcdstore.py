"""Reading samples from etcd and writing copies to it, under the API server's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from scaletest.core.errors import ClusterError
from scaletest.fleet.batching import MAX_BATCH_PUTS, Put
from scaletest.fleet.concurrency import work_through

if TYPE_CHECKING:
    import aetcd

__all__ = ["IN_FLIGHT", "EtcdStore"]

IN_FLIGHT: Final = 16
"""Transactions at once: 16 with 100 puts each wrote 16,000 objects a second on two cores; more gained nothing."""

_TIMEOUT_S: Final = 30


class EtcdStore:
    """A client of the etcd that an API server stores in. ``endpoint`` is ``http://HOST:PORT``."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._client: aetcd.Client | None = None

    async def __aenter__(self) -> Self:
        import aetcd  # noqa: PLC0415 - gRPC takes 0.2 s to import and starts threads

        parts = urlsplit(self._endpoint)
        self._client = aetcd.Client(host=parts.hostname, port=parts.port, timeout=_TIMEOUT_S)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def read(self, key: str, revision: int) -> bytes:
        """Return the value that ``key`` had at ``revision`` (an object's resourceVersion). Raises ClusterError."""
        return bytes((await self._range(key, revision)).value)

    async def created_at(self, key: str) -> int:
        """Return the revision at which ``key`` was created. Raises ClusterError when there is no such key."""
        return int((await self._range(key, 0)).create_revision)

    async def _range(self, key: str, revision: int) -> Any:
        import aetcd.rpc as wire  # noqa: PLC0415 - see __aenter__

        request = wire.RangeRequest(key=key.encode(), revision=revision)
        answer = await self._call(lambda stub: stub.Range(request, timeout=_TIMEOUT_S))
        if len(answer.kvs) != 1:
            msg = f"{self._endpoint}: etcd has no {key}"
            raise ClusterError(msg, hint="is this the etcd of the API server that was given?")
        return answer.kvs[0]

    async def write(self, put: Put) -> None:
        """Write one key, whether it exists or not, without a lease."""
        import aetcd.rpc as wire  # noqa: PLC0415 - see __aenter__

        request = wire.PutRequest(key=put.key, value=put.value)
        await self._call(lambda stub: stub.Put(request, timeout=_TIMEOUT_S))

    async def create(self, puts: list[Put]) -> None:
        """Write keys in one transaction, if none of them exists. Raises ClusterError and writes none otherwise."""
        import aetcd.rpc as wire  # noqa: PLC0415 - see __aenter__

        # Message by message: aetcd's own operation objects take twice the time.
        request = wire.TxnRequest()
        for put in puts:
            request.compare.add(result=wire.Compare.EQUAL, target=wire.Compare.CREATE, key=put.key, create_revision=0)
            request.success.add(request_put=wire.PutRequest(key=put.key, value=put.value))
        answer = await self._call(lambda stub: stub.Txn(request, timeout=_TIMEOUT_S))
        if not answer.succeeded:
            msg = f"the cluster already has one of {puts[0].key.decode()} … {puts[-1].key.decode()}"
            raise ClusterError(msg, hint="it holds a fleet already: seed a new cluster, or grow that fleet")

    async def create_all(self, batches: Iterator[list[Put]], on_written: Callable[[int], None]) -> None:
        """Write batches with ``IN_FLIGHT`` transactions at once. Raises the first ClusterError."""

        async def create(batch: list[Put]) -> None:
            await self.create(batch)
            on_written(len(batch))

        await work_through(batches, create, workers=IN_FLIGHT)

    async def delete_all(self, keys: Sequence[str]) -> None:
        """Delete keys, ``IN_FLIGHT`` transactions at once; one that is not there is gone already. Raises the first ClusterError."""
        import aetcd.rpc as wire  # noqa: PLC0415 - see __aenter__

        async def delete(batch: Sequence[str]) -> None:
            request = wire.TxnRequest()
            for key in batch:
                request.success.add(request_delete_range=wire.DeleteRangeRequest(key=key.encode()))
            await self._call(lambda stub: stub.Txn(request, timeout=_TIMEOUT_S))

        batches = (keys[at : at + MAX_BATCH_PUTS] for at in range(0, len(keys), MAX_BATCH_PUTS))
        await work_through(batches, delete, workers=IN_FLIGHT)

    async def _call(self, call: Callable[[Any], Any]) -> Any:
        import grpc  # noqa: PLC0415 - see __aenter__

        assert self._client is not None, "use the store as an asynchronous context manager"
        await self._client.connect()
        try:
            return await call(self._client.kvstub)
        except grpc.aio.AioRpcError as error:
            msg = f"{self._endpoint}: etcd answered {error.code().name}: {error.details()}"
            raise ClusterError(msg) from None
