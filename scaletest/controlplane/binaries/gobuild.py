"""The fifth source: build from the Go module, through the module proxy and its checksum database.

All programs of a family come out of one ``go build``, since they share almost all of their packages:
Kubernetes 1.37.2 takes about 6 minutes on two idle cores for all three, KWOK 1.5, etcd 0.5. What
the Go caches already hold is not fetched or compiled again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scaletest.controlplane.binaries.cache import BinaryCache
from scaletest.controlplane.binaries.gomod import executable_name, go_directive, scratch_go_mod, too_old
from scaletest.controlplane.binaries.gotool import GoCommandFailed, GoTool
from scaletest.controlplane.binaries.progress import Progress
from scaletest.controlplane.binaries.sources import Found, Miss, Planned, SourceName, reported_version
from scaletest.controlplane.binaries.versions import KUBERNETES, KWOK, Family, Wanted
from scaletest.core.errors import ResourceShortage
from scaletest.core.units import format_bytes

__all__ = ["GoModuleSource", "ldflags"]

_SPACE_NEEDED_BYTES: Mapping[str, int] = {"kubernetes": 5 << 30, "kwok": 2 << 30, "etcd": 1 << 30}
"""Free space that a build from empty Go caches takes (1.37.2: 3.4 GB of build cache, 1.2 GB of modules)."""


def ldflags(family: Family, version: str) -> str:
    """Linker flags that make the programs report ``version``, and leave debug symbols out."""
    if family is KUBERNETES:
        major, minor = version.split(".")[:2]
        where = "k8s.io/component-base/version"
        settings = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
        return "-s -w " + " ".join(f"-X {where}.{name}={value}" for name, value in settings.items())
    if family is KWOK:
        return f"-s -w -X sigs.k8s.io/kwok/pkg/consts.Version={version}"
    return "-s -w"


@dataclass(frozen=True, slots=True)
class _Module:
    """A version of a module that the proxy serves."""

    go_mod: str
    go: GoTool


class GoModuleSource:
    """Builds a family's programs from its Go module into the cache."""

    name: SourceName = "build"

    def __init__(self, cache: BinaryCache, environ: Mapping[str, str]) -> None:
        self._cache = cache
        self._environ = environ
        self._modules: dict[tuple[str, str], _Module | Miss] = {}

    def plan(self, want: Wanted) -> Planned | Miss:
        """Ask whether Go is here, new enough, and the module served; nothing but its go.mod is fetched."""
        module = self._module(want)
        if isinstance(module, Miss):
            return module
        return Planned(f"would be built from {want.family.module}@v{want.version} by {module.go.version}")

    def locate(self, want: Wanted, progress: Progress) -> Found | Miss:
        """Build the family's programs, unless another process has done so meanwhile."""
        return self._locate(want, progress, again=False)

    def rebuild(self, want: Wanted, progress: Progress) -> Found | Miss:
        """Build the family's programs even when they are cached."""
        return self._locate(want, progress, again=True)

    def _locate(self, want: Wanted, progress: Progress, *, again: bool) -> Found | Miss:
        module = self._module(want)
        if isinstance(module, Miss):
            return module
        with self._cache.locked(want, "building", progress):
            cached = self._cache.lookup(want)
            if again or isinstance(cached, str):
                miss = self._build(want, module, progress)
                if miss is not None:
                    # Its other programs would fail as well, after as long a time.
                    self._modules[want.family.name, want.version] = miss
                    return miss
                cached = self._cache.lookup(want)
                assert not isinstance(cached, str), cached
            return Found(cached.path, cached.record.origin)

    def _module(self, want: Wanted) -> _Module | Miss:
        key = (want.family.name, want.version)
        if key not in self._modules:
            self._modules[key] = self._query(want)
        return self._modules[key]

    def _query(self, want: Wanted) -> _Module | Miss:
        try:
            go = GoTool.find(self._environ, want.goos, want.goarch)
        except GoCommandFailed as error:
            return Miss(str(error))
        if go is None:
            return Miss("no Go on PATH to build with (go.dev/doc/install)")
        module = f"{want.family.module}@v{want.version}"
        try:
            facts = json.loads(go.ask(Path("/"), "list", "-m", "-json", module))
        except GoCommandFailed as error:
            return Miss(f"the Go module {module} cannot be had: {' '.join(error.tail)}")
        go_mod = Path(facts["GoMod"]).read_text(encoding="utf-8")
        needed = go_directive(go_mod)
        if needed is not None and not go.fetches_toolchains and too_old(go.version, needed):
            return Miss(f"{module} needs Go {needed}; here is {go.version} (and GOTOOLCHAIN=local)")
        return _Module(go_mod, go)

    def _build(self, want: Wanted, module: _Module, progress: Progress) -> Miss | None:
        work = self._cache.work_dir(want)
        _check_space(want.family, (work, *module.go.caches))
        for name in ("go.mod", "go.sum", "build.log"):
            (work / name).unlink(missing_ok=True)
        out = work / "out"
        for leftover in (out, *work.glob("go-build*")):
            shutil.rmtree(leftover, ignore_errors=True)
        (work / "go.mod").write_text(scratch_go_mod(module.go_mod, want.version), encoding="utf-8")
        progress.note(
            f"{want.family.title} {want.version}: building from {want.family.module}@v{want.version} "
            f"by {module.go.version}; log in {work / 'build.log'}"
        )
        try:
            _compile(want, module.go, work, progress)
        except GoCommandFailed as error:
            tail = "\n    ".join(error.tail)
            return Miss(f"go {error.arguments[0]} failed; the whole log is {work / 'build.log'}, it ends:\n    {tail}")
        origin = f"built from {want.family.module}@v{want.version} by {module.go.version}"
        try:
            return self._store_all(want, out, origin)
        finally:
            shutil.rmtree(out, ignore_errors=True)

    def _store_all(self, want: Wanted, out: Path, origin: str) -> Miss | None:
        for component in want.family.components:
            built = out / executable_name(component.package)
            version = reported_version(built, want.family)
            if isinstance(version, Miss):
                return Miss(f"the program built from {component.package} {version.reason}")
            # etcd's source names its version; for the others the linker has set it.
            if version != want.version:
                return Miss(f"the program built from {component.package} says it is {version}")
        for component in want.family.components:
            self._cache.store(want.sibling(component), out / executable_name(component.package), origin)
        return None


