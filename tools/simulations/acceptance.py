"""How often is a useless judge prompt accepted, and a better one found? Simulated lives of gold sets, by the product's
own rule.

    python -m tools.simulations.acceptance [--lives 5000]

Labels are the mean of two experts. A useless candidate errs as the active version does, independently of it. *chosen*:
before each look the best of eight useless candidates by their validation loss is taken. *growing*: ten growths, each
followed by three looks at all answers so far, so that thirty looks share one budget; next to it the rate with a budget
renewed at every growth. Prints two Markdown tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from review.statistics.acceptance import mean_difference, significance_level
from review.statistics.agreement.statistic import Array

LOOKS, GROWTHS, LOOKS_PER_GROWTH, CHOICE = 10, 10, 3, 8
SPREAD = 1.0  # of the answers' quality about the middle of a scale of 1 to 5
EXPERT = 0.55  # of an expert's rating about it
Judge = Callable[[np.random.Generator, Array, float], Array]


def answer_quality(random: np.random.Generator, lives: int, n: int, in_group: int) -> Array:
    """Draw true values of answers on a scale of 1 to 5; answers of a group share half of the variance."""
    shared = np.repeat(random.standard_normal((lives, -(-n // in_group))), in_group, axis=1)[:, :n]
    own = random.standard_normal((lives, n))
    combined = (shared + own) / np.sqrt(2.0) if in_group > 1 else own
    return 3.0 + SPREAD * combined


def _levels(values: Array) -> Array:
    return np.clip(np.rint(values), 1.0, 5.0)


def by_levels(random: np.random.Generator, truth: Array, noise: float) -> Array:
    """A level of 1 to 5 that misses by normal noise."""
    return _levels(truth + noise * random.standard_normal(truth.shape))


def by_yes_no(random: np.random.Generator, truth: Array, noise: float) -> Array:
    """1 where the answer seems worth at least 3."""
    return (truth + noise * random.standard_normal(truth.shape) >= 3.0).astype(np.float64)


def by_parts(random: np.random.Generator, truth: Array, noise: float) -> Array:
    """The share of five claims that seem supported: a claim is the likelier supported the better the answer."""
    chance = 1.0 / (1.0 + np.exp(-(truth - 2.5 + noise * random.standard_normal(truth.shape))))
    return random.binomial(5, chance) / 5.0


SCALES: dict[str, Judge] = {"levels": by_levels, "yes/no": by_yes_no, "parts": by_parts}


def expert_labels(random: np.random.Generator, judge: Judge, truth: Array) -> Array:
    """The unrounded mean of two experts."""
    return (judge(random, truth, EXPERT) + judge(random, truth, EXPERT)) / 2.0


def p_values(candidate: Array, active: Array, label: Array, in_group: int) -> Array:
    """p-values of the lives (first axis) by the product's own test."""
    n = label.shape[-1]
    difference = (candidate - label) ** 2 - (active - label) ** 2
    return mean_difference(difference, np.ones(n), np.arange(n) // in_group).p_below


def false_acceptance_rate(
    judge: Judge, n: int, lives: int, *, in_group: int = 1, best_of_several: bool = False, seed: int = 0
) -> float:
    """Return the share of ten-look lives in which a useless candidate is accepted."""
    random = np.random.default_rng(seed)
    truth = answer_quality(random, lives, n, in_group)
    label, active = expert_labels(random, judge, truth), judge(random, truth, 1.0)
    accepted = np.zeros(lives, dtype=bool)
    for look in range(1, LOOKS + 1):
        candidate = judge(random, truth, 1.0)
        if (
            best_of_several
        ):  # a candidate that looks good on validation: another part of the set, independent of the hold-out
            candidate = _best_on_validation(random, judge, truth, label, candidate)
        accepted |= p_values(candidate, active, label, in_group) < significance_level(look)
    return float(accepted.mean())


def _best_on_validation(random: np.random.Generator, judge: Judge, truth: Array, label: Array, initial: Array) -> Array:
    """Return, of several useless candidates, the one with the least loss on validation answers. Each has a bias by
    which its errors on validation and hold-out correlate; a gain on one side is a loss on the other."""
    lives, n = truth.shape
    best, least = initial, np.full(lives, np.inf)
    for _ in range(CHOICE):
        elsewhere = answer_quality(random, lives, n * 3 // 5, 1)
        loss = ((judge(random, elsewhere, 1.0) - expert_labels(random, judge, elsewhere)) ** 2).mean(axis=1)
        candidate = judge(random, truth, 1.0)
        best = np.where((loss < least)[:, None], candidate, best)
        least = np.minimum(loss, least)
    return best


def growing_false_acceptance_rate(judge: Judge, n: int, lives: int, *, renew_budget: bool, seed: int = 0) -> float:
    """Return the share of lives in which a useless candidate is accepted, with ten growths to ``n`` and three looks
    after each; with ``renew_budget`` every growth renews the budget although the older groups are tested again."""
    random = np.random.default_rng(seed)
    truth = answer_quality(random, lives, n, 1)
    label, active = expert_labels(random, judge, truth), judge(random, truth, 1.0)
    accepted = np.zeros(lives, dtype=bool)
    look = 0
    for size in np.linspace(100 if n > 100 else 55, n, GROWTHS).astype(int):
        look = 0 if renew_budget else look
        for _ in range(LOOKS_PER_GROWTH):
            look += 1
            candidate = judge(random, truth[:, :size], 1.0)
            accepted |= p_values(candidate, active[:, :size], label[:, :size], 1) < significance_level(look)
    return float(accepted.mean())


def kappa(scores: Array, label: Array) -> float:
    """Cohen's kappa with quadratic weights against the label, halves up."""
    rounded = np.floor(label + 0.5)
    mean_distance = ((scores - rounded) ** 2).mean()
    chance_distance = scores.var() + rounded.var() + (scores.mean() - rounded.mean()) ** 2
    return float(1.0 - mean_distance / chance_distance)


CHANNEL_NOISE, CHANNEL_HIT = 2.0, 0.7


def channel(random: np.random.Generator, truth: Array, label: Array, skill: float) -> Array:
    """Simulate a judge of levels that hits the label in ``0.7 skill`` of the answers and otherwise misses by noise of
    ``2 (1 - skill)``: heavy tails, as real judges have. Both numbers were chosen so that the table approximates one
    measured with a channel estimated from a real judge."""
    hit = random.random(truth.shape) < CHANNEL_HIT * skill
    return np.where(hit, label, by_levels(random, truth, CHANNEL_NOISE * (1.0 - skill)))


def skill_for(target_kappa: float) -> float:
    """The skill at which that judge has this kappa."""
    truth = answer_quality(np.random.default_rng(1), 1, 200_000, 1)
    label = by_levels(np.random.default_rng(3), truth, EXPERT)
    low, high = 0.0, 1.0
    for _ in range(25):
        middle = (low + high) / 2.0
        if kappa(channel(np.random.default_rng(2), truth, label, middle), label) < target_kappa:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def power(skills: tuple[float, float], n: int, look: int, lives: int) -> float:
    """Return how often a version of the second skill is found better than one of the first at this look."""
    random = np.random.default_rng(n * 100 + look)
    truth = answer_quality(random, lives, n, 1)
    label = by_levels(random, truth, EXPERT)
    active, candidate = (channel(random, truth, label, skill) for skill in skills)
    return float((p_values(candidate, active, label, 1) < significance_level(look)).mean())


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=5000)
    lives: int = parser.parse_args().lives
    print("| scale | answers | ten looks | chosen | growing | renewed budget |\n|---|---|---|---|---|---|")
    for name, judge in SCALES.items():
        for n, in_group in ((100, 1), (200, 1), (300, 1), (304, 8)):
            rates = [
                false_acceptance_rate(judge, n, lives, in_group=in_group),
                false_acceptance_rate(judge, n, lives, in_group=in_group, best_of_several=True, seed=1),
            ]
            if in_group == 1:
                rates += [
                    growing_false_acceptance_rate(judge, n, lives, renew_budget=renew, seed=2)
                    for renew in (False, True)
                ]
            row = " | ".join(f"{share:.1%}" for share in rates)
            size = f"{n} in groups of {in_group}" if in_group > 1 else str(n)
            print(f"| {name} | {size} | {row} |{' | |' if len(rates) < 4 else ''}", flush=True)
    print("\n| kappa | answers | look 1 | look 2 | look 4 |\n|---|---|---|---|---|")
    for kappa_before, kappa_after in ((0.49, 0.55), (0.48, 0.61), (0.50, 0.67)):
        skills = skill_for(kappa_before), skill_for(kappa_after)
        for n in (100, 200, 300):
            row = " | ".join(f"{power(skills, n, look, lives):.2f}" for look in (1, 2, 4))
            print(f"| {kappa_before:.2f} → {kappa_after:.2f} | {n} | {row} |", flush=True)


if __name__ == "__main__":
    main()
