"""Where the time, the memory and the goroutines of an API server go, from its profiles: by function, and by group of packages.

**Groups.** A sample belongs to the group of its innermost frame that any rule below knows; frames that none knows (``reflect``, ``sync``,
``runtime.memmove``) count for whoever called them. So TLS is what encrypts and not what calls it, and the write to the socket
under it is the network's. A rule is a prefix of the function's name with its import path; the longest that fits decides. Deep copies, which
are methods of every type, are known by their name first.

**Goroutines** are grouped by who waits: the innermost frame outside Go's standard library, or the outermost one where all are inside
it. Beside it stands in what it waits: the innermost frame outside the runtime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["GROUPS", "OTHER", "Goroutines", "goroutines", "group_of", "groups", "short_name"]

Samples = Iterable[tuple[Sequence[str], int]]

OTHER: Final = "other"
COPIES: Final = "conversion and copies"
_DEEP_COPY: Final = ".DeepCopy"

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "garbage collection": (
        "runtime.gc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.scan", "runtime.greyobject", "runtime.markroot", "runtime.sweepone",
        "runtime.wbBuf", "runtime.findObject", "runtime.spanSetScans", "runtime.tryDeferToSpanScan", "runtime.(*gcWork)", "runtime.(*sweepLocked)",
        "runtime.(*spanInlineMarkBits)", "internal/runtime/gc",
    ),
    "allocation": (
        "runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice", "runtime.newarray", "runtime.(*mcache)",
        "runtime.(*mcentral)", "runtime.(*mheap)",
    ),
    "scheduling": (
        "runtime.schedule", "runtime.findRunnable", "runtime.mcall", "runtime.park_m", "runtime.gopark", "runtime.goready", "runtime.ready",
        "runtime.mstart", "runtime.sysmon", "runtime.selectgo", "runtime.chansend", "runtime.chanrecv", "runtime.futex", "runtime.netpoll",
        "runtime.newproc", "runtime.goexit0", "runtime.lock2", "runtime.unlock2", "runtime.(*timers)", "runtime.newstack",
    ),
    "serialization": (
        "encoding/json", "encoding/base64", "sigs.k8s.io/json", "sigs.k8s.io/yaml", "github.com/json-iterator/go", "github.com/modern-go/reflect2",
        "github.com/gogo/protobuf", "google.golang.org/protobuf", "github.com/fxamacker/cbor", "k8s.io/apimachinery/pkg/runtime",
        "k8s.io/api/", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apiserver/pkg/endpoints/handlers/responsewriters",
    ),
    COPIES: (
        "k8s.io/apimachinery/pkg/conversion", "k8s.io/kubernetes/pkg/apis/", "k8s.io/apimachinery/pkg/runtime.(*Scheme)",
        "k8s.io/apimachinery/pkg/api/meta", "sigs.k8s.io/structured-merge-diff", "k8s.io/apimachinery/pkg/util/managedfields",
    ),
    "compression": ("compress/", "github.com/klauspost/compress"),
    "TLS": ("crypto/", "vendor/golang.org/x/crypto"),
    "network": (
        "internal/poll", "internal/runtime/syscall", "net.", "syscall.", "golang.org/x/net/http2", "net/http", "runtime/internal/syscall",
        "bufio.", "vendor/golang.org/x/net/http",
    ),
    "watch cache": ("k8s.io/apiserver/pkg/storage/cacher", "k8s.io/client-go/tools/cache"),
    "etcd client": ("go.etcd.io/etcd", "google.golang.org/grpc", "k8s.io/apiserver/pkg/storage/etcd3", "github.com/grpc-ecosystem"),
    "authentication": (
        "k8s.io/apiserver/pkg/authentication", "k8s.io/apiserver/plugin/pkg/authenticator", "k8s.io/kubernetes/pkg/serviceaccount",
        "gopkg.in/go-jose", "crypto/x509", "crypto/rsa", "crypto/internal/fips140/rsa", "crypto/internal/fips140/bigmod",
    ),
    "authorization": (
        "k8s.io/apiserver/pkg/authorization", "k8s.io/kubernetes/plugin/pkg/auth", "k8s.io/apiserver/plugin/pkg/authorizer",
        "k8s.io/kubernetes/pkg/auth",
    ),
    "admission": ("k8s.io/apiserver/pkg/admission", "k8s.io/kubernetes/plugin/pkg/admission"),
    "flow control": ("k8s.io/apiserver/pkg/util/flowcontrol", "k8s.io/apiserver/pkg/server/filters.(*priorityAndFairness"),
    "metrics and logs": (
        "github.com/prometheus", "k8s.io/component-base/metrics", "k8s.io/klog", "k8s.io/apiserver/pkg/audit", "go.opentelemetry.io",
        "k8s.io/component-base/tracing", "k8s.io/apiserver/pkg/endpoints/metrics", "k8s.io/apiserver/pkg/server/httplog",
    ),
    "profiling": ("runtime/pprof", "net/http/pprof", "runtime.profileLoop", "runtime.sigprof"),
    "request handling": (
        "k8s.io/apiserver/pkg", "k8s.io/kubernetes/pkg", "k8s.io/kube-aggregator", "github.com/emicklei/go-restful", "k8s.io/apimachinery/pkg",
        "k8s.io/client-go",
    ),
}  # fmt: skip
"""Rules by group."""

_RULES: Final = sorted(
    ((prefix, group) for group, prefixes in GROUPS.items() for prefix in prefixes), key=lambda rule: -len(rule[0])
)
_RUNTIME: Final = ("runtime.", "internal/", "sync.", "sync/")
_PLAIN: Final = ("vendor/", "main.")


def group_of(frames: Sequence[str], known: dict[str, str | None]) -> str:
    """Return the group of a stack, the innermost frame first; ``known`` keeps what was found of each name."""
    for name in frames:
        if name not in known:
            known[name] = _rule_for(name)
        group = known[name]
        if group is not None:
            return group
    return OTHER


def _rule_for(name: str) -> str | None:
    if _DEEP_COPY in name:
        return COPIES
    return next((group for prefix, group in _RULES if name.startswith(prefix)), None)


def groups(samples: Samples) -> dict[str, int]:
    """Return the value of each group, the largest first; every sample is in one of them."""
    known: dict[str, str | None] = {}
    found: Counter[str] = Counter()
    for frames, value in samples:
        found[group_of(frames, known)] += value
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class Goroutines:
    """Goroutines that wait alike."""

    function: str
    """Who waits."""
    waits_in: str
    """In what; the function itself where it waits for a channel or a lock."""
    count: int


def goroutines(samples: Samples) -> list[Goroutines]:
    """Group goroutines by who waits, and in what; the most first."""
    found: Counter[tuple[str, str]] = Counter()
    for frames, count in samples:
        if frames:
            outside = next((name for name in frames if not name.startswith(_RUNTIME)), frames[-1])
            found[next((name for name in frames if _is_foreign(name)), frames[-1]), outside] += count
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [Goroutines(function, waits_in, count) for (function, waits_in), count in ordered]


def _is_foreign(name: str) -> bool:
    """Whether a function is outside Go's standard library: the first part of its import path is a host's name."""
    return "." in name.partition("/")[0] and "/" in name and not name.startswith(_PLAIN)


def short_name(name: str) -> str:
    """Return a function's name without the directories of its import path and without type arguments: ``cacher.(*Cacher).List``."""
    plain, _, _ = name.partition("[")
    head, _, rest = plain.rpartition("/")
    text = rest if head else plain
    return f"{text}[…]{name.rpartition(']')[2]}" if plain != name else text
