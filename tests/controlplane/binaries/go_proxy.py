"""A Go module proxy in a directory, and small modules with the shape of the real ones."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

KUBERNETES_GO_MOD = """\
module k8s.io/kubernetes

go 1.21

require (
\tk8s.io/component-base v0.0.0
\tk8s.io/utils v0.0.0-20240711033017-18e509b52bc8
)

replace k8s.io/component-base => ./staging/src/k8s.io/component-base
"""
_MAIN = """\
package main

import (
\t"fmt"

\t"k8s.io/component-base/version"
\t"k8s.io/utils/text"
)

func main() {{
\tfmt.Println(text.Join("Kubernetes", version.Get())){extra}
}}
"""
_VERSION = """\
package version

var (
\tgitVersion = "v0.0.0-master"
\tgitMajor, gitMinor string
)

func Get() string { return gitVersion }
"""
_TEXT = """\
package text

func Join(a, b string) string { return a + " " + b }
"""


class GoProxy:
    """A file-system GOPROXY."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def publish(self, module: str, version: str, go_mod: str, files: dict[str, str]) -> None:
        directory = self.root / module / "@v"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{version}.info").write_text(json.dumps({"Version": version, "Time": "2026-01-01T00:00:00Z"}))
        (directory / f"{version}.mod").write_text(go_mod)
        with (directory / "list").open("a") as listing:
            listing.write(version + "\n")
        with zipfile.ZipFile(directory / f"{version}.zip", "w") as archive:
            for name, text in {"go.mod": go_mod, **files}.items():
                archive.writestr(f"{module}@{version}/{name}", text)

    def publish_kubernetes(
        self, version: str, *, go_mod: str = KUBERNETES_GO_MOD, scheduler: str | None = None
    ) -> None:
        """Publish a Kubernetes of three programs, its library in the matching version and in a wrong newer one."""
        staging = "v0." + version.split(".", 1)[1]
        library = "module k8s.io/component-base\n\ngo 1.21\n"
        self.publish("k8s.io/component-base", staging, library, {"version/version.go": _VERSION})
        self.publish("k8s.io/component-base", "v0.99.0", library, {"version/version.go": "package version\n"})
        self.publish(
            "k8s.io/utils",
            "v0.0.0-20240711033017-18e509b52bc8",
            "module k8s.io/utils\n\ngo 1.21\n",
            {"text/text.go": _TEXT},
        )
        main = _MAIN.format(extra="")
        self.publish(
            "k8s.io/kubernetes",
            f"v{version}",
            go_mod,
            {
                "cmd/kube-apiserver/main.go": main,
                "cmd/kube-controller-manager/main.go": main,
                "cmd/kube-scheduler/main.go": scheduler if scheduler is not None else main,
            },
        )

    def environ(self, scratch: Path) -> dict[str, str]:
        """Environment of a machine whose only module proxy this is."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "GOCACHE", "GOROOT") if name in os.environ}
        return {
            **kept,
            "GOPROXY": self.root.as_uri(),
            "GOSUMDB": "off",
            "GOTOOLCHAIN": "local",
            # Go makes fetched modules read-only, which pytest could not remove.
            "GOMODCACHE": str(scratch / "gomodcache"),
        }
