"""How often does the watch take a judge for moved who has not, and how often does it find one who has?

    python -m tools.simulations.anchors [--lives 5000]

100 anchors on levels of 1 to 5. A judge gives the same answer the same level again with the chance *steady*, else one
beside it; one that moved gives 0.3 of a level more on average. *False in a year*: of judges who stay, checked monthly
against one reference, the share that any of twelve checks takes for moved. *Found*: by the first, third and twelfth
check of a year. Prints a Markdown table.
"""

from __future__ import annotations

import argparse

import numpy as np

from review.statistics.acceptance import mean_difference, significance_level
from review.statistics.agreement.statistic import Array

ANCHORS, MOVE, CHECKS = 100, 0.3, 12


def judged(random: np.random.Generator, usual: Array, steady: float, move: float = 0.0) -> Array:
    """What the judge says of answers of which it usually says ``usual``."""
    beside = usual + random.choice([-1.0, 1.0], usual.shape)
    said = np.where(random.random(usual.shape) < steady, usual, beside)
    return np.clip(said + (random.random(usual.shape) < move), 1.0, 5.0)


def moved(before: Array, now: Array, step: int, in_group: int) -> Array:
    """Which lives (first axis) the product's test takes for moved."""
    found = mean_difference(now - before, np.ones(ANCHORS), np.arange(ANCHORS) // in_group)
    return 2.0 * np.minimum(found.p_below, found.negated.p_below) < significance_level(step)


def usual(random: np.random.Generator, lives: int) -> Array:
    """Levels as judges give them: mostly 2 to 5."""
    return random.choice([1.0, 2.0, 3.0, 4.0, 5.0], (lives, ANCHORS), p=[0.1, 0.2, 0.3, 0.25, 0.15])


def false_years(lives: int, steady: float, in_group: int) -> float:
    """The share of years in which a judge who stays loses its licence."""
    random = np.random.default_rng(1)
    levels = usual(random, lives)
    before, fallen = judged(random, levels, steady), np.zeros(lives, dtype=bool)
    for step in range(1, CHECKS + 1):
        fallen |= moved(before, judged(random, levels, steady), step, in_group)
    return float(fallen.mean())


def found(lives: int, steady: float, step: int, in_group: int) -> float:
    """How often a move of 0.3 of a level is found by one check. Who gives 5 can give no more: so many more move."""
    random = np.random.default_rng(step)
    levels = usual(random, lives)
    before = judged(random, levels, steady)
    room = 1.0 - float((judged(random, levels, steady) == 5.0).mean())
    return float(moved(before, judged(random, levels, steady, MOVE / room), step, in_group).mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=5000)
    lives: int = parser.parse_args().lives
    print("| steady | groups of | false in a year | found at check 1 | 3 | 12 |\n|---|---|---|---|---|---|")
    for steady in (0.95, 0.8, 0.6):
        for in_group in (1, 5):
            shares = [found(lives, steady, step, in_group) for step in (1, 3, 12)]
            told = " | ".join(f"{share:.1%}" for share in [false_years(lives, steady, in_group), *shares])
            print(f"| {steady:.0%} | {in_group} | {told} |", flush=True)


if __name__ == "__main__":
    main()
