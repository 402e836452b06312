"""A locustfile: clients that ask for something large and hardly read it, so that it keeps its seats and costs the API server no CPU.

API Priority and Fairness gives a request's seats back when its handler returns, which is when the last byte was handed to the kernel: a slow reader
holds them (kubernetes/kubernetes#115409). That tells its queues from a server without CPU, which also makes everybody wait. What a reader asks for
is told by the name of its ServiceAccount. It reads the head, waits, and closes; with a small window and small segments the kernel
buffers less than 0.3 MB of the answer, so answers must be larger than that.
"""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import gevent
from gevent import socket
from locust import User, task

from scaletest.core.access import ApiAccess
from scaletest.load.connection import TlsContexts

HOLD_S: Final = 8.0
"""Time that a reader takes; the API server would wait for 60 s."""

AGAIN_S: Final = 1.0
"""Pause after a 429: what its Retry-After says."""

ANSWER_WITHIN_S: Final = 70.0

_WINDOW_BYTES: Final = 16 * 1024
_SEGMENT_BYTES: Final = 1400


class Target(NamedTuple):
    name: str
    path: str


TARGETS: Final = {
    "wide": Target("list", "/api/v1/pods?resourceVersion=0"),
    "narrow": Target("get", "/api/v1/namespaces/default/configmaps/scaletest-stock-000000?resourceVersion=0"),
}
"""By name of the ServiceAccount: a LIST of 10 seats, a GET of one."""


class Answered(NamedTuple):
    """What Locust's listeners see of an answer."""

    status_code: int
    content: bytes


class SlowReader(User):
    """Asks, reads the head, waits, closes, asks again."""

    api_access: ApiAccess

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        access, token_file = self.api_access, self.api_access.credential.token_file
        assert token_file is not None, "a reader is a ServiceAccount"
        self._target = TARGETS[access.credential.identity.rpartition("/")[2]]
        self._token = token_file.read_text(encoding="ascii").strip()
        self._server = urlsplit(access.servers[0])
        self._context = TlsContexts(access.ca_file).get(access.credential)

    @task
    def ask(self) -> None:
        began_s = time.monotonic()
        answered, error = None, None
        try:
            answered = self._ask()
        except OSError as failure:
            error = failure
        self.environment.events.request.fire(
            request_type="GET",
            name=self._target.name,
            response_time=(time.monotonic() - began_s) * 1e3,
            response_length=0,
            response=answered,
            exception=error or (None if answered and answered.status_code == 200 else RuntimeError("refused")),
            context={},
        )
        if answered is None or answered.status_code != 200:
            gevent.sleep(AGAIN_S)

    def _ask(self) -> Answered:
        with socket.socket() as plain:
            plain.settimeout(ANSWER_WITHIN_S)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW_BYTES)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT_BYTES)
            plain.connect((self._server.hostname, self._server.port))
            with self._context.wrap_socket(plain, server_hostname=self._server.hostname) as secure:
                lines = [
                    f"GET {self._target.path} HTTP/1.1",
                    f"Host: {self._server.netloc}",
                    f"Authorization: Bearer {self._token}",
                ]
                secure.sendall("\r\n".join([*lines, "", ""]).encode())
                begun: bytes = secure.recv(1024)
                status = int(begun.split(b" ", 2)[1]) if begun else 0
                if status == 200:
                    gevent.sleep(HOLD_S)
                return Answered(status, begun)
