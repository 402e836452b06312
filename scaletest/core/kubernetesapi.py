"""Setting up and changing objects of a cluster through its API, by the official ``kubernetes`` client.

``KubernetesApi`` sends JSON as one identity to one API server and raises what goes wrong; ``core.apiclient``, in contrast,
is for measuring: there a failure is an observation. Of the client, its transport and configuration are used and not its
models: decoding one pod into a model takes 281 µs, a hundred times what reading the JSON takes. The client is imported
when a connection is opened (half a second that most commands do without).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from scaletest.core.access import ApiAccess
from scaletest.core.errors import ClusterError

__all__ = ["FIELD_MANAGER", "ApiAnswer", "ApiError", "Json", "KubernetesApi", "load_client"]

Json = dict[str, Any]
"""An object, decoded."""

FIELD_MANAGER: Final = "scaletest"
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


def load_client() -> None:
    """Import the client; call it in a thread while there is something else to wait for."""
    import kubernetes.aio.client  # noqa: F401, PLC0415 - see the module's text


class ApiError(ClusterError):
    """The API server refused a request, or did not answer; ``outcome`` is ``http_409``, ``timeout``, ``refused``, ``reset``."""

    def __init__(self, message: str, *, outcome: str, status: int | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.status = status


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """What the API server said, whatever its status."""

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """Looked up in any case."""

    @property
    def message(self) -> str:
        """The message of a Status object, or the head of the text."""
        try:
            return str(json.loads(self.content)["message"])
        except (ValueError, KeyError, TypeError):
            return self.content[:300].decode(errors="replace")

    def object(self) -> Json:
        """Return the body as an object. Raises ClusterError when it is none."""
        try:
            body = json.loads(self.content)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            msg = f"not a JSON object: {self.content[:100].decode(errors='replace')!r}"
            raise ClusterError(msg)
        return body


class KubernetesApi:
    """Use as ``async with KubernetesApi(access) as api: ...``; talks to the first server unless told otherwise."""

    def __init__(
        self, access: ApiAccess, *, server: str | None = None, connections: int = 32, timeout_s: float = 30.0
    ) -> None:
        self.access = access
        self.server = server or access.servers[0]
        self._connections = connections
        self._timeout_s = timeout_s
        self._headers = {"User-Agent": FIELD_MANAGER}
        self._client: Any = None

    async def __aenter__(self) -> Self:
        from kubernetes.aio.client import ApiClient, Configuration  # noqa: PLC0415 - see the module's text

        credential = self.access.credential
        configuration = Configuration(host=self.server)
        configuration.ssl_ca_cert = str(self.access.ca_file)
        configuration.cert_file = str(credential.cert_file) if credential.cert_file else None
        configuration.key_file = str(credential.key_file) if credential.key_file else None
        # kwokctl's own certificates carry no key identifiers, which Python 3.13 asks for in its strict mode.
        configuration.disable_strict_ssl_verification = True
        configuration.connection_pool_maxsize = self._connections
        configuration.retries = None
        configuration.client_session_kwargs = {"trust_env": False}
        if credential.token_file is not None:
            self._headers["Authorization"] = f"Bearer {credential.token_file.read_text(encoding='ascii').strip()}"
        self._client = ApiClient(configuration)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> ApiAnswer:
        """Send one request and return the answer, whatever its status. Raises ApiError when none came."""
        import aiohttp  # noqa: PLC0415 - see the module's text

        assert self._client is not None, "use `async with`"
        headers = {**self._headers, "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        where = f"{method} {path.partition('?')[0]}"
        try:
            response = await self._client.rest_client.request(
                method,
                self.server + path,
                headers=headers,
                body=body,
                _request_timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            )
            return ApiAnswer(response.status, await response.read(), response.headers)
        except TimeoutError:
            msg = f"{where}: no answer within {self._timeout_s:g} s"
            raise ApiError(msg, outcome="timeout") from None
        except aiohttp.ClientConnectorError as error:
            msg = f"{where}: {error}"
            raise ApiError(msg, outcome="refused") from None
        except (aiohttp.ClientError, OSError) as error:
            msg = f"{where}: {str(error) or type(error).__name__}"
            raise ApiError(msg, outcome="reset") from None

    async def good(self, method: str, path: str, body: Json | None = None, **kinds: str) -> ApiAnswer:
        """Send one request and return its 2xx answer. Raises ApiError for everything else."""
        answer = await self.request(method, path, body, **kinds)
        if 200 <= answer.status < 300:
            return answer
        where = f"{method} {path.partition('?')[0]} as {self.access.credential.identity}"
        msg = f"{where}: {answer.status} {answer.message}"
        raise ApiError(msg, outcome=f"http_{answer.status}", status=answer.status)

    async def get(self, path: str) -> Json:
        """Return an object or a list."""
        return (await self.good("GET", path)).object()

    async def get_text(self, path: str) -> str:
        """Return a body that is no JSON."""
        return (await self.good("GET", path)).content.decode()

    async def get_at(self, collection: str, name: str, revision: int) -> Json:
        """Return an object as it was at a revision, without its ``kind`` and ``apiVersion``."""
        query = f"resourceVersion={revision}&resourceVersionMatch=Exact&fieldSelector=metadata.name%3D{name}"
        items = (await self.get(f"{collection}?{query}"))["items"]
        if len(items) != 1:
            msg = f"GET {collection}: no {name} at revision {revision}"
            raise ApiError(msg, outcome="http_404", status=404)
        found: Json = items[0]
        return found

    async def create(self, collection: str, body: Json, *, dry_run: bool = False) -> Json:
        """Create an object and return it as stored, or as it would be."""
        query = f"fieldManager={FIELD_MANAGER}" + ("&dryRun=All" if dry_run else "")
        return (await self.good("POST", f"{collection}?{query}", body)).object()

    async def apply(self, path: str, body: Json) -> Json:
        """Make or change the object at ``path`` by server-side apply: done twice, it changes nothing."""
        query = f"fieldManager={FIELD_MANAGER}&force=true"
        answer = await self.good("PATCH", f"{path}?{query}", body, content_type="application/apply-patch+yaml")
        return answer.object()

    async def merge(self, path: str, body: Json, *, field_manager: str) -> Json:
        """Apply a merge patch and return the object as stored."""
        query = f"fieldManager={field_manager}"
        return (await self.good("PATCH", f"{path}?{query}", body, content_type="application/merge-patch+json")).object()

    async def delete(self, path: str) -> None:
        """Delete an object at once (no grace period)."""
        await self.good("DELETE", f"{path}?gracePeriodSeconds=0")

    async def table(self, collection: str, query: str = "") -> list[list[Any]]:
        """Return a collection's rows as ``kubectl get`` shows them: a hundredth of the bytes of the objects."""
        answer = await self.good("GET", f"{collection}?resourceVersion=0&includeObject=None{query}", accept=_TABLE)
        return [row["cells"] for row in answer.object().get("rows") or []]
