"""What a system that searches a graph says of its way to an answer: entities, relations, paths and communities.

Systems write these in many shapes, and what they write is hostile: whatever is not of a known shape is left out, texts
are cut, and so many of each are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST, LONGEST = 200, 200  # of each kind; characters of a name
_NAMES = ("name", "title", "label", "id", "text")
_FROM, _TO = ("source", "from", "head", "subject"), ("target", "to", "tail", "object")
_BY = ("relation", "type", "label", "predicate", "description")


@dataclass(frozen=True, slots=True)
class Relation:
    """One entity is related to another, ``by`` what (may be empty)."""

    source: str
    by: str
    target: str


@dataclass(frozen=True, slots=True)
class Graph:
    """What was told. A path is a row of relations, each beginning where the one before it ended; ``hops`` is what the
    system says, else the length of the longest path, ``None`` without either."""

    entities: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    paths: tuple[tuple[Relation, ...], ...] = ()
    communities: tuple[str, ...] = ()
    hops: int | None = None


def read_graph(said: Any) -> Graph | None:
    """The graph in an answer's metadata (``graph``); ``None`` where there is nothing of it."""
    if not isinstance(said, Mapping):
        return None
    paths = tuple(path for one in _several(said.get("paths")) if (path := _path(one)))
    hops = said.get("hops")
    known = isinstance(hops, int) and not isinstance(hops, bool) and 0 <= hops <= MOST
    found = Graph(
        entities=tuple(name for one in _several(said.get("entities")) if (name := _name(one))),
        relations=tuple(one for each in _several(said.get("relations")) if (one := _relation(each))),
        paths=paths,
        communities=tuple(name for one in _several(said.get("communities")) if (name := _name(one))),
        hops=hops if known else max(map(len, paths), default=None),
    )
    return found if found != Graph() else None


def _several(said: Any) -> Iterator[Any]:
    if isinstance(said, Sequence) and not isinstance(said, str):
        yield from said[:MOST]


def _text(said: Any) -> str:
    if isinstance(said, bool) or not isinstance(said, str | int | float):
        return ""
    text = " ".join(str(said).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _first(said: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((text for name in names if (text := _text(said.get(name)))), "")


def _name(said: Any) -> str:
    return _first(said, _NAMES) if isinstance(said, Mapping) else _text(said)


def _relation(said: Any) -> Relation | None:
    """``{source, relation, target}`` under usual names, or ``[source, relation, target]``."""
    if isinstance(said, Mapping):
        ends = [_name(next((said[name] for name in names if name in said), None)) for names in (_FROM, _TO)]
        return Relation(ends[0], _first(said, _BY), ends[1]) if all(ends) else None
    parts = [_name(one) for one in _several(said)]
    return Relation(parts[0], parts[1], parts[2]) if len(parts) == 3 and parts[0] and parts[2] else None


def _path(said: Any) -> tuple[Relation, ...]:
    """A path as a list of relations, a list of the names along it, or ``{"nodes": [...], "relations": [...]}``."""
    if isinstance(said, Mapping):
        nodes = [_name(one) for one in _several(said.get("nodes"))]
        names = [_name(one) for one in _several(said.get("relations"))]
        return _along(nodes, names)
    several = list(_several(said))
    relations = [_relation(one) for one in several]
    if several and all(relations):
        return tuple(one for one in relations if one)
    return _along([_name(one) for one in several], [])


def _along(nodes: Sequence[str], names: Sequence[str]) -> tuple[Relation, ...]:
    if len(nodes) < 2 or not all(nodes):
        return ()
    padded = [*names, *[""] * len(nodes)]
    return tuple(Relation(one, padded[at], nodes[at + 1]) for at, one in enumerate(nodes[:-1]))
