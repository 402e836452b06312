"""How a request ended, in one word.

An answer's outcome is its status (``200``, ``429``); without a whole answer it is one of

    timeout     the client's time-out passed (or the kernel gave the connection up)
    refused     nobody listens, or the flow's network path is blocked
    reset       the peer closed or reset the connection before the answer began, or broke it later
    cut_short   the peer closed within the answer
    tls         the handshake failed, or the peer refused our certificate
    malformed   the peer does not speak HTTP/1.1
    error       this machine could not send (no port, no descriptor, no route)
"""

from __future__ import annotations

import errno
import ssl

from scaletest.load.http1 import MalformedAnswer

__all__ = [
    "LOST_CONNECTION",
    "REQUEST_ERRORS",
    "AnswerCutShort",
    "PeerClosed",
    "RequestTimedOut",
    "is_success",
    "outcome_of_error",
]


class RequestTimedOut(Exception):
    """The deadline of the whole request passed."""


class PeerClosed(Exception):
    """The peer closed the connection before the answer began."""


class AnswerCutShort(Exception):
    """The peer closed the connection within the answer."""


def is_success(outcome: str) -> bool:
    """Whether an outcome is a 2xx answer."""
    return len(outcome) == 3 and outcome[0] == "2"


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
