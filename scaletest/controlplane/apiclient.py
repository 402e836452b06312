"""A small client of the API server for setting up and checking a cluster: it writes, and raises what goes wrong.

Probes use ``core.apiclient`` instead, where a failure is an observation.

JSON over HTTPS as one identity, always verified against the cluster's CA. Objects are written by server-side
apply, so that the same call makes them, mends them, and does nothing the second time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from scaletest.core.access import ApiAccess
from scaletest.core.apiclient import tls_context
from scaletest.core.errors import ClusterError

__all__ = ["Answer", "ApiClient", "Unreachable"]

FIELD_MANAGER: Final = "scaletest"
TIMEOUT_S: Final = 10.0
"""Of one request. An API server that has just started answers within a second on an idle host."""


class Unreachable(ClusterError):
    """No answer came: refused, reset, timed out, or a certificate that does not verify."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said."""

    status: int
    body: Any
    """Decoded JSON; the text when it is none."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Looked up in any case."""

    @property
    def message(self) -> str:
        """The message of a Status object, or the text."""
        return str(self.body.get("message", self.body)) if isinstance(self.body, dict) else str(self.body)


class ApiClient:
    """Use as ``async with ApiClient(access) as api: ...``; talks to the first server unless told otherwise."""

    def __init__(self, access: ApiAccess, *, server: str | None = None) -> None:
        self.access = access
        self.server = server or access.servers[0]
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        headers = {"User-Agent": "scaletest", "Accept": "application/json"}
        if self.access.credential.token_file is not None:
            headers["Authorization"] = f"Bearer {self.access.credential.token_file.read_text(encoding='ascii').strip()}"
        self._session = aiohttp.ClientSession(
            base_url=self.server,
            headers=headers,
            connector=aiohttp.TCPConnector(ssl=tls_context(self.access)),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json"
    ) -> Answer:
        """Send one request and return the answer, whatever its status. Raises Unreachable when none came."""
        assert self._session is not None, "use `async with`"
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": content_type}
        try:
            async with self._session.request(method, path, data=data, headers=headers) as response:
                text = await response.text()
                return Answer(response.status, _decoded(text), response.headers)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            msg = f"{self.server} does not answer {method} {path}: {str(error) or type(error).__name__}"
            raise Unreachable(msg) from error

    async def get(self, path: str) -> Any:
        """GET and return the object. Raises ClusterError for any status but 2xx."""
        return self._good(await self.request("GET", path), "GET", path)

    async def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """POST to a collection and return the object. Raises ClusterError for any status but 2xx."""
        return self._good(await self.request("POST", path, body), "POST", path)

    async def apply(self, path: str, body: Mapping[str, Any]) -> Any:
        """Make or change the object at ``path`` by server-side apply. Raises ClusterError for any status but 2xx."""
        query = f"?fieldManager={FIELD_MANAGER}&force=true"
        answer = await self.request("PATCH", path + query, body, content_type="application/apply-patch+yaml")
        return self._good(answer, "apply", path)

    def _good(self, answer: Answer, verb: str, path: str) -> Any:
        if 200 <= answer.status < 300:
            return answer.body
        msg = f"{verb} {path} as {self.access.credential.identity}: {answer.status} {answer.message}"
        raise ClusterError(msg)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
