"""One more of a component that runs: started as the first, limited, restarted and ended like any other."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from scaletest.controlplane.plan import ComponentPlan, LimitBy, Limits
from scaletest.controlplane.state import read_state
from scaletest.controlplane.supervisor.replica import replica_plan, with_flags
from scaletest.core.errors import ClusterError
from tests.controlplane.supervisor.toys import ToyCluster, wait_until


def test_flags_are_replaced_where_they_stand_and_added_where_they_do_not() -> None:
    args = ["--secure-port=1", "--etcd-servers=http://a", "--v=2"]

    changed = with_flags(args, {"secure-port": "2", "advertise-address": "192.0.2.2"})

    assert changed == ("--etcd-servers=http://a", "--v=2", "--secure-port=2", "--advertise-address=192.0.2.2")


def test_a_replica_has_the_limits_of_the_first_and_a_log_beside_its_own() -> None:
    first = ComponentPlan(
        name="api", binary="/bin/api", role="server", limits=Limits(1 << 30, 0.5), log="/logs/api.log", tcp_ports=(1,)
    )

    second = replica_plan(first, "api-2", 2)

    assert (second.limits, second.role, second.binary) == (first.limits, "server", "/bin/api")
    assert (second.log, second.tcp_ports) == ("/logs/api-2.log", (2,))


@pytest.mark.parametrize("limit_by", ["auto", "watchdog"])
def test_a_replica_is_restarted_and_ends_with_the_cluster(toy: ToyCluster, limit_by: LimitBy) -> None:
    toy.options["limit_by"] = limit_by
    client = toy.add("api", "env=PATH", role="server").up()

    asyncio.run(client.add_replica("api-2", of="api", port=1, flags={"secure-port": "1"}))
    (limit,) = toy.wait_record("component.limit", component="api-2")
    log = toy.scratch / "api-2.log"
    wait_until(lambda: log.exists() and "--secure-port=1" in log.read_text())
    asyncio.run(client.restart("api-2"))
    (exit_,) = toy.wait_record("component.exit", component="api-2")
    toy.wait_record("component.start", 2, component="api-2")

    assert limit["memory_bytes"] == 512 << 20
    assert exit_["signal"] == signal.SIGTERM
    wait_until(lambda: log.read_text().count("env=PATH --secure-port=1") == 2)
    assert toy.pid("api") != toy.pid("api-2")
    ended = asyncio.run(client.end())
    assert (ended.components["api-2"].process, toy.leftovers()) == (None, [])


@pytest.mark.usefixtures("cgroups_allowed")
def test_a_replica_runs_in_control_groups_of_its_own(toy: ToyCluster) -> None:
    toy.options["limit_by"] = "cgroup"
    client = toy.add("api", role="server", cores=0.5).up()

    asyncio.run(client.add_replica("api-2", of="api", port=1, flags={}))
    toy.wait_record("component.start", component="api-2")

    wait_until(lambda: "/api-2\n" in Path(f"/proc/{toy.pid('api-2')}/cgroup").read_text())
    state = read_state(toy.directory)
    assert state is not None
    assert any(group.endswith("/api-2") for group in state.groups)


@pytest.mark.parametrize(("name", "of"), [("api-2", "nothing"), ("api", "api")])
def test_a_replica_of_nothing_or_under_a_taken_name_is_refused(toy: ToyCluster, name: str, of: str) -> None:
    client = toy.add("api", role="server").up()

    with pytest.raises(ClusterError, match="there are api"):
        asyncio.run(client.add_replica(name, of=of, port=1, flags={}))

    assert list(asyncio.run(client.status()).components) == ["api"]
