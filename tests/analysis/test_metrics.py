"""Counters of API servers and etcd across restarts and gaps."""

from __future__ import annotations

import math

import pytest

from scaletest.analysis.metrics import ApiServerMetrics, EtcdMetrics
from scaletest.analysis.series import EVER
from tests.analysis.journals import apf_level, apiserver, etcd


def test_what_was_counted_before_the_first_look_is_unknown() -> None:
    metrics = ApiServerMetrics()
    metrics.add(apiserver(1.0, exempt=apf_level(dispatched=1000)))
    metrics.add(apiserver(2.0, exempt=apf_level(dispatched=1010)))

    assert metrics.dispatched("exempt", EVER) == 10


def test_a_restarted_server_counts_from_zero() -> None:
    metrics = ApiServerMetrics()
    metrics.add(apiserver(1.0, exempt=apf_level(dispatched=1000, rejected={"time-out": 5})))
    metrics.add(apiserver(2.0, exempt=apf_level(dispatched=30, rejected={"time-out": 7})))

    assert metrics.dispatched("exempt", EVER) == 30
    assert metrics.rejected("exempt", EVER) == {"time-out": 7}


def test_each_server_has_counters_of_its_own() -> None:
    metrics = ApiServerMetrics()
    for t, first, second in ((1.0, 100, 5), (2.0, 110, 7)):
        metrics.add(apiserver(t, server="a", requests={"LIST 200": first}))
        metrics.add(apiserver(t, server="b", requests={"LIST 200": second}))

    assert metrics.requests(EVER) == {"LIST 200": 12}
    assert metrics.requests_by_server(EVER) == {"a": 10, "b": 2}


def test_requests_of_a_server_that_is_added_count_from_its_first_look_on() -> None:
    metrics = ApiServerMetrics()
    for t in range(4):
        metrics.add(apiserver(float(t), server="a", requests={"LIST 200": 10 * t, "GET 429": t}))
    for t_s, count in ((2.0, 3), (3.0, 8)):
        metrics.add(apiserver(t_s, server="b", requests={"LIST 200": count}))

    assert metrics.requests_by_server((0.0, 2.5)) == {"a": 22}
    assert metrics.requests_by_server(EVER) == {"a": 33, "b": 5}


def test_increases_belong_to_the_span_of_the_later_look() -> None:
    metrics = ApiServerMetrics()
    for t in range(5):
        metrics.add(apiserver(float(t), exempt=apf_level(dispatched=10 * t)))

    assert metrics.dispatched("exempt", (2.0, 4.0)) == 20


def test_etcd_quantiles_are_of_the_increases_in_the_span() -> None:
    metrics = EtcdMetrics()
    metrics.add(etcd(1.0, {0.001: 1000, 0.002: 1000}))
    metrics.add(etcd(2.0, {0.001: 1000, 0.002: 1100}))

    assert metrics.fsync_quantile_s(0.5, EVER) == pytest.approx((0.0015, 100))


def test_etcd_that_was_restarted_counts_from_zero() -> None:
    metrics = EtcdMetrics()
    metrics.add(etcd(1.0, {0.001: 1000, 0.002: 1000}, puts=500))
    metrics.add(etcd(2.0, {0.001: 10, 0.002: 20}, puts=20))

    assert metrics.fsync_quantile_s(0.5, EVER) == pytest.approx((0.001, 20))
    assert sum(sample.puts for sample in metrics.samples) == 20


def test_fsyncs_slower_than_every_finite_bucket_count() -> None:
    metrics = EtcdMetrics()
    metrics.add(etcd(1.0, {0.001: 0, math.inf: 0}))
    metrics.add(etcd(2.0, {0.001: 10, math.inf: 100}))

    assert metrics.fsync_quantile_s(0.99, EVER) == (0.001, 100)


def test_etcd_without_a_size_is_no_malformed_record() -> None:
    metrics = EtcdMetrics()
    metrics.add(etcd(1.0, {}, db_bytes=None, db_in_use_bytes=None))

    assert math.isnan(metrics.samples[0].db_bytes)
