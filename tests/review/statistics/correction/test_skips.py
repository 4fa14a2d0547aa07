"""Answers that reviewers skip widen the interval by what they could have been."""

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


def unserved(answers: Sequence[FrameAnswer]) -> list[FrameAnswer]:
    """The answers with the skipped ones not served yet: an equal estimate, without bounds."""
    return [
        replace(answer, state=ReviewState.NOT_REACHED) if answer.state is ReviewState.NO_RESPONSE else answer
        for answer in answers
    ]


def uniform(skipped: int) -> list[FrameAnswer]:
    """100 answers, 50 drawn: of those rated every other one is accepted."""
    answers = [rated(at, float(at % 3 > 0), float(at % 2)) for at in range(50 - skipped)]
    answers += [silent(50 - skipped + at, 1.0) for at in range(skipped)]
    return answers + [unsampled(50 + at, float(at % 3 > 0)) for at in range(50)]


@pytest.mark.parametrize("skipped", [1, 2, 5])
@pytest.mark.parametrize("target", list(Target))
def test_interval_runs_from_worst_bound_to_best_bound_and_the_half_widths_beyond(skipped: int, target: Target) -> None:
    # A skipped share s of the answers is worth the estimate m: 0 takes s m away, 1 adds s (1 - m).
    answers = uniform(skipped)
    found, without = (estimate(corrected_component(yes_no(each), target)) for each in (answers, unserved(answers)))
    share = skipped / 50

    assert found.value == pytest.approx(without.value)
    assert found.response_bounds == pytest.approx((found.value * (1 - share), found.value * (1 - share) + share))
    assert found.low == pytest.approx(without.low - share * found.value)
    assert found.high == pytest.approx(without.high + share * (1 - found.value))


def test_a_stratum_with_skips_widens_by_its_share_of_the_frame() -> None:
    # 60 answers, 30 drawn and 3 of them skipped, all others accepted; 40 answers, 20 drawn, half accepted.
    answers = [rated(at, 1.0, 1.0, 0.5, "a") for at in range(27)] + [silent(27 + at, 1.0, 0.5, "a") for at in range(3)]
    answers += [unsampled(30 + at, 1.0, 0.5, "a") for at in range(30)]
    answers += [rated(60 + at, 0.0, float(at % 2), 0.5, "b") for at in range(20)]
    answers += [unsampled(80 + at, 0.0, 0.5, "b") for at in range(20)]
    found, without = (estimate(corrected_component(yes_no(each))) for each in (answers, unserved(answers)))

    assert found.low == pytest.approx(without.low - 0.6 * 3 / 30)
    assert found.high == pytest.approx(without.high)


def test_a_skipped_answer_stands_for_as_many_as_its_probability_says() -> None:
    # 24 drawn with 0.8 (30 answers), 6 with 0.1 (60): the skipped one of the latter is 10 of 90 answers, not 1 of 30.
    answers = [rated(at, 1.0, float(at % 2), 0.8) for at in range(24)] + [
        rated(24 + at, 1.0, 1.0, 0.1) for at in range(5)
    ]
    answers += [silent(29, 1.0, 0.1)] + [unsampled(30 + at, 1.0, 0.8) for at in range(6)]
    answers += [unsampled(36 + at, 1.0, 0.1) for at in range(54)]
    found = estimate(corrected_component(yes_no(answers)))

    assert found.response_bounds is not None
    worst, best = found.response_bounds
    assert best - worst == pytest.approx(10 / 90)


def test_skips_where_only_the_scale_bounds_the_answers_add_nothing() -> None:
    # The judge failed on 10 answers, of which one was drawn and skipped: all of them may be anything already.
    failed = [silent(100, None, 0.1, "failed")] + [unsampled(101 + at, None, 0.1, "failed") for at in range(9)]
    answers = uniform(0) + failed
    found, without = (estimate(corrected_component(yes_no(each))) for each in (answers, unserved(answers)))

    assert (found.low, found.high) == (without.low, without.high)
    assert found.response_bounds is None


def test_the_whole_score_is_widened_by_each_part_with_its_weight_and_sign() -> None:
    parts = [replace(yes_no(uniform(count)), name=str(count), weight=weight) for count, weight in ((2, 0.7), (5, -0.3))]
    without = [replace(part, frame=frame_of(unserved(uniform(int(part.name))))) for part in parts]
    found, plain = estimate(corrected_overall(parts)), estimate(corrected_overall(without))
    first, second = (estimate(corrected_component(replace(part, weight=1.0))).value for part in parts)

    assert found.low == pytest.approx(plain.low - 0.7 * 0.04 * first - 0.3 * 0.1 * (1 - second))
    assert found.high == pytest.approx(plain.high + 0.7 * 0.04 * (1 - first) + 0.3 * 0.1 * second)


def test_on_another_scale_the_bounds_are_its_ends() -> None:
    # 1 to 5: 50 of 100 drawn, 4 skipped
    answers = [rated(at, 3.0 + at % 3, 4.0 - at % 2) for at in range(46)] + [silent(46 + at, 3.0) for at in range(4)]
    answers += [unsampled(50 + at, 3.0 + at % 3) for at in range(50)]
    found = estimate(corrected_component(Component("x", frame_of(answers), 1.0, 5.0)))

    assert found.response_bounds == pytest.approx((0.92 * found.value + 0.08, 0.92 * found.value + 0.4))
    assert found.low < found.response_bounds[0]
    assert found.high > found.response_bounds[1]


def test_answers_not_served_yet_widen_nothing() -> None:
    answers = uniform(0)[:45] + [waiting(45 + at, 1.0) for at in range(5)] + uniform(0)[50:]
    assert estimate(corrected_component(yes_no(answers))).response_bounds is None
