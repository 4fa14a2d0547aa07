"""The runs in order, how sure the order is, and how far it hangs on the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext

from evaluation.wording import numbers
from review.comparisons.order import Order

MOST_TURNS = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A run in the order."""

    place: int
    run_id: int
    name: str
    score: str
    best: str
    ahead: str


@dataclass(frozen=True, slots=True)
class OrderCard:
    """The runs in order, how sure it is, and how far it hangs on the weights."""

    places: tuple[Place, ...]
    questions: int
    holds: str
    remarks: tuple[str, ...]


def order_card(order: Order, names: Mapping[int, str]) -> OrderCard:
    """The card of an order; ``names`` are the runs' by their keys."""
    places = tuple(
        Place(
            at,
            int(one.run),
            names[int(one.run)],
            numbers.plain(one.mean, 3),
            numbers.share(one.best),
            "" if one.ahead is None else numbers.share(one.ahead),
        )
        for at, one in enumerate(order.ranking.order, start=1)
    )
    holds = "" if order.ranking.holds is None else numbers.share(order.ranking.holds)
    return OrderCard(places, order.ranking.questions, holds, tuple(_weights(order, names)))


def _weights(order: Order, names: Mapping[int, str]) -> list[str]:
    found = order.sensitivity
    if found is None:
        return []
    sentence = gettext("With weights from half to twice those of the profile the order stays in %(share)s of cases.")
    remarks = [sentence % {"share": numbers.share(found.holds)}]
    for turn in found.turns[:MOST_TURNS]:
        facts = {
            "ahead": names[int(turn.ahead)],
            "behind": names[int(turn.behind)],
            "part": turn.part,
            "weight": numbers.plain(turn.weight),
            "at": numbers.plain(turn.at),
        }
        sentence = gettext("%(behind)s would overtake %(ahead)s if %(part)s weighed %(at)s instead of %(weight)s.")
        remarks.append(sentence % facts)
    if not found.turns:
        remarks.append(gettext("No change of a single weight turns neighbours round."))
    return remarks
