from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scaletest.load.placement import Placement

NODES = [f"n{index}" for index in range(8)]


def test_agents_go_round_the_nodes_in_order() -> None:
    placement = Placement(["a", "b"])

    assert ["a", "b", "a", "b"] == [placement.place() for _ in range(4)]


def test_new_nodes_are_filled_before_full_ones() -> None:
    placement = Placement(["a", "b"])
    for _ in range(4):
        placement.place()
    placement.add(["c", "a"])

    assert ["c", "c", "a"] == [placement.place() for _ in range(3)]


def test_without_nodes_there_is_no_place() -> None:
    placement = Placement(["a"])
    placement.remove(["a"])

    assert placement.place() is None


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("place"), st.just("")),
            st.tuples(st.sampled_from(["add", "remove", "leave"]), st.sampled_from(NODES)),
        ),
        max_size=60,
    )
)
def test_an_agent_always_stands_on_a_node_with_the_fewest(steps: list[tuple[str, str]]) -> None:
    placement, counts = Placement(), Counter[str]()
    for what, node in steps:
        if what == "add":
            placement.add([node])
            counts.setdefault(node, 0)
        elif what == "remove":
            placement.remove([node])
            counts.pop(node, None)
        elif what == "leave" and counts.get(node):
            placement.take_away(node)
            counts[node] -= 1
        elif what == "place":
            placed = placement.place()
            assert (placed is None) == (not counts)
            if placed is not None:
                assert min(counts.values()) == counts[placed]
                counts[placed] += 1
