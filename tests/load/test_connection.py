"""What a connection says to a reader that was about to read when it was closed."""

from __future__ import annotations

import ssl as stdlib_ssl

import pytest
from gevent import socket, ssl

from scaletest.load.connection import TlsSocket
from scaletest.load.outcomes import REQUEST_ERRORS, outcome_of_error


def test_a_reader_that_wakes_up_after_the_close_gets_a_request_error() -> None:
    context = ssl.SSLContext(stdlib_ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = TlsSocket
    near, far = socket.socketpair()
    with far:
        connection = context.wrap_socket(near, server_hostname="localhost", do_handshake_on_connect=False)
        connection.close()
        with pytest.raises(OSError) as caught:
            connection.take(memoryview(bytearray(10)))

    assert isinstance(caught.value, REQUEST_ERRORS)
    assert "reset" == outcome_of_error(caught.value)
