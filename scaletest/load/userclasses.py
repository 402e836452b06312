"""A user's own locustfile: loaded by Locust's loader, its classes made to reach the cluster.

``self.client.get("/api/v1/pods")`` just works in an HttpUser and a FastHttpUser: host, CA and client certificate or
bearer token are set. Every User, a plain one too, has ``self.host`` (an API server picked at random) and
``self.api_access`` (scaletest.core.access.ApiAccess: servers, CA file, credential files).
"""

from __future__ import annotations

import random
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import gevent
from gevent.ssl import SSLContext
from locust import FastHttpUser, HttpUser, User
from locust.env import Environment
from locust.util.load_locustfile import load_locustfile

from scaletest.core.access import ApiAccess
from scaletest.core.errors import Problem, ProfileError
from scaletest.load.connection import TlsContexts

__all__ = ["LOAD_TIMEOUT_S", "load_user_classes", "reach_cluster"]

LOAD_TIMEOUT_S = 20
"""Longest time that importing a locustfile may take: enough for heavy libraries, an end for a loop."""


class _LoadTimeout(BaseException):
    """Importing took too long; not an Exception, so that a locustfile's own handlers do not swallow it."""


def load_user_classes(path: Path) -> list[type[User]]:
    """Import a locustfile and return its User classes. Raises ProfileError with file and line."""
    if not path.is_file():
        raise ProfileError([Problem("there is no such locustfile", file=str(path))])
    try:
        with _time_limit(LOAD_TIMEOUT_S):
            classes, _shapes = load_locustfile(str(path))
    except SyntaxError as error:
        problem = Problem(f"syntax error: {error.msg}", file=error.filename or str(path), line=error.lineno)
        raise ProfileError([problem]) from error
    except _LoadTimeout as error:
        problem = Problem(
            f"the import did not end within {LOAD_TIMEOUT_S} s", file=str(path), line=_line_in(path, error)
        )
        raise ProfileError([problem]) from error
    except SystemExit as error:
        problem = Problem(f"the locustfile exits ({error.code})", file=str(path), line=_line_in(path, error))
        raise ProfileError([problem]) from error
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise ProfileError([Problem(text, file=str(path), line=_line_in(path, error))]) from error
    if not classes:
        hint = "define a class that derives from locust.User, HttpUser or FastHttpUser"
        raise ProfileError([Problem("no User class in the locustfile", file=str(path), hint=hint)])
    idle = [name for name, cls in classes.items() if not cls.tasks]
    if idle:
        what = f"{', '.join(idle)} has no task"
        raise ProfileError([Problem(what, file=str(path), hint="decorate a method with @task")])
    return list(classes.values())


@contextmanager
def _time_limit(limit_s: float) -> Iterator[None]:
    importing = gevent.getcurrent()

    def expire(_signum: int, _frame: FrameType | None) -> None:
        if gevent.getcurrent() is importing:
            raise _LoadTimeout
        # The import waits (for a socket, in time.sleep) and lets others run: it is not they whom the exception is for.
        gevent.get_hub().loop.run_callback_threadsafe(importing.throw, _LoadTimeout)

    # A signal interrupts a loop that never lets another greenlet run; a gevent timer would not.
    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _line_in(path: Path, error: BaseException) -> int | None:
    """Return the innermost line of the locustfile that an exception passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == path.name]
    return lines[-1] if lines else None


def reach_cluster(cls: type[User], flow: str, access: ApiAccess, contexts: TlsContexts) -> type[User]:
    """Derive a class that reaches the cluster, named for its flow. Raises OSError when a file cannot be read."""
    credential = access.credential
    token = credential.token_file.read_text(encoding="ascii").strip() if credential.token_file else None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    context = contexts.get(credential)

    def initialise(self: Any, environment: Environment) -> None:
        self.host = random.choice(access.servers)
        self.api_access = access
        cls.__init__(self, environment)
        if isinstance(self, HttpUser):
            self.client.verify = str(access.ca_file)
            self.client.headers.update(headers)
            if credential.cert_file is not None:
                self.client.cert = (str(credential.cert_file), str(credential.key_file))

    members: dict[str, Any] = {"__init__": initialise, "host": access.servers[0]}
    if issubclass(cls, FastHttpUser):
        members |= {
            "insecure": False,
            "ssl_context_factory": staticmethod(_factory_of(context)),
            "default_headers": {**(cls.default_headers or {}), **headers},
        }
    return type(f"{flow}.{cls.__name__}", (cls,), members)


def _factory_of(context: SSLContext) -> Any:
    # geventhttpclient passes its own CA bundle; loading it costs 30 ms for every user.
    def factory(cafile: str | None = None) -> SSLContext:  # noqa: ARG001 - the keyword is the caller's
        return context

    return factory
