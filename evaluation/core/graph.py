"""Graph metadata of GraphRAG answers: entities, relations, paths and communities.

Systems write these in many shapes, and the input is untrusted: unknown shapes are skipped, texts are cut, and the
number of elements is limited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Limits of elements of each kind, and of characters of a name.
MAX_ELEMENTS, MAX_NAME_LENGTH = 200, 200
_NAME_KEYS = ("name", "title", "label", "id", "text")
_SOURCE_KEYS, _TARGET_KEYS = ("source", "from", "head", "subject"), ("target", "to", "tail", "object")
_RELATION_KEYS = ("relation", "type", "label", "predicate", "description")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between two entities; ``label`` may be empty."""

    source: str
    label: str
    target: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Graph of an answer.

    A path is a sequence of relations, each starting at the previous target. ``hops`` is the system's own number, else
    the length of the longest path, ``None`` if there is neither."""

    entities: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    paths: tuple[tuple[Relation, ...], ...] = ()
    communities: tuple[str, ...] = ()
    hops: int | None = None


def read_graph(raw: Any) -> Graph | None:
    """Read the graph in an answer's metadata (``graph``); ``None`` if it is empty."""
    if not isinstance(raw, Mapping):
        return None
    paths = tuple(path for raw_path in _elements(raw.get("paths")) if (path := _path(raw_path)))
    hops = raw.get("hops")
    has_hops = isinstance(hops, int) and not isinstance(hops, bool) and 0 <= hops <= MAX_ELEMENTS
    graph = Graph(
        entities=tuple(name for raw_entity in _elements(raw.get("entities")) if (name := _name(raw_entity))),
        relations=tuple(
            relation for raw_relation in _elements(raw.get("relations")) if (relation := _relation(raw_relation))
        ),
        paths=paths,
        communities=tuple(
            name for raw_community in _elements(raw.get("communities")) if (name := _name(raw_community))
        ),
        hops=hops if has_hops else max(map(len, paths), default=None),
    )
    return graph if graph != Graph() else None


def _elements(raw: Any) -> Iterator[Any]:
    if isinstance(raw, Sequence) and not isinstance(raw, str):
        yield from raw[:MAX_ELEMENTS]


def _text(raw: Any) -> str:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return ""
    text = " ".join(str(raw).split())
    return text if len(text) <= MAX_NAME_LENGTH else f"{text[: MAX_NAME_LENGTH - 1]}…"


def _first_text(raw: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((text for name in keys if (text := _text(raw.get(name)))), "")


def _name(raw: Any) -> str:
    return _first_text(raw, _NAME_KEYS) if isinstance(raw, Mapping) else _text(raw)


def _relation(raw: Any) -> Relation | None:
    """Read ``{source, relation, target}`` under common names, or ``[source, relation, target]``."""
    if isinstance(raw, Mapping):
        ends = [
            _name(next((raw[name] for name in names if name in raw), None)) for names in (_SOURCE_KEYS, _TARGET_KEYS)
        ]
        return Relation(ends[0], _first_text(raw, _RELATION_KEYS), ends[1]) if all(ends) else None
    parts = [_name(raw_part) for raw_part in _elements(raw)]
    return Relation(parts[0], parts[1], parts[2]) if len(parts) == 3 and parts[0] and parts[2] else None


def _path(raw: Any) -> tuple[Relation, ...]:
    """Read a path: a list of relations, a list of names, or ``{"nodes": [...], "relations": [...]}``."""
    if isinstance(raw, Mapping):
        nodes = [_name(raw_node) for raw_node in _elements(raw.get("nodes"))]
        labels = [_name(raw_relation) for raw_relation in _elements(raw.get("relations"))]
        return _relations_along(nodes, labels)
    elements = list(_elements(raw))
    relations = [_relation(element) for element in elements]
    if elements and all(relations):
        return tuple(relation for relation in relations if relation)
    return _relations_along([_name(element) for element in elements], [])


def _relations_along(nodes: Sequence[str], labels: Sequence[str]) -> tuple[Relation, ...]:
    if len(nodes) < 2 or not all(nodes):
        return ()
    padded_labels = [*labels, *[""] * len(nodes)]
    return tuple(Relation(source, padded_labels[i], nodes[i + 1]) for i, source in enumerate(nodes[:-1]))
