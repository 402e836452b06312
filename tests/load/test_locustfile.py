"""A user's own locustfile as a flow."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from scaletest.core.access import ApiAccess, Credential
from scaletest.core.errors import ProfileError
from scaletest.load.protocol import FlowStart, SetTarget
from scaletest.profile.schema import FlowSpec
from tests.load.harness import Drivers, TestServer

GOOD = """
    from locust import FastHttpUser, HttpUser, User, constant, events, task

    class Slow(HttpUser):
        wait_time = constant(0.05)

        @task
        def pods(self):
            self.client.get("/ok?slow", name="/slow/pods")

    class Fast(FastHttpUser):
        wait_time = constant(0.05)

        @task
        def pods(self):
            self.client.get("/ok?fast", name="/fast/pods")
            self.client.get("/status/403", name="/forbidden")

    class Plain(User):
        wait_time = constant(0.05)

        @task
        def fire(self):
            print("to standard output")
            assert self.api_access.ca_file.exists() and self.host.startswith("https://")
            self.environment.events.request.fire(
                request_type="X", name="custom", response_time=12.5, response_length=7, exception=None, context={})
            raise KeyError("oops")
"""


def write(directory: Any, text: str) -> None:
    (directory / "locustfile.py").write_text(textwrap.dedent(text))


def start_of(flow: str, server: Any, directory: Any, *, users: int = 3, access: ApiAccess | None = None) -> FlowStart:
    spec = FlowSpec.model_validate({"locustfile": {"path": "locustfile.py", "users": users, "spawn": "100/s"}})
    return FlowStart(flow, spec, access or server.access, users, directory=directory)


def test_users_of_all_kinds_reach_the_server_and_are_counted_by_name(
    drivers: Drivers, server: TestServer, tmp_path: Path
) -> None:
    write(tmp_path, GOOD)
    drivers.do(drivers.driver.start_flow(start_of("mine", server, tmp_path)))
    wanted = {"slow-pods", "fast-pods", "forbidden", "custom"}
    drivers.wait_for("mine", lambda r: wanted <= {n for flow in r.flows for n in flow["steps"]})
    drivers.wait_for("mine", lambda r: sum(flow["exceptions"] for flow in r.flows) >= 2)
    drivers.do(drivers.driver.set_target(SetTarget("mine", 1)))
    drivers.wait_for("mine", lambda r: r.flows[-1]["started"] == 1)
    drivers.do(drivers.driver.stop_flow("mine"))

    result = drivers.result("mine")
    assert {"200"} == set(result.outcomes("slow-pods")) == set(result.outcomes("fast-pods"))
    assert {"403"} == set(result.outcomes("forbidden"))
    assert 7 * result.outcomes("custom")["200"] == result.total("bytes", "custom")
    assert 12_500 == result.histogram("latency_us", "custom").minimum
    samples = {(s["step"], s["outcome"]): (s["reason"], s["message"]) for s in result.samples}
    assert ("Forbidden", 'pods is forbidden: no "luck"') == samples["forbidden", "403"]
    assert ("KeyError", "'oops' (locustfile.py:28)") == samples["Plain", "exception"]


def test_a_bearer_token_reaches_both_http_clients(drivers: Drivers, server: TestServer, tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    token_file = tmp_path / "token"
    token_file.write_text("t0ken")
    access = ApiAccess((server.url,), server.access.ca_file, Credential("sa", token_file=token_file))
    drivers.do(drivers.driver.start_flow(start_of("bearer", server, tmp_path, access=access)))
    drivers.wait_for("bearer", lambda r: bool(r.outcomes("slow-pods")) and bool(r.outcomes("fast-pods")))
    drivers.do(drivers.driver.stop_flow("bearer"))

    log = [entry for entry in json.loads(server.get("/log")) if entry["target"] in {"/ok?slow", "/ok?fast"}]
    last = {entry["target"]: [h.lower() for h in entry["headers"]] for entry in log}
    assert all("authorization: bearer t0ken" in headers for headers in last.values())
    assert {"/ok?slow", "/ok?fast"} == set(last)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import locust\n\ndef f(:\n", "locustfile.py:4: syntax error"),
        ("import locust\nx = 1\nraise ValueError('no luck')\n", "locustfile.py:4: ValueError: no luck"),
        ("import nonsense_module\n", "locustfile.py:2: ModuleNotFoundError: No module named 'nonsense_module'"),
        ("import sys\nsys.exit(3)\n", "locustfile.py:3: the locustfile exits (3)"),
        ("x = 1\n", "no User class"),
        ("from locust import User\nclass U(User):\n    pass\n", "U has no task"),
        (None, "there is no such locustfile"),
    ],
)
def test_a_broken_locustfile_is_an_error_with_file_and_line(
    drivers: Drivers, server: TestServer, tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        write(tmp_path, "\n" + text)

    with pytest.raises(ProfileError) as caught:
        drivers.do(drivers.driver.start_flow(start_of("wrong", server, tmp_path)))

    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


IMPORT_BESIDE_OTHERS = """
import locust, gevent, pathlib, sys
from scaletest.load import userclasses

userclasses.LOAD_TIMEOUT_S = 0.2
importing = gevent.spawn(userclasses.load_user_classes, pathlib.Path(sys.argv[1]))
others = gevent.spawn(gevent.sleep, 1)
others.join()
importing.join()
print(others.successful(), importing.exception)
"""


@pytest.mark.parametrize("text", ["while True: pass", "import time; time.sleep(60)"])
def test_an_import_without_end_is_ended_and_nothing_else_with_it(tmp_path: Path, text: str) -> None:
    write(tmp_path, f"\n{text}\n")
    path = tmp_path / "locustfile.py"

    command = [sys.executable, "-c", IMPORT_BESIDE_OTHERS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert f"True {path}:2: the import did not end within 0.2 s\n" == done.stdout


def test_users_that_fail_to_start_are_counted_and_the_flow_goes_on(
    drivers: Drivers, server: TestServer, tmp_path: Path
) -> None:
    write(
        tmp_path,
        """
        from locust import User, task

        class Broken(User):
            def on_start(self):
                raise RuntimeError("cannot start")

            @task
            def nothing(self):
                pass
        """,
    )
    drivers.do(drivers.driver.start_flow(start_of("failing", server, tmp_path, users=2)))
    drivers.wait_for("failing", lambda r: sum(flow["exceptions"] for flow in r.flows) >= 2)
    drivers.wait_for("failing", lambda r: r.flows[-1]["started"] == 0)
    drivers.do(drivers.driver.stop_flow("failing"))

    assert ("RuntimeError", "cannot start (locustfile.py:6)") == tuple(
        drivers.result("failing").samples[0][key] for key in ("reason", "message")
    )
