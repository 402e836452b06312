"""What kwokctl is told: its configuration, arguments and environment, and the plan of each component.

kwokctl lays out certificates, arguments and the order of start; it starts components detached and exits, watching
none of them. Each component's binary is therefore given as the supervisor's shim, which joins the component's
control groups before the real binary begins. Facts about kwokctl 0.8.0 that this module answers to:

* it picks ports by itself when it is given none, and has given one port out twice: all six are explicit
  (the etcd peer port has no flag, only the option ``etcdPeerPort``);
* it asks ``kubectl`` whether the API server serves, and downloads one where none is installed: a stand-in is put
  first on its ``PATH`` that says ``ok`` as soon as every component has begun; readiness is checked by us;
* it makes a CA only where there is none in ``pki/``: it is given ours (see ``pki``);
* controller-manager and scheduler serve certificates of their own making, which nobody can verify: they are
  given the cluster's;
* it makes controller-manager and scheduler ``system:masters``, whom API Priority and Fairness exempts: they are given the
  identities that they have in a real cluster (see ``identities``).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from scaletest.controlplane.heartbeat import Heartbeat
from scaletest.controlplane.identities import CONTROLLERS, controller_kubeconfig
from scaletest.controlplane.plan import ComponentPlan, LaunchPlan, Limits, Role, run_dir, shim_path
from scaletest.controlplane.ports import PortRole
from scaletest.core.paths import data_file_dir
from scaletest.profile.schema import COMPONENTS, ComponentName

__all__ = [
    "KwokLayout",
    "KwokSettings",
    "base_documents",
    "component_plans",
    "config_text",
    "launch_plan",
    "write_config",
]

ROLES: Final[dict[ComponentName, Role]] = {
    "etcd": "store",
    "kube-apiserver": "server",
    "kube-controller-manager": "controller",
    "kube-scheduler": "controller",
    "kwok-controller": "controller",
}

PORT_FLAGS: Final[dict[PortRole, str]] = {
    "etcd": "--etcd-port",
    "kube-apiserver": "--kube-apiserver-port",
    "kube-controller-manager": "--kube-controller-manager-port",
    "kube-scheduler": "--kube-scheduler-port",
    "kwok-controller": "--controller-port",
}

_CONTROLLER_ARGS: Final[dict[ComponentName, dict[str, str | int | bool]]] = {
    # The roles of the bootstrap policy are those of a controller-manager whose controllers are ServiceAccounts of their own, as kubeadm's are.
    "kube-controller-manager": {"use-service-account-credentials": True},
    "kube-scheduler": {},
}

LAUNCH_TIMEOUT_S: Final = 120.0
"""Measured: 2–5 s on an idle host; a host busy with a build took up to 20 s."""

KUBECTL_STAND_IN: Final = """\
#!/bin/sh
# kwokctl asks kubectl whether the API server serves. scaletest asks /readyz itself; kwokctl has only to stay
# until every component has begun (10 s at most), so that the supervisor finds them all.
tries=0
for component in {components}; do
  until [ -s {run}/$component.pid ] || [ $tries -ge 500 ]; do tries=$((tries + 1)); sleep 0.02; done
done
printf ok
"""


@dataclass(frozen=True, slots=True)
class KwokLayout:
    """Where kwokctl keeps what, within the directory of a cluster."""

    cluster_dir: Path
    name: str

    @property
    def workdir(self) -> Path:
        """``KWOK_WORKDIR``."""
        return self.cluster_dir / "kwok"

    @property
    def home(self) -> Path:
        """Directory of the one cluster in it."""
        return self.workdir / "clusters" / self.name

    @property
    def pki_dir(self) -> Path:
        """Certificates and keys of the control plane."""
        return self.home / "pki"

    @property
    def ca_file(self) -> Path:
        """The cluster's CA."""
        return self.pki_dir / "ca.crt"

    @property
    def logs_dir(self) -> Path:
        """One log per component."""
        return self.home / "logs"

    @property
    def etcd_dir(self) -> Path:
        """Data of etcd."""
        return self.home / "etcd"

    @property
    def config_file(self) -> Path:
        """The configuration that kwokctl is given."""
        return self.cluster_dir / "kwokctl.yaml"

    @property
    def stand_in_dir(self) -> Path:
        """Directory that is first on kwokctl's ``PATH``."""
        return self.cluster_dir / "path"


@dataclass(frozen=True, slots=True, kw_only=True)
class KwokSettings:
    """What differs from cluster to cluster."""

    layout: KwokLayout
    kubernetes: str
    """Full version, without ``v``: 1.37.2."""
    binaries: Mapping[str, Path]
    """Real binaries by component, and ``kwokctl``."""
    ports: Mapping[PortRole, int]
    heartbeat: Heartbeat
    args: Mapping[ComponentName, Mapping[str, str | int | bool]] = field(default_factory=dict)
    env: Mapping[ComponentName, Mapping[str, str]] = field(default_factory=dict)