def _compile(want: Wanted, go: GoTool, work: Path, progress: Progress) -> None:
    log = work / "build.log"
    packages = [component.package for component in want.family.components]
    label = f"{want.family.title} {want.version}"
    with progress.task(f"{label}: fetching modules", "modules") as task:
        fetched = 0

        def count_fetched(line: str) -> None:
            nonlocal fetched
            fetched += line.startswith("go: downloading ")
            task.update(fetched)

        # Without the version on every package, go get would take the newest.
        go.run(work, log, count_fetched, "get", *(f"{package}@v{want.version}" for package in packages))
    flags = ("-trimpath", "-ldflags", ldflags(want.family, want.version))
    stale = _stale_packages(go, work, flags, packages)
    with progress.task(f"{label}: compiling and linking", "packages") as task:
        compiled = 0

        def count_compiled(line: str) -> None:
            nonlocal compiled
            # -v prints one import path a line; everything else has a blank in it.
            compiled += bool(line) and " " not in line
            task.update(min(compiled, stale), stale)

        task.update(0, stale)
        (work / "out").mkdir()
        go.run(work, log, count_compiled, "build", "-v", *flags, "-o", "out/", *packages)


def _stale_packages(go: GoTool, work: Path, flags: tuple[str, ...], packages: list[str]) -> int:
    """Count the packages that the build will compile: those that the Go build cache does not hold."""
    lines: list[str] = []
    go.run(work, work / "build.log", lines.append, "list", "-deps", *flags, "-f", "{{.Stale}}", *packages)
    return lines.count("true")


def _check_space(family: Family, directories: Iterable[Path]) -> None:
    needed = _SPACE_NEEDED_BYTES[family.name]
    for directory in directories:
        existing = next(path for path in (directory, *directory.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        if free < needed:
            msg = (
                f"no space to build {family.title}: it takes up to {format_bytes(needed)} in {directory}, "
                f"{format_bytes(free)} left"
            )
            hint = "free space there, or name other directories by SCALETEST_CACHE_DIR, GOCACHE and GOMODCACHE"
            raise ResourceShortage(msg, hint=hint)
