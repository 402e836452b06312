import random
import uuid
from collections.abc import Callable

import pytest

from scaletest.core.errors import UsageError
from scaletest.fleet import names
from scaletest.profile.schema import FleetSpec


def test_node_names_come_pool_by_pool_and_are_known_before_there_is_a_cluster() -> None:
    spec = FleetSpec.model_validate({"pools": [{"name": "gpu", "nodes": 2}, {"name": "cpu", "nodes": 1}]})

    assert ["gpu-00000", "gpu-00001", "cpu-00000"] == list(names.node_names(spec))


@pytest.mark.parametrize("indices", [(0, 7, 99_999)])
def test_every_name_of_a_kind_has_the_same_width(indices: tuple[int, ...]) -> None:
    makers: list[Callable[[int], str]] = [
        lambda index: names.node_name("gpu", index),
        lambda index: names.namespace_name(index % 10_000),
        lambda index: names.object_name("secret", index),
        lambda index: names.pod_name("gpu-00000", index % 1_000),
    ]
    for make in makers:
        assert 1 == len({len(make(index)) for index in indices})


def test_a_pool_that_runs_out_of_numbers_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="node number 100000"):
        names.node_name("gpu", 100_000)


def test_uids_are_random_uuids_of_the_generator_that_is_given() -> None:
    uid = names.new_uid(random.Random(1))

    assert names.new_uid(random.Random(1)) == uid
    assert 4 == uuid.UUID(uid).version


def test_hexadecimal_digits_keep_their_leading_zeros() -> None:
    assert {32} == {len(names.new_hex(random.Random(seed), 32)) for seed in range(300)}
