"""Giving items to people: in turn, to whoever has least to do, or to those whose field it is. Pure and repeatable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.core.errors import Refused


def in_turn(needs: Sequence[int], people: Sequence[int]) -> list[tuple[int, ...]]:
    """The people of each item, one after the other round the table; ``needs`` are how many different ones each takes.

    :raises ValueError: when an item needs more people than there are.
    """
    _check(needs, people)
    dealt: list[tuple[int, ...]] = []
    place = 0
    for need in needs:
        dealt.append(tuple(people[(place + i) % len(people)] for i in range(need)))
        place += need
    return dealt


def by_load(needs: Sequence[int], people: Sequence[int], loads: Mapping[int, int]) -> list[tuple[int, ...]]:
    """The people of each item: those who have least to do at that moment, their items so far counted (``loads``: what
    they had before); where equal, in the order of ``people``.

    :raises ValueError: when an item needs more people than there are.
    """
    _check(needs, people)
    having = {one: loads.get(one, 0) for one in people}
    return [_least(need, people, having) for need in needs]


def by_field(
    needs: Sequence[int],
    tags: Sequence[Sequence[str]],
    people: Sequence[int],
    fields: Mapping[str, Sequence[int]],
    loads: Mapping[int, int],
) -> list[tuple[int, ...]]:
    """The people of each item: of those who have one of its tags, whoever has least to do; an item with no such tag
    goes to whoever of all has least to do.

    :raises Refused: ``too_few_for_tag`` where an item needs more people than have its tags.
    """
    _check(needs, people)
    having = {one: loads.get(one, 0) for one in people}
    dealt = []
    for need, own in zip(needs, tags, strict=True):
        fitting = {one for tag in own for one in fields.get(tag, ())}
        able = [one for one in people if one in fitting] or list(people)
        if len(able) < need:
            raise Refused("too_few_for_tag", tags=sorted(set(own) & set(fields)), needed=need, people=len(able))
        dealt.append(_least(need, able, having))
    return dealt


def _least(need: int, able: Sequence[int], having: dict[int, int]) -> tuple[int, ...]:
    order = {one: place for place, one in enumerate(able)}
    chosen = tuple(sorted(able, key=lambda one: (having[one], order[one]))[:need])
    for one in chosen:
        having[one] += 1
    return chosen


def _check(needs: Sequence[int], people: Sequence[int]) -> None:
    if needs and max(needs) > len(people):
        raise ValueError("an item needs more people than there are")
