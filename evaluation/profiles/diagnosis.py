"""What high and low figures mean together: the field of a profile's table that an answer or a run falls into."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.profiles.interpretation import Axis, Cell, Table
from evaluation.profiles.thresholds import meets


def is_high(axis: Axis, values: Mapping[str, float | None]) -> bool | None:
    """Whether every metric of the axis reaches its start. ``None``, unknown, where one has no value, unless another is
    low already."""
    found = [None if (value := values.get(name)) is None else meets(value, axis.at_least) for name in axis.metrics]
    if False in found:
        return False
    return None if None in found else True


def cell_of(table: Table, values: Mapping[str, float | None]) -> Cell | None:
    """The field of the table; ``None`` where an axis is unknown."""
    sides = {axis.name: is_high(axis, values) for axis in table.axes}
    if None in sides.values():
        return None
    high = {name for name, side in sides.items() if side}
    return next(cell for cell in table.cells if set(cell.high) == high)