def base_documents() -> list[dict[str, Any]]:
    """Read ``kwok/kwokctl.yaml`` and ``kwok/stages/*.yaml``, in this order."""
    root = data_file_dir("kwok")
    files = [root / "kwokctl.yaml", *sorted((root / "stages").glob("*.yaml"))]
    return [document for file in files for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document]


def config_text(documents: Sequence[Mapping[str, Any]], settings: KwokSettings) -> str:
    """Return the configuration for one cluster: ``documents`` with the cluster's ports, heartbeat and patches."""
    first, *others = documents
    options = {
        **first["options"],
        "etcdPeerPort": settings.ports["etcd-peer"],
        "heartbeatFactor": settings.heartbeat.factor,
        "kubeApiserverCertSANs": ["127.0.0.1"],
    }
    patches = [*first.get("componentsPatches", []), *_patches(settings)]
    cluster = {**first, "options": options, "componentsPatches": patches}
    return yaml.safe_dump_all([cluster, *others], sort_keys=False, width=120)


def _patches(settings: KwokSettings) -> list[dict[str, Any]]:
    serving: dict[str, Literal["tls-cert-file", "tls-private-key-file"]] = {
        "admin.crt": "tls-cert-file",
        "admin.key": "tls-private-key-file",
    }
    pki_dir = settings.layout.pki_dir
    patches: list[dict[str, Any]] = [
        _patch(
            name,
            {
                **{flag: str(pki_dir / file) for file, flag in serving.items()},
                "kubeconfig": str(controller_kubeconfig(pki_dir, name)),
                **_CONTROLLER_ARGS[name],
            },
            {},
        )
        for name in CONTROLLERS
    ]
    # The profile's come last: the last of two equal flags counts.
    patches += [
        _patch(name, settings.args.get(name, {}), settings.env.get(name, {}))
        for name in COMPONENTS
        if settings.args.get(name) or settings.env.get(name)
    ]
    return patches


def _patch(name: ComponentName, args: Mapping[str, str | int | bool], env: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "extraArgs": [{"key": key, "value": _flag_value(value)} for key, value in args.items()],
        "extraEnvs": [{"name": key, "value": value} for key, value in env.items()],
    }


def _flag_value(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_config(documents: Sequence[Mapping[str, Any]], settings: KwokSettings) -> None:
    """Write kwokctl's configuration and the stand-in for kubectl into the directory of the cluster."""
    layout = settings.layout
    layout.config_file.write_text(config_text(documents, settings), encoding="utf-8")
    layout.stand_in_dir.mkdir(exist_ok=True)
    stand_in = layout.stand_in_dir / "kubectl"
    script = KUBECTL_STAND_IN.format(components=" ".join(COMPONENTS), run=shlex.quote(str(run_dir(layout.cluster_dir))))
    stand_in.write_text(script, encoding="utf-8")
    stand_in.chmod(0o700)


def launch_plan(settings: KwokSettings, *, search_path: str) -> LaunchPlan:
    """Return how kwokctl is called. ``search_path`` is the caller's ``PATH``."""
    layout = settings.layout
    argv = [
        str(settings.binaries["kwokctl"]), "create", "cluster",
        "--name", layout.name,
        "--config", str(layout.config_file),
        # Empty: without it kwokctl writes a context into the user's own kubeconfig.
        "--kubeconfig", "",
        "--wait", "0s",
    ]  # fmt: skip
    for role, flag in PORT_FLAGS.items():
        argv += [flag, str(settings.ports[role])]
    for name in COMPONENTS:
        argv += [f"--{name}-binary", str(shim_path(layout.cluster_dir, name))]
    env = {
        "KWOK_WORKDIR": str(layout.workdir),
        "KWOK_KUBE_VERSION": f"v{settings.kubernetes}",
        "PATH": f"{layout.stand_in_dir}{os.pathsep}{search_path}",
    }
    return LaunchPlan(argv=tuple(argv), env=env, timeout_s=LAUNCH_TIMEOUT_S)


def component_plans(settings: KwokSettings, limits: Mapping[ComponentName, Limits]) -> tuple[ComponentPlan, ...]:
    """Return what the supervisor needs to know of each component."""
    return tuple(
        ComponentPlan(
            name=name,
            binary=str(settings.binaries[name]),
            role=ROLES[name],
            limits=limits[name],
            log=str(settings.layout.logs_dir / f"{name}.log"),
            tcp_ports=(settings.ports[name],),
        )
        for name in COMPONENTS
    )
