"""How often does the drift check report a judge that did not move, and how often one that did?

    python -m tools.simulations.anchors [--lives 5000]

100 anchors on levels of 1 to 5. A judge repeats its level for an answer with the chance *steady*, else it gives a
neighbouring level; a judge that moved gives 0.3 of a level more on average. *False in a year*: of judges that stay,
checked monthly against one reference, the share with any of twelve checks positive. *Found*: by the first, third and
twelfth check of a year. Prints a Markdown table."""

from __future__ import annotations

import argparse

import numpy as np

from review.statistics.acceptance import mean_difference, significance_level
from review.statistics.agreement.statistic import Array

ANCHORS, MOVE, CHECKS = 100, 0.3, 12


def simulate_scores(random: np.random.Generator, usual: Array, steady: float, move: float = 0.0) -> Array:
    """Draw scores of a judge that usually gives ``usual``."""
    neighbours = usual + random.choice([-1.0, 1.0], usual.shape)
    scores = np.where(random.random(usual.shape) < steady, usual, neighbours)
    return np.clip(scores + (random.random(usual.shape) < move), 1.0, 5.0)


def drift_detected(reference: Array, current: Array, step: int, in_group: int) -> Array:
    """Return, for each life (first axis), whether the product's test detects a drift."""
    difference = mean_difference(current - reference, np.ones(ANCHORS), np.arange(ANCHORS) // in_group)
    return 2.0 * np.minimum(difference.p_below, difference.negated.p_below) < significance_level(step)


def usual_levels(random: np.random.Generator, lives: int) -> Array:
    """Levels as judges give them: mostly 2 to 5."""
    return random.choice([1.0, 2.0, 3.0, 4.0, 5.0], (lives, ANCHORS), p=[0.1, 0.2, 0.3, 0.25, 0.15])


def false_alarm_rate(lives: int, steady: float, in_group: int) -> float:
    """Return the share of years in which a judge that stays loses its approval."""
    random = np.random.default_rng(1)
    levels = usual_levels(random, lives)
    reference, alarmed = simulate_scores(random, levels, steady), np.zeros(lives, dtype=bool)
    for step in range(1, CHECKS + 1):
        alarmed |= drift_detected(reference, simulate_scores(random, levels, steady), step, in_group)
    return float(alarmed.mean())


def detection_rate(lives: int, steady: float, step: int, in_group: int) -> float:
    """Return how often one check detects a drift of 0.3 of a level. Answers with level 5 cannot rise, so
    correspondingly more of the others do."""
    random = np.random.default_rng(step)
    levels = usual_levels(random, lives)
    reference = simulate_scores(random, levels, steady)
    headroom = 1.0 - float((simulate_scores(random, levels, steady) == 5.0).mean())
    return float(
        drift_detected(reference, simulate_scores(random, levels, steady, MOVE / headroom), step, in_group).mean()
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=5000)
    lives: int = parser.parse_args().lives
    print("| steady | groups of | false in a year | found at check 1 | 3 | 12 |\n|---|---|---|---|---|---|")
    for steady in (0.95, 0.8, 0.6):
        for in_group in (1, 5):
            rates = [detection_rate(lives, steady, step, in_group) for step in (1, 3, 12)]
            row = " | ".join(f"{share:.1%}" for share in [false_alarm_rate(lives, steady, in_group), *rates])
            print(f"| {steady:.0%} | {in_group} | {row} |", flush=True)


if __name__ == "__main__":
    main()
