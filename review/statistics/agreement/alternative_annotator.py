"""The alternative-annotator test: may the judge stand in for one of the experts?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.core.registry import Scale, ScaleKind
from review.statistics.agreement.rating import Item, Rating, by_item, raters_of
from review.statistics.agreement.statistic import Undefined

LEAST_RATERS = 3
LEAST_ITEMS = 30  # with fewer items of an expert the t-test is not to be trusted; the expert is left out
EXPERT_DISCOUNT = 0.2  # the authors' epsilon for experts: what a judge may be worse and still pay off
FALSE_DISCOVERIES = 0.05
PASSING_RATE = 0.5


@dataclass(frozen=True, slots=True)
class LeftOutExpert:
    """One expert left out: on which share of the items the judge was at least as near to the others as he
    (``judge_wins``), and the reverse; ``p_value`` of the judge being worse by ``epsilon`` or more."""

    items: int
    judge_wins: float
    expert_wins: float
    p_value: float
    rejected: bool


@dataclass(frozen=True, slots=True)
class AlternativeAnnotatorTest:
    """``winning_rate``: share of experts for whom the judge is shown to be a fair replacement; ``passed`` from 0.5
    on. ``advantage``: mean probability that the judge is at least as near to the others as an expert is."""

    experts: Mapping[str, LeftOutExpert]
    winning_rate: float | None
    advantage: float | None
    passed: bool | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "winning_rate": self.winning_rate,
            "advantage": self.advantage,
            "passed": self.passed,
            "reason": self.reason,
            "experts": {
                rater: {
                    "items": one.items,
                    "judge_wins": one.judge_wins,
                    "expert_wins": one.expert_wins,
                    "p_value": one.p_value,
                    "rejected": one.rejected,
                }
                for rater, one in self.experts.items()
            },
        }


def alternative_annotator_test(
    ratings: Sequence[Rating], judge: Mapping[Item, float | str], scale: Scale, epsilon: float = EXPERT_DISCOUNT
) -> AlternativeAnnotatorTest:
    """For each expert j and item, is the judge at least as near to the remaining experts as j is? Nearness is the
    share of equal labels for classes and yes/no, the negative root mean squared difference otherwise.

    Per expert a one-sided paired t-test of ``mean(expert wins - judge wins) < epsilon``, Benjamini-Yekutieli over
    the experts at 5%. Source: N. Calderon, R. Reichart, R. Dror (2025), arXiv 2501.10970. Needs 3 experts with 30
    items each that the judge scored and another expert rated; otherwise it says so.
    """
    items = {item: values for item, values in by_item(ratings).items() if item in judge and len(values) > 1}
    wins: dict[str, tuple[list[bool], list[bool]]] = {}
    for rater in raters_of(items):
        pairs = [_contest(values, rater, judge[item], scale) for item, values in items.items() if rater in values]
        if len(pairs) >= LEAST_ITEMS:
            wins[rater] = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
    if len(wins) < LEAST_RATERS:
        return AlternativeAnnotatorTest({}, None, None, None, str(Undefined.TOO_FEW_RATERS))
    p_values = {rater: _p_value(ours, theirs, epsilon) for rater, (ours, theirs) in wins.items()}
    rejected = _benjamini_yekutieli(p_values, FALSE_DISCOVERIES)
    experts = {
        rater: LeftOutExpert(
            len(ours), sum(ours) / len(ours), sum(theirs) / len(theirs), p_values[rater], rater in rejected
        )
        for rater, (ours, theirs) in wins.items()
    }
    rate = len(rejected) / len(experts)
    advantage = sum(one.judge_wins for one in experts.values()) / len(experts)
    return AlternativeAnnotatorTest(experts, rate, advantage, rate >= PASSING_RATE, "")


def _contest(values: Mapping[str, float | str], rater: str, judged: float | str, scale: Scale) -> tuple[bool, bool]:
    """Whether the judge is at least as near to the others as the left-out expert, and the reverse."""
    others = [value for name, value in values.items() if name != rater]
    ours, theirs = _nearness(judged, others, scale), _nearness(values[rater], others, scale)
    return ours >= theirs - 1e-12, theirs >= ours - 1e-12


def _nearness(value: float | str, others: Sequence[float | str], scale: Scale) -> float:
    if scale.kind in {ScaleKind.CLASS, ScaleKind.YES_NO}:
        return sum(value == other for other in others) / len(others)
    return -math.sqrt(sum((float(value) - float(other)) ** 2 for other in others) / len(others))


def _p_value(judge_wins: Sequence[bool], expert_wins: Sequence[bool], epsilon: float) -> float:
    """One-sided p of ``mean(expert - judge) >= epsilon``; 0 or 1 where the difference never varies."""
    from scipy.special import stdtr  # costs 0.2 s at import

    lead = np.array(expert_wins, dtype=np.float64) - np.array(judge_wins, dtype=np.float64)
    spread = float(lead.std(ddof=1))
    if spread == 0.0:
        return 0.0 if float(lead[0]) < epsilon else 1.0
    return float(stdtr(len(lead) - 1, (float(lead.mean()) - epsilon) / (spread / math.sqrt(len(lead)))))


def _benjamini_yekutieli(p_values: Mapping[str, float], rate: float) -> set[str]:
    """The hypotheses rejected with a false discovery rate under any dependence. Source: Y. Benjamini and
    D. Yekutieli (2001), Ann. Stat. 29."""
    ranked = sorted(p_values, key=lambda name: p_values[name])
    penalty = sum(1.0 / rank for rank in range(1, len(ranked) + 1))
    last = max(
        (rank for rank, name in enumerate(ranked, start=1) if p_values[name] <= rank * rate / (len(ranked) * penalty)),
        default=0,
    )
    return set(ranked[:last])
