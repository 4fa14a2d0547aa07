"""Skipped answers widen the interval by the values they could have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from review.statistics.correction.corrected import corrected_component, corrected_overall
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import CorrectionOutcome, Estimate, Target
from tests.review.statistics.correction.frames import FrameAnswer, frame_of, rated, silent, unsampled, waiting, yes_no


def estimate(outcome: CorrectionOutcome) -> Estimate:
    assert isinstance(outcome, Estimate), outcome
    return outcome


def mark_skipped_as_unserved(answers: Sequence[FrameAnswer]) -> list[FrameAnswer]:
    """Mark skipped answers as unserved: an equal estimate without response bounds."""
    return [
        replace(answer, state=ReviewState.NOT_REACHED) if answer.state is ReviewState.NO_RESPONSE else answer
        for answer in answers
    ]


def uniform_answers(skipped: int) -> list[FrameAnswer]:
    """100 answers, 50 drawn; every other rated one is accepted."""
    answers = [rated(i, float(i % 3 > 0), float(i % 2)) for i in range(50 - skipped)]
    answers += [silent(50 - skipped + i, 1.0) for i in range(skipped)]
    return answers + [unsampled(50 + i, float(i % 3 > 0)) for i in range(50)]


@pytest.mark.parametrize("skipped", [1, 2, 5])
@pytest.mark.parametrize("target", list(Target))
def test_interval_runs_between_response_bounds_plus_half_widths(skipped: int, target: Target) -> None:
    # A skipped share s of the answers is worth the estimate m: 0 takes s m away, 1 adds s (1 - m).
    answers = uniform_answers(skipped)
    corrected, unserved_estimate = (
        estimate(corrected_component(yes_no(frame_answers), target))
        for frame_answers in (answers, mark_skipped_as_unserved(answers))
    )
    share = skipped / 50

    assert corrected.value == pytest.approx(unserved_estimate.value)
    assert corrected.response_bounds == pytest.approx(
        (corrected.value * (1 - share), corrected.value * (1 - share) + share)
    )
    assert corrected.low == pytest.approx(unserved_estimate.low - share * corrected.value)
    assert corrected.high == pytest.approx(unserved_estimate.high + share * (1 - corrected.value))


def test_stratum_with_skips_widens_by_its_share_of_the_frame() -> None:
    # 60 answers, 30 drawn and 3 of them skipped, all others accepted; 40 answers, 20 drawn, half accepted.
    answers = [rated(i, 1.0, 1.0, 0.5, "a") for i in range(27)] + [silent(27 + i, 1.0, 0.5, "a") for i in range(3)]
    answers += [unsampled(30 + i, 1.0, 0.5, "a") for i in range(30)]
    answers += [rated(60 + i, 0.0, float(i % 2), 0.5, "b") for i in range(20)]
    answers += [unsampled(80 + i, 0.0, 0.5, "b") for i in range(20)]
    corrected, unserved_estimate = (
        estimate(corrected_component(yes_no(frame_answers)))
        for frame_answers in (answers, mark_skipped_as_unserved(answers))
    )

    assert corrected.low == pytest.approx(unserved_estimate.low - 0.6 * 3 / 30)
    assert corrected.high == pytest.approx(unserved_estimate.high)


def test_skipped_answer_counts_by_its_inverse_probability() -> None:
    # 24 drawn with 0.8 (30 answers), 6 with 0.1 (60): the skipped one of the latter is 10 of 90 answers, not 1 of 30.
    answers = [rated(i, 1.0, float(i % 2), 0.8) for i in range(24)] + [rated(24 + i, 1.0, 1.0, 0.1) for i in range(5)]
    answers += [silent(29, 1.0, 0.1)] + [unsampled(30 + i, 1.0, 0.8) for i in range(6)]
    answers += [unsampled(36 + i, 1.0, 0.1) for i in range(54)]
    corrected = estimate(corrected_component(yes_no(answers)))

    assert corrected.response_bounds is not None
    worst_bound, best_bound = corrected.response_bounds
    assert best_bound - worst_bound == pytest.approx(10 / 90)


def test_skips_bounded_only_by_the_scale_add_nothing() -> None:
    # The judge failed on 10 answers, of which one was drawn and skipped: all of them may be anything already.
    failed = [silent(100, None, 0.1, "failed")] + [unsampled(101 + i, None, 0.1, "failed") for i in range(9)]
    answers = uniform_answers(0) + failed
    corrected, unserved_estimate = (
        estimate(corrected_component(yes_no(frame_answers)))
        for frame_answers in (answers, mark_skipped_as_unserved(answers))
    )

    assert (corrected.low, corrected.high) == (unserved_estimate.low, unserved_estimate.high)
    assert corrected.response_bounds is None


def test_overall_score_is_widened_by_each_part_with_weight_and_sign() -> None:
    parts = [
        replace(yes_no(uniform_answers(count)), name=str(count), weight=weight)
        for count, weight in ((2, 0.7), (5, -0.3))
    ]
    unserved_parts = [
        replace(part, frame=frame_of(mark_skipped_as_unserved(uniform_answers(int(part.name))))) for part in parts
    ]
    corrected, plain = estimate(corrected_overall(parts)), estimate(corrected_overall(unserved_parts))
    first, second = (estimate(corrected_component(replace(part, weight=1.0))).value for part in parts)

    assert corrected.low == pytest.approx(plain.low - 0.7 * 0.04 * first - 0.3 * 0.1 * (1 - second))
    assert corrected.high == pytest.approx(plain.high + 0.7 * 0.04 * (1 - first) + 0.3 * 0.1 * second)


def test_bounds_on_another_scale_are_its_ends() -> None:
    # 1 to 5: 50 of 100 drawn, 4 skipped
    answers = [rated(i, 3.0 + i % 3, 4.0 - i % 2) for i in range(46)] + [silent(46 + i, 3.0) for i in range(4)]
    answers += [unsampled(50 + i, 3.0 + i % 3) for i in range(50)]
    corrected = estimate(corrected_component(Component("x", frame_of(answers), 1.0, 5.0)))

    assert corrected.response_bounds == pytest.approx((0.92 * corrected.value + 0.08, 0.92 * corrected.value + 0.4))
    assert corrected.low < corrected.response_bounds[0]
    assert corrected.high > corrected.response_bounds[1]


def test_unserved_answers_widen_nothing() -> None:
    answers = uniform_answers(0)[:45] + [waiting(45 + i, 1.0) for i in range(5)] + uniform_answers(0)[50:]
    assert estimate(corrected_component(yes_no(answers))).response_bounds is None
