"""Graph traces of systems: usual shapes are read, everything else is ignored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.graph import MAX_ELEMENTS, MAX_NAME_LENGTH, Graph, Relation, read_graph

A_MAKES_B = Relation("A", "makes", "B")
B_TO_C = Relation("B", "", "C")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"entities": ["A", {"name": "B"}, {"id": 7}]}, Graph(entities=("A", "B", "7"))),
        ({"relations": [["A", "makes", "B"]]}, Graph(relations=(A_MAKES_B,))),
        ({"relations": [{"source": "A", "type": "makes", "target": {"name": "B"}}]}, Graph(relations=(A_MAKES_B,))),
        ({"relations": [{"head": "A", "predicate": "makes", "tail": "B"}]}, Graph(relations=(A_MAKES_B,))),
        ({"paths": [["A", "B"]]}, Graph(paths=((Relation("A", "", "B"),),), hops=1)),
        ({"paths": [[["A", "makes", "B"], ["B", "", "C"]]]}, Graph(paths=((A_MAKES_B, B_TO_C),), hops=2)),
        ({"paths": [{"nodes": ["A", "B", "C"], "relations": ["makes"]}]}, Graph(paths=((A_MAKES_B, B_TO_C),), hops=2)),
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
def test_known_graph_shapes_are_read_and_the_rest_is_ignored(said: Any, expected: Graph | None) -> None:
    assert read_graph(said) == expected


def test_elements_and_names_are_limited() -> None:
    graph = read_graph({"entities": ["x" * 1000] * 1000})
    assert graph is not None
    assert (len(graph.entities), len(graph.entities[0])) == (MAX_ELEMENTS, MAX_NAME_LENGTH)
    assert graph.entities[0].endswith("…")


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
def test_any_json_is_read_or_ignored(trace: Any) -> None:
    graph = read_graph(trace)
    if graph is not None:
        assert all(graph.entities)
        assert all(relation.source and relation.target for path in (graph.relations, *graph.paths) for relation in path)
