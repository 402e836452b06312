"""A small asynchronous client of one API server, for filling the cluster: JSON in, JSON out."""

from __future__ import annotations

import json
import ssl
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from scaletest.core.access import ApiAccess
from scaletest.core.errors import ClusterError
from scaletest.fleet.fields import Json

if TYPE_CHECKING:
    import aiohttp

__all__ = ["FIELD_MANAGER", "ApiClient", "ApiError"]

FIELD_MANAGER: Final = "scaletest"
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


class ApiError(ClusterError):
    """The API server refused a request, or did not answer; ``outcome`` is ``http_409``, ``timeout`` or ``refused``."""

    def __init__(self, message: str, *, outcome: str, status: int | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.status = status


class ApiClient:
    """Requests to the first API server of ``access`` over at most ``connections`` kept connections."""

    def __init__(self, access: ApiAccess, *, connections: int = 32, timeout_s: float = 30.0) -> None:
        self._access = access
        self._connections = connections
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._headers = {"Accept": "application/json", "User-Agent": FIELD_MANAGER}

    async def __aenter__(self) -> Self:
        import aiohttp  # noqa: PLC0415 - 0.2 s of import that most commands do without

        credential = self._access.credential
        context = ssl.create_default_context(cafile=str(self._access.ca_file))
        if credential.cert_file is not None:
            context.load_cert_chain(credential.cert_file, credential.key_file)
        if credential.token_file is not None:
            self._headers["Authorization"] = f"Bearer {credential.token_file.read_text(encoding='utf-8').strip()}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=self._connections),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, path: str) -> Json:
        """Return an object."""
        return _object(await self.request("GET", path))

    async def get_at(self, collection: str, name: str, revision: int) -> Json:
        """Return an object as it was at a revision, without its ``kind`` and ``apiVersion``. Raises ApiError."""
        query = f"resourceVersion={revision}&resourceVersionMatch=Exact&fieldSelector=metadata.name%3D{name}"
        items = (await self.get(f"{collection}?{query}"))["items"]
        if len(items) != 1:
            msg = f"GET {collection}: no {name} at revision {revision}"
            raise ApiError(msg, outcome="http_404", status=404)
        found: Json = items[0]
        return found

    async def get_text(self, path: str) -> str:
        """Return a body that is no JSON."""
        return (await self.request("GET", path)).decode()

    async def create(self, collection: str, body: Json, *, dry_run: bool = False) -> Json:
        """Create an object and return it as stored, or as it would be."""
        query = f"fieldManager={FIELD_MANAGER}" + ("&dryRun=All" if dry_run else "")
        return _object(await self.request("POST", f"{collection}?{query}", body))

    async def merge(self, path: str, body: Json, *, field_manager: str) -> Json:
        """Apply a merge patch and return the object as stored."""
        return _object(
            await self.request(
                "PATCH", f"{path}?fieldManager={field_manager}", body, content_type="application/merge-patch+json"
            )
        )

    async def delete(self, path: str) -> None:
        """Delete an object at once (no grace period)."""
        await self.request("DELETE", f"{path}?gracePeriodSeconds=0")

    async def table(self, collection: str, query: str = "") -> list[list[Any]]:
        """Return a collection's rows as ``kubectl get`` shows them: a hundredth of the bytes of the objects."""
        path = f"{collection}?resourceVersion=0&includeObject=None{query}"
        body = _object(await self.request("GET", path, accept=_TABLE))
        return [row["cells"] for row in body.get("rows") or []]

    async def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
        accept: str | None = None,
    ) -> bytes:
        """Send one request and return the body of a 2xx answer. Raises ApiError for everything else."""
        import aiohttp  # noqa: PLC0415 - see __aenter__

        assert self._session is not None, "use the client as an asynchronous context manager"
        url = f"{self._access.servers[0]}{path}"
        headers = dict(self._headers)
        if accept is not None:
            headers["Accept"] = accept
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body, separators=(",", ":")).encode()
        where = f"{method} {path.partition('?')[0]}"
        try:
            async with self._session.request(method, url, data=data, headers=headers) as answer:
                content = await answer.read()
                status = answer.status
        except TimeoutError:
            msg = f"{where}: no answer within {self._timeout_s:g} s"
            raise ApiError(msg, outcome="timeout") from None
        except aiohttp.ClientConnectorError as error:
            msg = f"{where}: {error}"
            raise ApiError(msg, outcome="refused") from None
        except (aiohttp.ClientError, OSError) as error:
            msg = f"{where}: {error or type(error).__name__}"
            raise ApiError(msg, outcome="reset") from None
        if not 200 <= status < 300:
            msg = f"{where}: {status} {_reason(content)}"
            raise ApiError(msg, outcome=f"http_{status}", status=status)
        return content


def _object(content: bytes) -> Json:
    body = json.loads(content)
    assert isinstance(body, dict)
    return body


def _reason(content: bytes) -> str:
    try:
        status = json.loads(content)
        return str(status["message"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode(errors="replace")
