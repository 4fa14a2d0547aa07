"""Column heads that sort their list."""

from __future__ import annotations

from typing import Any

from django import template

from evaluation.sorting import ListOrder

register = template.Library()


@register.inclusion_tag("components/_sortable_head.html")
def sortable_head(order: ListOrder[Any] | None, name: str, label: str, *, number: bool = False) -> dict[str, object]:
    """Head of the column with this name in the order's declaration; a plain head where a list has no order."""
    return {"head": order.head(name) if order else None, "label": label, "number": number}
