"""How a request ended, in one word.

An answer's outcome is its status (``200``, ``429``); without a whole answer it is one of

    timeout     the client's time-out passed (or the kernel gave the connection up)
    refused     nobody listens, or the flow's network path is blocked
    reset       the peer closed or reset the connection before the answer began, or broke it later
    cut_short   the peer closed within the answer
    tls         the handshake failed, or the peer refused our certificate
    malformed   the peer does not speak HTTP/1.1 (etcd: HTTP/2)
    error       this machine could not send (no port, no descriptor, no route)

etcd's answers have the names of gRPC's status codes (``OK``, ``UNAVAILABLE``), and one of etcd's own: ``NOSPACE``, its quota is used up.
"""

from __future__ import annotations

import errno
import ssl

from scaletest.load.http1 import MalformedAnswer

__all__ = [
    "GRPC_OK",
    "LOST_CONNECTION",
    "NO_SPACE",
    "REQUEST_ERRORS",
    "AnswerCutShort",
    "PeerClosed",
    "RequestTimedOut",
    "is_success",
    "outcome_of_error",
    "outcome_of_grpc",
]


GRPC_OK = "OK"
NO_SPACE = "NOSPACE"
"""Outcomes of requests to etcd."""

_GRPC_CODES = (
    GRPC_OK, "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_NO_SPACE_MESSAGE = "database space exceeded"


def outcome_of_grpc(code: int, message: str) -> str:
    """Return the outcome of an answer of etcd by its status."""
    if _NO_SPACE_MESSAGE in message:
        return NO_SPACE
    return _GRPC_CODES[code] if 0 <= code < len(_GRPC_CODES) else f"CODE_{code}"


class RequestTimedOut(Exception):
    """The deadline of the whole request passed."""


class PeerClosed(Exception):
    """The peer closed the connection before the answer began."""


class AnswerCutShort(Exception):
    """The peer closed the connection within the answer."""


def is_success(outcome: str) -> bool:
    """Whether an outcome is a 2xx answer, or gRPC's OK."""
    return (len(outcome) == 3 and outcome[0] == "2") or outcome == GRPC_OK


LOST_CONNECTION: tuple[type[Exception], ...] = (
    PeerClosed, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError,
)  # fmt: skip
"""What using a kept connection ends in, when the server had closed it."""

REQUEST_ERRORS: tuple[type[Exception], ...] = (OSError, RequestTimedOut, PeerClosed, AnswerCutShort, MalformedAnswer)
"""What a request may end in, other than an answer."""

_OUTCOMES: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((RequestTimedOut, TimeoutError), "timeout"),
    ((AnswerCutShort,), "cut_short"),
    ((MalformedAnswer,), "malformed"),
    ((ConnectionRefusedError,), "refused"),
    # A peer that closes within the handshake raises SSLEOFError: its process died, TLS is not at fault.
    ((PeerClosed, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError), "reset"),
    ((ssl.SSLError,), "tls"),
)


def outcome_of_error(error: BaseException) -> str:
    """Return the outcome of a request that ended in an exception."""
    for kinds, outcome in _OUTCOMES:
        if isinstance(error, kinds):
            return outcome
    # Closed by ourselves under a reader, when the flow's path was blocked.
    return "reset" if isinstance(error, OSError) and error.errno == errno.EBADF else "error"
