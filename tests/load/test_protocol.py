from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scaletest.core.access import ApiAccess, Credential
from scaletest.load import protocol
from scaletest.profile.schema import FlowSpec

SPEC = FlowSpec.model_validate(
    {
        "agents": {"perNode": 2, "rollout": "80/s"},
        "identity": "node",
        "steps": [
            {
                "list": "pods",
                "every": "1m",
                "jitter": "10%",
                "timeout": "1500ms",
                "fieldSelector": "spec.nodeName={node}",
            },
            {"watch": "/apis/x/v1/things", "accept": "protobuf", "label": "w"},
        ],
        "onError": {"first": "10ms", "jitter": 0.3333333333},
        "limit": {"qps": 0.1, "burst": 3},
    }
)
NODE = Credential("node:a", Path("a.crt"), Path("a.key"))
ACCESS = ApiAccess(("https://127.0.0.1:1", "https://127.0.0.1:2"), Path("ca"), Credential("sa", token_file=Path("t")))


@pytest.mark.parametrize(
    "command",
    [
        protocol.Configure(Path("/run/journal.jsonl"), 12.5, 0.2),
        protocol.FlowStart("f", SPEC, ACCESS, 2, ("a",), (NODE,), 7, ("127.0.1.1",), Path("/profiles")),
        protocol.Configure(None, 12.5, 0.2),
        protocol.FlowStart("f", SPEC, ACCESS, 2),
        protocol.FlowStart("f", SPEC, ACCESS, 2, share=(1, 3)),
        protocol.Begin("f", 12.5),
        protocol.Begin("f", 12.5, 80.0),
        protocol.SetTarget("f", 3, 12.5, ("b",), (NODE,), ("a",), ("127.0.1.1",)),
        protocol.SetTarget("f", 3),
        protocol.SetServers("f", ("https://127.0.0.1:1",)),
        protocol.StopFlow("f"),
        protocol.Block("f"),
        protocol.Unblock("f"),
        protocol.Quit(),
    ],
)
def test_commands_read_back_as_they_were_written(command: protocol.Command) -> None:
    line = protocol.encode(command)

    assert 1 == line.count(b"\n")
    assert command == protocol.decode_command(line)


@pytest.mark.parametrize(
    "report",
    [
        protocol.Ready(7),
        protocol.FlowStarted("f"),
        protocol.FlowChanged("f", 1, 2, 3),
        protocol.FlowStopped("f"),
        protocol.DriverError("what", "hint", "f", usage=True),
        protocol.DriverError("what"),
        protocol.RecordReport({"kind": "flow", "t": 1.5, "text": "a\nb"}),
    ],
)
def test_reports_read_back_as_they_were_written(report: protocol.Report) -> None:
    assert report == protocol.decode_report(protocol.encode(report))


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b"nonsense", b'{"type":"ready"}', b'{"type":"start_flow","flow":"f"}']
)
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a message of the driver's protocol"):
        protocol.decode_command(line)


def test_the_owners_side_imports_neither_gevent_nor_locust() -> None:
    code = "import sys, scaletest.load.client, scaletest.load.fake; print({'gevent', 'locust'} & set(sys.modules))"

    assert "set()\n" == subprocess.check_output([sys.executable, "-c", code], text=True)
