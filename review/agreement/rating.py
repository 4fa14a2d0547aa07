"""One expert's value for one item, as the statistics of several experts read it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

Item = Hashable
Items = Mapping[Item, Mapping[str, float | str]]  # item -> rater -> value


@dataclass(frozen=True, slots=True)
class Rating:
    """``value`` lies on the scale, or is a label; an item is rated once by a rater."""

    item: Item
    rater: str
    value: float | str


def by_item(ratings: Sequence[Rating]) -> dict[Item, dict[str, float | str]]:
    """Item -> rater -> value, in the order items first appear.

    :raises ValueError: where a rater rated an item twice; the caller chooses the occasion that counts.
    """
    found: dict[Item, dict[str, float | str]] = {}
    for rating in ratings:
        values = found.setdefault(rating.item, {})
        if rating.rater in values:
            raise ValueError(f"{rating.rater!r} rated item {rating.item!r} twice")
        values[rating.rater] = rating.value
    return found


def raters_of(items: Items) -> list[str]:
    """All raters, by name."""
    return sorted({rater for values in items.values() for rater in values})


def weights_of(items: Iterable[Item], weights: Mapping[Item, float] | None) -> list[float] | None:
    """The weights of the items in their order; ``None`` where all count the same."""
    return None if weights is None else [weights[item] for item in items]
