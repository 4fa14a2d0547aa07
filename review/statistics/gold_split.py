"""Split of labelled answers into examples, validation and hold-out, by group and balanced in scores and categories."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Split(StrEnum):
    """Purpose of a part of a gold set."""

    # Shown to prompt authors and used in prompts.
    EXAMPLES = "examples"
    # May be used for any number of comparisons.
    VALIDATION = "validation"
    # Used by acceptance tests only.
    HOLD_OUT = "hold_out"


SPLIT_SHARES = {Split.EXAMPLES: 0.2, Split.VALIDATION: 0.3, Split.HOLD_OUT: 0.5}


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Answers that stay together: their number, category (the stratum) and mean label."""

    answers: int
    category: str
    label: float


def split_groups(groups: Mapping[str, AnswerGroup], seed: int) -> dict[str, Split]:
    """Assign each group to a split, with about 20, 30 and 50% of the answers.

    Groups are sorted by category, then by mean label, in a random direction. Equal labels are in random order. Each
    group goes to the split with the largest deficit within the category; ties go to the largest deficit overall. All
    splits therefore cover every category and every level. Without the seed, nobody can tell from the splits which of
    two labels is the lower one."""
    rng = random.Random(seed)
    shuffled = sorted(groups)
    rng.shuffle(shuffled)
    directions = {category: rng.choice((1, -1)) for category in sorted({group.category for group in groups.values()})}
    order = sorted(
        shuffled, key=lambda name: (groups[name].category, directions[groups[name].category] * groups[name].label)
    )
    overall_deficit: dict[Split, float] = dict.fromkeys(Split, 0.0)
    deficit_by_category: dict[str, dict[Split, float]] = {}
    split_by_group: dict[str, Split] = {}
    for name in order:
        group = groups[name]
        category_deficit = deficit_by_category.setdefault(group.category, dict.fromkeys(Split, 0.0))
        for split, share in SPLIT_SHARES.items():
            category_deficit[split] += share * group.answers
            overall_deficit[split] += share * group.answers
        chosen = max(Split, key=lambda split: (round(category_deficit[split], 9), overall_deficit[split]))
        category_deficit[chosen] -= group.answers
        overall_deficit[chosen] -= group.answers
        split_by_group[name] = chosen
    return split_by_group
