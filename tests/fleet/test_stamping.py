import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scaletest.fleet.stamping import StampError, Token, compile_template

names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=3, max_size=60)


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited protobuf field."""
    length = len(payload)
    encoded = bytearray()
    while length >= 0x80:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes([number << 3 | 2]) + bytes(encoded) + payload


def strings(message: bytes) -> list[bytes]:
    """Payloads of a flat message: fails when a length does not fit."""
    found, at = [], 0
    while at < len(message):
        length, shift, at = 0, 0, at + 1
        while True:
            byte = message[at]
            length |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if byte < 0x80:
                break
        found.append(message[at : at + length])
        assert at + length <= len(message)
        at += length
    return found


Drawn = tuple[list[str], list[str], list[bytes]]


@st.composite
def objects(draw: st.DrawFn) -> Drawn:
    """A sample's tokens, other values of the same widths, and what stands around them."""
    values = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    fillers = draw(st.lists(st.binary(max_size=200), min_size=len(values), max_size=len(values)))
    new = [draw(st.text("abcdefghij0123456789", min_size=len(value), max_size=len(value))) for value in values]
    return values, new, fillers


@given(objects())
def test_only_the_tokens_of_a_copy_differ_and_all_lengths_stay_right(drawn: Drawn) -> None:
    values, new, fillers = drawn
    pairs = list(zip(values, fillers, strict=True))
    assume(not any(value.encode() in filler for value in values for filler in fillers))
    assume(not any(one != other and one in other for one in values for other in values))
    raw = b"".join(field(1, value.encode()) + field(2, filler) for value, filler in pairs)
    template = compile_template(raw, [Token(f"role{i}", value, 1) for i, value in enumerate(values)])

    copy = template.stamp({f"role{i}": value for i, value in enumerate(new)})

    assert len(raw) == len(copy)
    expected = [part for value, filler in zip(new, fillers, strict=True) for part in (value.encode(), filler)]
    assert expected == strings(copy)


@given(objects())
def test_stamping_a_sample_with_its_own_values_gives_the_sample(drawn: Drawn) -> None:
    values, _, _ = drawn
    assume(not any(one != other and one in other for one in values for other in values))
    raw = b"".join(field(1, value.encode()) for value in values)
    template = compile_template(raw, [Token(value, value, 1) for value in values])

    assert raw == template.stamp({value: value for value in values})


def test_a_name_that_is_part_of_a_longer_token_is_left_to_that_token() -> None:
    raw = field(1, b"gpu-00000") + field(2, b"gpu-00000-000") + field(3, b"gpu-00000")
    tokens = [Token("node", "gpu-00000", 2), Token("name", "gpu-00000-000", 1)]

    copy = compile_template(raw, tokens).stamp({"node": "gpu-00007", "name": "gpu-00007-001"})

    assert [b"gpu-00007", b"gpu-00007-001", b"gpu-00007"] == strings(copy)


def test_tokens_within_the_field_paths_of_managed_fields_are_stamped_too() -> None:
    raw = field(1, b'{"k:{\\"uid\\":\\"aaaa-1\\"}":{}}') + field(2, b"aaaa-1")

    copy = compile_template(raw, [Token("uid", "aaaa-1", 2)]).stamp({"uid": "bbbb-2"})

    assert [b'{"k:{\\"uid\\":\\"bbbb-2\\"}":{}}', b"bbbb-2"] == strings(copy)


def test_a_custom_resource_is_stamped_in_its_json() -> None:
    raw = json.dumps({"metadata": {"name": "widget-000000", "namespace": "fleet-0000"}}).encode()
    tokens = [Token("name", "widget-000000", 1), Token("namespace", "fleet-0000", 1)]

    copy = compile_template(raw, tokens).stamp({"name": "widget-000041", "namespace": "fleet-0003"})

    assert {"metadata": {"name": "widget-000041", "namespace": "fleet-0003"}} == json.loads(copy)


def test_equal_values_of_different_roles_are_told_apart_by_their_order() -> None:
    raw = field(1, b"gpu-00000") + field(1, b"gpu-00001") + field(1, b"gpu-00000")
    tokens = [Token("node_0", "gpu-00000", 1), Token("node_1", "gpu-00001", 1), Token("node_2", "gpu-00000", 1)]

    copy = compile_template(raw, tokens).stamp({"node_0": "gpu-00010", "node_1": "gpu-00011", "node_2": "gpu-00012"})

    assert [b"gpu-00010", b"gpu-00011", b"gpu-00012"] == strings(copy)


@pytest.mark.parametrize(
    ("raw", "tokens", "why"),
    [
        (field(1, b"other"), [Token("name", "gpu-00000", 1)], "occurs 0 times"),
        (field(1, b"gpu-00000") * 3, [Token("name", "gpu-00000", 2)], "occurs 3 times"),
        (field(1, b"gpu-00000-log"), [Token("name", "gpu-00000", 1)], "part of a longer string"),
        (field(1, b"same") * 3, [Token("a", "same", 1), Token("b", "same", 2)], "cannot be told apart"),
    ],
)
def test_a_sample_with_unexpected_tokens_is_refused(raw: bytes, tokens: list[Token], why: str) -> None:
    with pytest.raises(StampError, match=why):
        compile_template(raw, tokens)


def test_a_value_of_another_width_is_refused() -> None:
    template = compile_template(field(1, b"gpu-00000"), [Token("name", "gpu-00000", 1)])

    with pytest.raises(StampError, match="10 bytes long, the sample's is 9"):
        template.stamp({"name": "gpu-100000"})
