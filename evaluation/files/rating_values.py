"""A value as a file gives it, on the scale of its metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.core.errors import Refused
from evaluation.core.scales import Scale, ScaleKind
from evaluation.files.tree import Kind, Node
from evaluation.files.values import boolean_of, number_of


def value_on(node: Node, scale: Scale) -> float | str | None:
    """The number, or the declared label of a class, that the node stands for; ``None`` when it is off the scale.

    Booleans count for ``yes_no`` alone: nobody can say which level ``true`` is.
    """
    if scale.kind is ScaleKind.CLASS:
        return _label(node, scale.labels)
    number = number_of(node)
    if number is None and scale.kind is ScaleKind.YES_NO:
        truth = boolean_of(node)
        number = None if truth is None else float(truth)
    return number if number is not None and scale.holds(number) else None


def _label(node: Node, labels: Sequence[str]) -> str | None:
    """The declared label, the only one that differs from the text in nothing but case."""
    if node.kind in {Kind.LIST, Kind.MAP}:
        return None
    spelled = (node.spelling or str(node.value)).strip()
    if spelled in labels:
        return spelled
    near = [label for label in labels if label.casefold() == spelled.casefold()]
    return near[0] if len(near) == 1 else None


def read_definitions(definitions: Sequence[str]) -> Mapping[str, Scale]:
    """Scales of unknown metrics from ``NAME=1..5``, ``NAME=0..1:real``, ``NAME=bool``, ``NAME=class:a|b``.

    :raises Refused: ``bad_definition`` with the definition that is none, or that defines a name a second time.
    """
    scales: dict[str, Scale] = {}
    for definition in definitions:
        name, equals, scale = definition.partition("=")
        if not equals or not name.strip() or name.strip() in scales:
            raise Refused("bad_definition", definition=definition)
        try:
            scales[name.strip()] = Scale.parse(scale)
        except ValueError as error:
            raise Refused("bad_definition", definition=definition) from error
    return scales
