"""What an interval settles: a gate, or a verdict on a difference.

The gate: does an interval settle the question?

Better, worse, or cannot tell: what an interval of a difference says.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum

from review.statistics.agreement.bootstrap import clopper_pearson

DIGITS = 9


class GateVerdict(StrEnum):
    """``undecided`` where the limit lies inside the interval, or there is no interval to compare."""

    PASSED = "pass"
    FAILED = "fail"
    UNDECIDED = "undecided"


def fail_under(low: float, high: float, limit: float) -> GateVerdict:
    """A score's interval against the least score wanted: passes when all of it is at least the limit, fails when all
    of it is below. Both are compared after rounding to 9 digits: 0.7 in parts must not fail at 0.6999999999."""
    low, high, limit = (round(number, DIGITS) for number in (low, high, limit))
    if low >= limit:
        return GateVerdict.PASSED
    return GateVerdict.FAILED if high < limit else GateVerdict.UNDECIDED


def max_drop(low: float, high: float, drop: float) -> GateVerdict:
    """The interval of this run minus the baseline against the largest drop allowed (not negative): passes when all
    of it is at least ``-drop``, fails when all of it is below."""
    if drop < 0:
        raise ValueError("the largest drop is not negative")
    return fail_under(low, high, -drop)


ERROR = 0.05
MOST_LOOKS = 10_000
MOST_NEEDED = 2_000  # labels or questions; advice to collect more than this helps nobody


def confidence_of(looks: int) -> float:
    """The confidence of the intervals of a gate that is asked so many times: each look spends its share of the 5%, so
    that over all of them, however they hang together, there is a false alarm in at most 5% (C. E. Bonferroni, 1936)."""
    return 1.0 - ERROR / looks


class Resource(StrEnum):
    """What an interval can be narrowed with."""

    LABELS = "labels"
    QUESTIONS = "questions"


@dataclass(frozen=True, slots=True)
class Settling:
    """About how many labels or questions in all would bring the limit to the edge of the interval, were the value to
    stay where it is: ``MOST_NEEDED`` at most."""

    resource: Resource
    needed: int

    @classmethod
    def by_labels(cls, needed: int) -> Settling:
        """So many rated answers in all."""
        return cls(Resource.LABELS, needed)


def settle_by_questions(questions: int, half_width: float, distance: float) -> Settling | None:
    """The questions for which the half-width is as small as the value's ``distance`` from the limit: it shrinks with
    the root of their number. ``None`` where the value is too close to the limit: more than ``MOST_NEEDED``."""
    if distance <= 0 or half_width <= 0:
        return None
    return _usable(Resource.QUESTIONS, questions * (half_width / distance) ** 2)


def _usable(resource: Resource, needed: float) -> Settling | None:
    return Settling(resource, math.ceil(round(needed, 6))) if needed <= MOST_NEEDED else None


def settle_pass_rate(rate: float, answers: int, limit: float, confidence: float = 0.95) -> Settling | None:
    """The smallest number of answers whose exact interval decides the limit, if the share that passes stays. ``None``
    where ``MOST_NEEDED`` answers would not."""

    def decides(size: int) -> bool:
        return fail_under(*clopper_pearson(rate, size, confidence), limit) is not GateVerdict.UNDECIDED

    if not decides(MOST_NEEDED):
        return None
    sizes = range(answers, MOST_NEEDED + 1)
    return Settling(Resource.QUESTIONS, sizes[bisect_left(sizes, True, key=decides)])


def settle_by_labels(
    labels: int, frame: int, questions: int, this_run: float, like_these: float, distance: float
) -> Settling | None:
    """What settles a corrected score. ``this_run`` and ``like_these`` are its half-widths for both targets: the first
    comes from having rated ``labels`` of ``frame`` answers and goes with ``1/n - 1/N``, what the second has more is the
    questions' own variation, which labels cannot reduce. Where that alone is too wide, questions are needed.
    """
    if distance <= 0 or like_these <= 0:
        return None
    of_questions = max(0.0, like_these**2 - this_run**2)
    allowed = distance**2 - of_questions
    if allowed <= 0 or labels >= frame:
        return settle_by_questions(questions, like_these, distance)
    spread = (1.0 / labels - 1.0 / frame) * allowed / this_run**2 if this_run > 0 else math.inf
    return _usable(Resource.LABELS, max(labels, min(frame, 1.0 / (spread + 1.0 / frame))))


class Verdict(StrEnum):
    """``cannot_tell`` where no difference lies inside the interval; ``alike`` where the whole of that interval lies
    inside a stated margin."""

    BETTER = "better"
    WORSE = "worse"
    ALIKE = "alike"
    CANNOT_TELL = "cannot_tell"


def lies_within(low: float, high: float, margin: float) -> bool:
    """Whether the whole interval of a difference lies inside the margin around 0, whose ends belong to it: equivalence
    by confidence intervals (D. J. Schuirmann, 1987, J. Pharmacokinet. Biopharm. 15). Rounded to 9 digits."""
    low, high, margin = (round(number, DIGITS) for number in (low, high, margin))
    return -margin <= low and high <= margin


def verdict_of(low: float, high: float) -> Verdict:
    """What the interval of this run minus the baseline says, more being better. An end at 0 tells nothing; both are
    compared after rounding to 9 digits."""
    low, high = round(low, DIGITS), round(high, DIGITS)
    if low > 0:
        return Verdict.BETTER
    return Verdict.WORSE if high < 0 else Verdict.CANNOT_TELL
