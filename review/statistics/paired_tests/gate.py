"""Decisions from intervals: quality gates, verdicts on differences, and the sample size that a decision needs."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum

from review.statistics.agreement.bootstrap import clopper_pearson

DIGITS = 9


class GateVerdict(StrEnum):
    """Verdict of a gate. ``undecided``: the limit lies inside the interval, or there is no interval."""

    PASSED = "pass"
    FAILED = "fail"
    UNDECIDED = "undecided"


def fail_under(low: float, high: float, limit: float) -> GateVerdict:
    """Compare a score's interval with the lowest acceptable score.

    The gate passes if the whole interval is at least the limit, and fails if all of it is below. Values are rounded to
    9 digits, so that 0.7 does not fail at 0.6999999999."""
    low, high, limit = (round(number, DIGITS) for number in (low, high, limit))
    if low >= limit:
        return GateVerdict.PASSED
    return GateVerdict.FAILED if high < limit else GateVerdict.UNDECIDED


def max_drop(low: float, high: float, drop: float) -> GateVerdict:
    """Compare the interval of this run minus the baseline with the largest allowed drop (not negative).

    The gate passes if the whole interval is at least ``-drop``, and fails if all of it is below."""
    if drop < 0:
        raise ValueError("the largest drop is not negative")
    return fail_under(low, high, -drop)


ERROR_RATE = 0.05
MAX_LOOKS = 10_000
# Labels or questions; larger numbers are no useful advice.
MAX_SAMPLE_SIZE = 2_000


def gate_confidence(looks: int) -> float:
    """Confidence of a gate's intervals if it is evaluated ``looks`` times.

    Each look has an equal share of the 5%. The chance of any false alarm is then at most 5%, for any dependence between
    looks (C. E. Bonferroni, 1936)."""
    return 1.0 - ERROR_RATE / looks


class Resource(StrEnum):
    """Resource that narrows an interval."""

    LABELS = "labels"
    QUESTIONS = "questions"
    # Changed questions whose answers are rated in both runs.
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class SampleRequirement:
    """Total number of a resource at which the interval would just exclude the limit, if the value stays.

    At most ``MAX_SAMPLE_SIZE``."""

    resource: Resource
    needed: int

    @classmethod
    def by_labels(cls, needed: int) -> SampleRequirement:
        return cls(Resource.LABELS, needed)


def questions_to_decide(questions: int, half_width: float, distance: float) -> SampleRequirement | None:
    """Number of questions at which the half-width equals the value's ``distance`` from the limit.

    The half-width falls with the root of their number. ``None`` above ``MAX_SAMPLE_SIZE``: the value is too close to
    the limit."""
    if distance <= 0 or half_width <= 0:
        return None
    return _requirement(Resource.QUESTIONS, questions * (half_width / distance) ** 2)


def _requirement(resource: Resource, needed: float) -> SampleRequirement | None:
    return SampleRequirement(resource, math.ceil(round(needed, 6))) if needed <= MAX_SAMPLE_SIZE else None


def answers_to_decide(rate: float, answers: int, limit: float, confidence: float = 0.95) -> SampleRequirement | None:
    """Smallest number of answers whose exact interval decides the limit, if the pass rate stays.

    ``None`` if ``MAX_SAMPLE_SIZE`` answers are not enough."""

    def decides(size: int) -> bool:
        return fail_under(*clopper_pearson(rate, size, confidence), limit) is not GateVerdict.UNDECIDED

    if not decides(MAX_SAMPLE_SIZE):
        return None
    sizes = range(answers, MAX_SAMPLE_SIZE + 1)
    return SampleRequirement(Resource.QUESTIONS, sizes[bisect_left(sizes, True, key=decides)])


def labels_to_decide(
    labels: int, frame: int, questions: int, this_run: float, like_these: float, distance: float
) -> SampleRequirement | None:
    """Number of labels or questions that decides a corrected score.

    ``this_run`` and ``like_these`` are its half-widths for both targets. The first comes from rating ``labels`` of
    ``frame`` answers and scales with ``1/n - 1/N``. The excess of the second is the variation between questions, which
    labels cannot reduce. If that alone is too wide, questions are needed."""
    if distance <= 0 or like_these <= 0:
        return None
    question_variance = max(0.0, like_these**2 - this_run**2)
    label_variance = distance**2 - question_variance
    if label_variance <= 0 or labels >= frame:
        return questions_to_decide(questions, like_these, distance)
    inverse_labels = (1.0 / labels - 1.0 / frame) * label_variance / this_run**2 if this_run > 0 else math.inf
    return _requirement(Resource.LABELS, max(labels, min(frame, 1.0 / (inverse_labels + 1.0 / frame))))


class DifferenceVerdict(StrEnum):
    """Verdict on a difference.

    ``cannot_tell``: the interval contains 0. ``alike``: the whole interval lies inside a stated margin."""

    BETTER = "better"
    WORSE = "worse"
    ALIKE = "alike"
    CANNOT_TELL = "cannot_tell"


def is_within_margin(low: float, high: float, margin: float) -> bool:
    """Return whether the whole interval of a difference lies inside the margin around 0, ends included.

    Equivalence by confidence intervals (D. J. Schuirmann, 1987, J. Pharmacokinet. Biopharm. 15), rounded to 9 digits.
    """
    low, high, margin = (round(number, DIGITS) for number in (low, high, margin))
    return -margin <= low and high <= margin


def difference_verdict(low: float, high: float) -> DifferenceVerdict:
    """Verdict from the interval of this run minus the baseline, if more is better.

    An end at 0 decides nothing. Both ends are rounded to 9 digits."""
    low, high = round(low, DIGITS), round(high, DIGITS)
    if low > 0:
        return DifferenceVerdict.BETTER
    return DifferenceVerdict.WORSE if high < 0 else DifferenceVerdict.CANNOT_TELL
