"""Groups of an API server's functions, and who its goroutines wait for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.hotspots import COPIES, GROUPS, OTHER, Goroutines, goroutines, group_of, groups, short_name
from scaletest.analysis.pprof import parse_profile

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("frames", "group"),
    [
        (["runtime.scanObject", "runtime.gcDrain", "runtime.gcBgMarkWorker"], "garbage collection"),
        (["runtime.scanobject", "runtime.gcAssistAlloc", "runtime.mallocgc", "encoding/json.Marshal"], "garbage collection"),
        (["runtime.memclrNoHeapPointers", "runtime.mallocgc", "encoding/json.Marshal"], "allocation"),
        (["runtime.memmove", "encoding/json.appendString", "net/http.(*conn).serve"], "serialization"),
        (["reflect.Value.Field", "encoding/json.structEncoder.encode"], "serialization"),
        (["k8s.io/api/core/v1.(*Pod).MarshalToSizedBuffer"], "serialization"),
        (["k8s.io/api/core/v1.(*Pod).DeepCopyInto", "k8s.io/apiserver/pkg/storage/cacher.f"], COPIES),
        (["k8s.io/apimachinery/pkg/runtime.(*Scheme).Convert"], COPIES),
        (["k8s.io/apimachinery/pkg/runtime.(*Unknown).MarshalToWriter"], "serialization"),
        (["crypto/internal/fips140/aes/gcm.gcmAesEnc", "crypto/tls.(*Conn).Write"], "TLS"),
        (["runtime.memmove", "crypto/tls.(*Conn).Write", "net/http.(*response).Write"], "TLS"),
        (["internal/runtime/syscall/linux.Syscall6", "internal/poll.(*FD).Write", "crypto/tls.(*Conn).Write"], "network"),
        (["crypto/internal/fips140/bigmod.addMulVVW2048", "crypto/x509.(*Certificate).Verify"], "authentication"),
        (["k8s.io/apiserver/pkg/storage/cacher.(*Cacher).GetList"], "watch cache"),
        (["k8s.io/apiserver/pkg/storage/etcd3.(*store).GetList"], "etcd client"),
        (["k8s.io/apiserver/pkg/registry/generic/registry.(*Store).List"], "request handling"),
        (["k8s.io/apiserver/pkg/server/filters.(*priorityAndFairnessHandler).Handle"], "flow control"),
        (["runtime.futex", "runtime.notesleep", "runtime.findRunnable"], "scheduling"),
        (["k8s.io/apiserver/pkg/authorization/union.f"], "authorization"),
        (["k8s.io/apiserver/pkg/admission.chainAdmissionHandler.Admit"], "admission"),
        (["github.com/prometheus/client_golang/prometheus.f"], "metrics and logs"),
        (["compress/flate.f", "compress/gzip.f"], "compression"),
        (["runtime/pprof.(*profileBuilder).build", "net/http/pprof.Profile"], "profiling"),
        (["regexp/syntax.(*compiler).inst"], OTHER),
        ([], OTHER),
    ],
)  # fmt: skip
def test_a_sample_belongs_to_its_innermost_frame_that_is_known(frames: list[str], group: str) -> None:
    assert group == group_of(frames, {})


def test_no_rule_is_given_twice_and_every_group_has_one() -> None:
    prefixes = [prefix for each in GROUPS.values() for prefix in each]

    assert len(set(prefixes)) == len(prefixes)
    assert all(GROUPS.values())
    assert all(group == group_of([prefix], {}) for group, each in GROUPS.items() for prefix in each)


@given(st.lists(st.tuples(st.lists(st.sampled_from(["runtime.mallocgc", "a.b", "crypto/tls.f"])), st.integers(1, 99))))
def test_groups_share_out_the_whole(samples: list[tuple[list[str], int]]) -> None:
    assert sum(value for _, value in samples) == sum(groups(samples).values())


def test_a_real_api_server_that_lists_spends_its_time_on_serialization() -> None:
    samples = parse_profile((DATA / "apiserver-1.37.2-cpu.pb.gz").read_bytes()).samples("cpu")
    found = groups(samples)
    whole = sum(found.values())

    assert ["serialization", "network", "garbage collection", "TLS"] == list(found)[:4]
    assert 0.43 == pytest.approx(found["serialization"] / whole, abs=0.01)
    assert OTHER not in found


def test_goroutines_are_grouped_by_who_waits_and_in_what() -> None:
    park = "runtime.gopark"
    samples = [
        ([park, "runtime.selectgo", "k8s.io/a/cacher.(*cacheWatcher).process", "k8s.io/a/cacher.run"], 7),
        ([park, "runtime.chanrecv", "k8s.io/a/cacher.(*cacheWatcher).process", "k8s.io/a/other"], 2),
        ([park, "internal/poll.(*FD).Read", "net.(*conn).Read", "crypto/tls.(*Conn).Read", "net/http.(*conn).serve"], 30),
        ([park, "internal/poll.(*FD).Read", "net.(*conn).Read", "google.golang.org/grpc.read"], 4),
        ([park, "runtime.bgsweep"], 1),
        ([], 5),
    ]  # fmt: skip

    assert [
        Goroutines("net/http.(*conn).serve", "net.(*conn).Read", 30),
        Goroutines("k8s.io/a/cacher.(*cacheWatcher).process", "k8s.io/a/cacher.(*cacheWatcher).process", 9),
        Goroutines("google.golang.org/grpc.read", "net.(*conn).Read", 4),
        Goroutines("runtime.bgsweep", "runtime.bgsweep", 1),
    ] == goroutines(samples)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("k8s.io/apiserver/pkg/storage/cacher.(*Cacher).GetList", "cacher.(*Cacher).GetList"),
        ("runtime.gopark", "runtime.gopark"),
        ("encoding/json.appendString[go.shape.string]", "json.appendString[…]"),
        ("google.golang.org/grpc.(*Stream[go.shape.struct { a/b.c }]).Recv", "grpc.(*Stream[…]).Recv"),
    ],
)
def test_names_are_shortened_for_people(name: str, short: str) -> None:
    assert short == short_name(name)
