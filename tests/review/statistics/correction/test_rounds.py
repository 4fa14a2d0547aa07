"""Composite of review rounds: weights, variance, and rounds that cannot be estimated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from review.statistics.correction.corrected import corrected_component, corrected_overall
from review.statistics.correction.frame import Component, EarlierRound, ReviewState
from review.statistics.correction.outcome import Estimate, Method, Target, Withheld
from review.statistics.correction.rounds import RoundSize, round_weights
from tests.examples import max_examples
from tests.review.statistics.correction.frames import FrameAnswer, frame_of, wilson


def review(sizes: list[int], ratings: list[float], *, judge: list[float], planned: bool = True) -> Component:
    """Component over ``len(judge)`` answers, of which the rounds take the next ``sizes``, all rated."""
    frames, taken = [], 0
    for size in sizes:
        probability = size / (len(judge) - taken)
        answers = [
            FrameAnswer(key, value, ratings[key], ReviewState.RATED, 1.0, "certain")
            if key < taken
            else FrameAnswer(key, value, ratings[key], ReviewState.RATED, probability, "all")
            if key < taken + size
            else FrameAnswer(key, value, None, ReviewState.NOT_SAMPLED, probability, "all")
            for key, value in enumerate(judge)
        ]
        frames.append(frame_of(answers))
        taken += size
    earlier = tuple(EarlierRound(frame, planned or number == 0) for number, frame in enumerate(frames[:-1]))
    return Component("x", frames[-1], 0.0, 1.0, yes_no=True, earlier=earlier, planned=planned)


def estimate(component: Component, target: Target = Target.THIS_RUN) -> Estimate:
    outcome = corrected_component(component, target)
    assert isinstance(outcome, Estimate), outcome
    return outcome


# 200 answers to which the judge gives one value; experts accept 30 of the first 40 and 24 of the next 40.
RATINGS = [1.0] * 30 + [0.0] * 10 + [1.0] * 24 + [0.0] * 16 + [0.0] * 120


def test_two_rounds_by_hand() -> None:
    result = estimate(review([40, 40], RATINGS, judge=[1.0] * 200))
    # 160 answers are left after round 1 and 120 after round 2:
    # (1/160 - 1/200) : (1/120 - 1/160) is .375 : .625
    assert [share.weight for share in result.rounds] == pytest.approx([0.375, 0.625])
    # Round 1: 30/40. Round 2: 40/200 x .75 + 160/200 x 24/40 = .63.
    assert result.value == pytest.approx(0.375 * 0.75 + 0.625 * 0.63) == pytest.approx(54 / 80)
    variances = [
        0.375**2 * (1 - 40 / 200) * (0.75 * 0.25 * 40 / 39) / 40,
        0.625**2 * (160 / 200) ** 2 * (1 - 40 / 160) * (0.6 * 0.4 * 40 / 39) / 40,
    ]
    # A quarter of a label at either end, of which each round has its weight's share.
    unseen = [
        0.375**3 * 0.25 / 40**2 * (1 - 40 / 200) * (0.75**2 + 0.25**2),
        0.625**3 * (160 / 200) ** 2 * 0.25 / 40**2 * (1 - 40 / 160) * (0.6**2 + 0.4**2),
    ]
    freedom = sum(variances) ** 2 / sum(variance**2 / 39 for variance in variances)
    quantile = t.ppf(0.975, freedom)
    assert (result.low, result.high) == wilson(result.value, sum(variances) + sum(unseen), quantile)
    assert (result.method, result.labels) == (Method.COMPOSITE, 80)
    assert [share.labels for share in result.rounds] == [40, 40]


def test_interval_for_questions_like_these_by_hand() -> None:
    result = estimate(review([40, 40], RATINGS, judge=[1.0] * 200), Target.QUESTIONS_LIKE_THESE)
    rating = np.array(RATINGS)
    first, second = np.arange(200) < 40, (np.arange(200) >= 40) & (np.arange(200) < 80)
    inflation = (40 / 39) ** 0.5
    # Round 1 estimates .75 for every answer, round 2 knows the first 40 and estimates .6 for the others.
    of_first = first * (rating - 0.75) / 40 * inflation
    of_second = (np.where(first, rating, 0.6) - 0.63) / 200 + second * 0.8 * (rating - 0.6) / 40 * inflation
    variance = 200 / 199 * np.square(0.375 * of_first + 0.625 * of_second).sum()
    unseen = [
        0.375**3 * 0.25 / 40**2 * (1 - 40 / 200) * (0.75**2 + 0.25**2),
        0.625**3 * (160 / 200) ** 2 * 0.25 / 40**2 * (1 - 40 / 160) * (0.6**2 + 0.4**2),
    ]
    # 39 degrees of freedom of each round.
    assert (result.low, result.high) == wilson(result.value, variance + sum(unseen), t.ppf(0.975, 78))


def test_composite_is_as_wide_as_one_draw() -> None:
    two = estimate(review([40, 40], RATINGS, judge=[1.0] * 200))
    one = estimate(review([80], RATINGS, judge=[1.0] * 200))
    assert (two.high - two.low) / (one.high - one.low) == pytest.approx(1.0, abs=0.02)
    assert two.value == pytest.approx(one.value)
    assert one.rounds == ()


def test_unplanned_round_has_half_of_the_weight() -> None:
    result = estimate(review([40, 40], RATINGS, judge=[1.0] * 200, planned=False))
    assert result.value == pytest.approx(0.5 * 0.75 + 0.5 * 0.63)
    assert [(share.weight, share.planned) for share in result.rounds] == [(0.5, True), (0.5, False)]


def test_round_of_all_remaining_answers_is_exact() -> None:
    for planned in (True, False):
        result = estimate(review([40, 160], RATINGS, judge=[1.0] * 200, planned=planned))
        assert result.value == result.low == result.high == 54 / 200
        assert [share.weight for share in result.rounds] == [0.0, 1.0]


def test_round_that_cannot_be_estimated_is_left_out_with_its_reason() -> None:
    component = review([10, 40], RATINGS, judge=[1.0] * 200)
    result = estimate(component)
    # Ten labels are too few, so round 2 counts alone: 10 accepted, and 30 of 40 among the other 190.
    assert result.value == pytest.approx(10 / 200 + 190 / 200 * 30 / 40)
    assert [(share.weight, share.left_out) for share in result.rounds] == [(0.0, "too_few_labels"), (1.0, "")]
    thin = review([40, 1], RATINGS, judge=[1.0] * 200)
    assert estimate(thin).value == pytest.approx(0.75)
    assert [share.left_out for share in estimate(thin).rounds] == ["", "stratum_too_few_labels"]


def test_without_any_usable_round_the_reason_is_that_of_the_last() -> None:
    outcome = corrected_component(review([10, 1], RATINGS, judge=[1.0] * 200))
    assert isinstance(outcome, Withheld)
    assert outcome.reason == "too_few_labels"


def test_skipped_answers_widen_each_round_by_its_weight() -> None:
    component = review([40, 40], RATINGS, judge=[1.0] * 200)
    frame = component.frame
    rating, state = frame.rating.copy(), frame.state.copy()
    # One of the 40 answers of round 2 is skipped, so that 24 of 39 are accepted.
    rating[79], state[79] = np.nan, ReviewState.NO_RESPONSE
    result = estimate(replace(component, frame=replace(frame, rating=rating, state=state)))
    assert result.value == pytest.approx(0.375 * 0.75 + 0.625 * (0.15 + 0.8 * 24 / 39))
    share = 0.625 * 0.8 / 40
    assert result.response_bounds == pytest.approx(
        (result.value - share * 24 / 39, result.value + share * (1 - 24 / 39))
    )


def test_overall_score_sums_composites() -> None:
    parts = [
        replace(review([40, 40], RATINGS, judge=[1.0] * 200), name=name, weight=weight)
        for name, weight in (("a", 0.25), ("b", 0.75))
    ]
    overall = corrected_overall(parts)
    assert isinstance(overall, Estimate)
    assert overall.value == pytest.approx(54 / 80)
    assert [share.labels for share in overall.rounds] == [40, 40]
    assert [share.weight for share in overall.rounds] == pytest.approx([0.375, 0.625])


@given(
    st.integers(1, 500),
    st.lists(st.tuples(st.integers(0, 60), st.booleans(), st.booleans()), min_size=1, max_size=6),
)
@settings(max_examples=max_examples(300), deadline=None)
def test_weights_are_a_partition_of_one(frame_size: int, rounds: list[tuple[int, bool, bool]]) -> None:
    left, sizes = frame_size, []
    for reached, planned, _ in rounds:
        sizes.append(RoundSize(min(reached, left), planned))
        left -= sizes[-1].reached
    usable = [is_usable for _, _, is_usable in rounds]
    if not any(usable):
        with pytest.raises(ValueError, match="no round"):
            round_weights(frame_size, sizes, usable)
        return
    weights = round_weights(frame_size, sizes, usable)
    assert sum(weights) == pytest.approx(1.0)
    assert all(0.0 <= weight <= 1.0 for weight in weights)
    assert all(weight == 0.0 for weight, is_usable in zip(weights, usable, strict=True) if not is_usable)


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=max_examples(60), deadline=None)
def test_influence_of_the_composite_gives_the_sum_of_variances(seed: int, planned: bool) -> None:
    """Rounds whose strata are drawn by chance: each round's own interval has its variance."""
    random = np.random.default_rng(seed)
    judge = random.random(120).tolist()
    ratings = np.clip(np.array(judge) + random.normal(0, 0.2, 120), 0, 1).tolist()
    component = review([30, 30], ratings, judge=judge, planned=planned)
    rounds = [*component.earlier, EarlierRound(component.frame)]
    single = [estimate(replace(component, frame=review_round.frame, earlier=())) for review_round in rounds]
    composite = estimate(component)
    weights = [share.weight for share in composite.rounds]
    assert composite.value == pytest.approx(sum(w * part.value for w, part in zip(weights, single, strict=True)))
    assert composite.high - composite.low < max(part.high - part.low for part in single)


@pytest.mark.parametrize("planned", [True, False])
def test_composite_covers_the_truth(planned: bool) -> None:
    """600 reviews of two rounds of 25 among 150 answers; 95% minus three standard deviations is 92.3%."""
    random = np.random.default_rng(4)
    expert = random.choice([0.0, 0.25, 0.5, 0.75, 1.0], 150, p=[0.1, 0.1, 0.2, 0.3, 0.3])
    judge = np.clip(expert + random.normal(0, 0.3, 150), 0, 1)
    covered = 0
    for _ in range(600):
        order = random.permutation(150)
        component = review([25, 25], expert[order].tolist(), judge=judge[order].tolist(), planned=planned)
        result = estimate(component)
        covered += result.low <= expert.mean() <= result.high
    assert covered / 600 >= 0.923


def test_rounds_have_the_same_answers() -> None:
    component = review([40, 40], RATINGS, judge=[1.0] * 200)
    with pytest.raises(ValueError, match="same answers"):
        replace(component, frame=component.frame.take(np.arange(10)))
