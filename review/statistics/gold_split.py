"""Splitting labelled answers once, by group, into examples, validation and hold-out, alike in scores and categories."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Split(StrEnum):
    """What a part of a gold set may be used for."""

    EXAMPLES = "examples"  # shown to whoever writes a prompt, and in prompts
    VALIDATION = "validation"  # compared on as often as one likes
    HOLD_OUT = "hold_out"  # for acceptance alone


SHARES = {Split.EXAMPLES: 0.2, Split.VALIDATION: 0.3, Split.HOLD_OUT: 0.5}


@dataclass(frozen=True, slots=True)
class Group:
    """Answers that stay together: how many there are, their stratum (category), and their mean label."""

    answers: int
    category: str
    label: float


def split_groups(groups: Mapping[str, Group], seed: int) -> dict[str, Split]:
    """The part of each group, about 20, 30 and 50% of the answers.

    The groups go by category and within it by mean label, upwards or downwards by chance, those of equal label in a
    seeded random order, and each goes to the part that then lacks the most of its share, counted within the category
    first and over all where that is equal. So every category and every level is divided alike. Without the seed the
    parts do not tell which of two labels is the lower one.
    """
    chance = random.Random(seed)
    shuffled = sorted(groups)
    chance.shuffle(shuffled)
    signs = {category: chance.choice((1, -1)) for category in sorted({one.category for one in groups.values()})}
    order = sorted(
        shuffled, key=lambda name: (groups[name].category, signs[groups[name].category] * groups[name].label)
    )
    overall: dict[Split, float] = dict.fromkeys(Split, 0.0)
    inside: dict[str, dict[Split, float]] = {}
    found: dict[str, Split] = {}
    for name in order:
        one = groups[name]
        here = inside.setdefault(one.category, dict.fromkeys(Split, 0.0))
        for part, share in SHARES.items():
            here[part] += share * one.answers
            overall[part] += share * one.answers
        chosen = max(Split, key=lambda part: (round(here[part], 9), overall[part]))
        here[chosen] -= one.answers
        overall[chosen] -= one.answers
        found[name] = chosen
    return found
