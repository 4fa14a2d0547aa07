"""Mean, lowest and highest overall score of a run's answers, for the run (its system) and by type of question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.profiles.per_answer import AnswerOverall
from evaluation.profiles.spec import OVERALL, ProfileSpec
from review.evidence.answers import RunAnswer


@dataclass(frozen=True, slots=True)
class Spread:
    """The scores of ``n`` answers, on the scale the profile's source shows them. ``category`` is empty for all."""

    category: str
    n: int
    mean: float
    lowest: float
    highest: float


def spreads(profile: ProfileSpec, answers: Sequence[RunAnswer], overall: Sequence[AnswerOverall]) -> tuple[Spread, ...]:
    """The spread over all answers first, then by category in the order they appear; none for run-mean profiles."""
    scored = [
        (answer.category, profile.report_value(OVERALL, one.value))
        for answer, one in zip(answers, overall, strict=False)
        if one.value is not None
    ]
    if not scored:
        return ()
    named = [_spread(name, [v for c, v in scored if c == name]) for name in dict.fromkeys(c for c, _ in scored)]
    return (_spread("", [value for _, value in scored]), *named)


def _spread(category: str, values: Sequence[float]) -> Spread:
    return Spread(category, len(values), math.fsum(values) / len(values), min(values), max(values))
