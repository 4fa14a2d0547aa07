"""The difference of two corrected scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from review.correction.corrected import corrected_overall
from review.correction.frame import Component
from review.correction.outcome import Outcome, Target


def corrected_difference(
    ours: Sequence[Component],
    baseline: Sequence[Component],
    target: Target = Target.QUESTIONS_LIKE_THESE,
    confidence: float = 0.95,
) -> Outcome:
    """This run's corrected score minus the baseline's. Answers to one question must share a group (its id where it
    has none), so that what makes a question hard for both takes itself out of the interval; the runs' labels are
    different answers' labels.

    Withheld where either score is; components of the baseline are named with ``baseline:`` in front.
    """
    signed = [_apart(one, "", 1.0) for one in ours] + [_apart(one, "baseline:", -1.0) for one in baseline]
    return corrected_overall(signed, target, confidence)


def _apart(component: Component, prefix: str, sign: float) -> Component:
    answers = [replace(answer, key=(prefix, answer.key)) for answer in component.answers]
    return replace(component, name=prefix + component.name, answers=answers, weight=sign * component.weight)
