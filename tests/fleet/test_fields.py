import pytest

from scaletest.fleet.fields import FieldMap, Json, differences, expected_copy, tokens_of
from scaletest.fleet.stamping import Token

FIELDS: FieldMap = {("metadata", "name"): "name", ("metadata", "uid"): "uid", ("status", "addresses", 1): "name"}
SAMPLE: Json = {
    "metadata": {
        "name": "gpu-00000",
        "uid": "u-0",
        "resourceVersion": "7",
        "managedFields": [{"fieldsV1": {'k:{"uid":"u-0"}': {}, 'k:{"type":"Ready"}': {}}}],
    },
    "status": {"addresses": ["100.100.100.100", "gpu-00000"], "phase": "Running"},
}


def test_tokens_are_counted_by_their_paths_and_in_managed_fields() -> None:
    assert [Token("name", "gpu-00000", 2), Token("uid", "u-0", 2)] == tokens_of(SAMPLE, FIELDS)


def test_the_expected_copy_has_new_values_in_the_paths_and_in_managed_fields_alone() -> None:
    copy = expected_copy(SAMPLE, FIELDS, {"name": "gpu-00003", "uid": "u-3"})

    assert ["metadata.managedFields.0.fieldsV1", "metadata.name", "metadata.uid", "status.addresses.1"] == sorted(
        {line.partition(":")[0].removesuffix(".k") for line in differences(SAMPLE, copy)}
    )
    assert ['k:{"uid":"u-3"}', 'k:{"type":"Ready"}'] == list(copy["metadata"]["managedFields"][0]["fieldsV1"])
    assert "gpu-00000" == SAMPLE["metadata"]["name"]


def test_a_path_that_the_sample_lacks_is_named() -> None:
    with pytest.raises(KeyError, match=r"status\.podIP"):
        tokens_of(SAMPLE, {("status", "podIP"): "address"})


def test_two_paths_of_a_role_must_agree() -> None:
    with pytest.raises(ValueError, match=r"status\.addresses\.0"):
        tokens_of(SAMPLE, {("metadata", "name"): "name", ("status", "addresses", 0): "name"})


def test_differences_name_the_path_and_both_values() -> None:
    other = {**SAMPLE, "status": {"addresses": ["100.100.100.100"], "phase": "Pending", "extra": 1}}

    found = list(differences(SAMPLE, other))

    assert ["status.addresses", "status.extra", "status.phase"] == [line.partition(":")[0] for line in found]
    assert "status.phase: expected 'Running', actual 'Pending'" == found[2]


def test_the_resource_version_is_no_difference() -> None:
    other = {**SAMPLE, "metadata": {**SAMPLE["metadata"], "resourceVersion": "9"}}

    assert [] == list(differences(SAMPLE, other))
