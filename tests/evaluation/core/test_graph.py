"""What systems say of their way through a graph, in the shapes they use, and what is no such thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.graph import MAX_ELEMENTS, MAX_NAME_LENGTH, Graph, Relation, read_graph

A_B = Relation("A", "makes", "B")
B_C = Relation("B", "", "C")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"entities": ["A", {"name": "B"}, {"id": 7}]}, Graph(entities=("A", "B", "7"))),
        ({"relations": [["A", "makes", "B"]]}, Graph(relations=(A_B,))),
        ({"relations": [{"source": "A", "type": "makes", "target": {"name": "B"}}]}, Graph(relations=(A_B,))),
        ({"relations": [{"head": "A", "predicate": "makes", "tail": "B"}]}, Graph(relations=(A_B,))),
        ({"paths": [["A", "B"]]}, Graph(paths=((Relation("A", "", "B"),),), hops=1)),
        ({"paths": [[["A", "makes", "B"], ["B", "", "C"]]]}, Graph(paths=((A_B, B_C),), hops=2)),
        ({"paths": [{"nodes": ["A", "B", "C"], "relations": ["makes"]}]}, Graph(paths=((A_B, B_C),), hops=2)),
        ({"communities": [3, "c4", {"title": "Funds"}]}, Graph(communities=("3", "c4", "Funds"))),
        ({"hops": 2}, Graph(hops=2)),
        ({"hops": 3, "paths": [["A", "B"]]}, Graph(paths=((Relation("A", "", "B"),),), hops=3)),
        ({}, None),
        (None, None),
        ("graph", None),
        ({"entities": "A", "relations": [["A", "B"]], "paths": [["A"]], "hops": True}, None),
        ({"relations": [["", "makes", "B"], {"source": "A"}], "hops": -1}, None),
    ],
)
def test_usual_shapes_are_read_and_the_rest_is_left_out(said: Any, expected: Graph | None) -> None:
    assert read_graph(said) == expected


def test_so_many_and_so_much_of_each() -> None:
    found = read_graph({"entities": ["x" * 1000] * 1000})
    assert found is not None
    assert (len(found.entities), len(found.entities[0])) == (MAX_ELEMENTS, MAX_NAME_LENGTH)
    assert found.entities[0].endswith("…")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["nodes", "relations", "source", "target", "name", "paths"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["entities", "relations", "paths", "communities", "hops"]), JSON))
def test_whatever_a_system_says_is_read_or_left_out(said: Any) -> None:
    found = read_graph(said)
    if found is not None:
        assert all(found.entities)
        assert all(one.source and one.target for path in (found.relations, *found.paths) for one in path)
