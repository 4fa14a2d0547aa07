"""What to spend next: more questions, more reviewers, more ratings of an answer, or more repeats of the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from review.statistics.agreement.variance import Source, VarianceSplit


class Spend(StrEnum):
    """What more can be had of."""

    QUESTIONS = "questions"
    REVIEWERS = "reviewers"
    RATINGS = "ratings"  # more ratings, best of answers that nobody has rated
    REPEATS = "repeats"  # more judgements of each answer by the judge


@dataclass(frozen=True, slots=True)
class Advice:
    """What each kind of spending could take off the variance of a mean, as shares that sum to 1; ``first`` is the
    largest, ``None`` where nothing varies or nothing is known. Doubling what it names takes away half of its share."""

    shares: Mapping[Spend, float]
    first: Spend | None


def what_next(split: VarianceSplit) -> Advice:
    """The parts of the variance of a corrected mean over answers like these by people like these: the answers'
    differences over the answers judged, leniency over the reviewers, the judge's error over the answers rated, taste
    and rest over the ratings, the judge's noise over its scores (the design study of generalizability theory;
    R. L. Brennan, 2001, Generalizability Theory, 4). A source that is not known counts for nothing: the overlap or the
    repeats that would tell it come first, and are named where it is reported."""
    of, design = split.variances, split.design
    if not design.answers:
        return Advice({}, None)
    ratings = design.answers * design.ratings
    parts = {
        Spend.QUESTIONS: of.get(Source.ANSWERS, 0.0) / max(design.answers, design.judged),
        Spend.REVIEWERS: of.get(Source.REVIEWERS, 0.0) / max(1, design.reviewers),
        Spend.RATINGS: of.get(Source.JUDGE, 0.0) / design.answers
        + (of.get(Source.TASTE, 0.0) + of.get(Source.REST, 0.0)) / ratings,
        Spend.REPEATS: of.get(Source.NOISE, 0.0) / max(1.0, design.judged * design.repeats),
    }
    total = sum(parts.values())
    if total <= 0:
        return Advice({}, None)
    return Advice({spend: part / total for spend, part in parts.items()}, max(parts, key=lambda spend: parts[spend]))
