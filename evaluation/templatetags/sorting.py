"""Column heads that sort their list, and the order of the list from the query parameter ``order``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from django import template
from django.http import QueryDict

register = template.Library()

Column = TypeVar("Column")


class SortableHead(NamedTuple):
    """Link of a column head. ``direction`` is a value of ``aria-sort``; empty unless the list is sorted by it."""

    url: str
    direction: str


class ListOrder(Generic[Column]):
    """Order chosen by the reader: ``name`` or ``-name`` of a column. Without a known name the list keeps its own order.

    ``columns`` maps names to what sorts the list: fields of a query set, or functions of a row."""

    def __init__(self, data: QueryDict, columns: Mapping[str, Column]) -> None:
        order = data.get("order", "")
        self.column = columns.get(order.removeprefix("-"))
        self.value = order if self.column else ""
        self.descending = self.value.startswith("-")
        self._data = data

    def head(self, name: str) -> SortableHead:
        """Head whose link sorts in ascending order, then in descending order, then not at all."""
        if self.value == name:
            return SortableHead(self.query(order=f"-{name}"), "ascending")
        if self.value == f"-{name}":
            return SortableHead(self.query(), "descending")
        return SortableHead(self.query(order=name), "")

    def page_query(self, page: int) -> str:
        """Query string of another page in this order."""
        return self.query(order=self.value, page=str(page))

    def query(self, **params: str) -> str:
        """Query string with the other parameters of the list, such as filters."""
        query = self._data.copy()
        for name in ("order", "page", *params):
            query.pop(name, None)
        query.update({name: value for name, value in params.items() if value})
        return f"?{query.urlencode()}"


def sorted_fields(order: ListOrder[str]) -> list[str]:
    """Arguments of ``order_by`` for the chosen column; empty without one."""
    return [f"-{order.column}" if order.descending else order.column] if order.column else []


@register.inclusion_tag("components/_sortable_head.html")
def sortable_head(order: ListOrder[Any] | None, name: str, label: str, *, number: bool = False) -> dict[str, object]:
    """Head of the column with this name in the order's declaration; a plain head where a list has no order."""
    return {"head": order.head(name) if order else None, "label": label, "number": number}
