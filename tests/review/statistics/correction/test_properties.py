"""Properties of corrections for any frame, and interval coverage."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.correction.corrected import corrected_component, corrected_overall
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import Estimate, Method, Target
from review.statistics.sampling.draw import draw
from review.statistics.sampling.member import DrawParams, Member
from tests.examples import first_fast, max_examples
from tests.review.statistics.correction.frames import FrameAnswer, frame_of

STATES = st.sampled_from([ReviewState.RATED] * 6 + [ReviewState.NOT_SAMPLED] * 4 + list(ReviewState))
answers = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([1.0, 2.0, 3.5, 5.0])),
        st.sampled_from([1.0, 2.0, 4.5, 5.0]),
        STATES,
        st.sampled_from([0.1, 0.5, 1.0, None]),
        st.sampled_from(["", "", "a"]),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=70,
)


def component(rows: list[tuple], name: str = "x") -> Component:
    return Component(
        name,
        frame_of(
            [
                FrameAnswer(i, judge, y if state is ReviewState.RATED else None, state, p, stratum, group)
                for i, (judge, y, state, p, stratum, group) in enumerate(rows)
            ]
        ),
        1.0,
        5.0,
    )


@given(answers, st.sampled_from(list(Target)))
@settings(max_examples=max_examples(200), deadline=None)
def test_every_outcome_is_finite_ordered_and_on_the_scale(rows: list[tuple], target: Target) -> None:
    for outcome in (corrected_component(component(rows), target), corrected_overall([component(rows)], target)):
        json.dumps(outcome.to_dict(), allow_nan=False)
        if isinstance(outcome, Estimate):
            assert 1.0 <= outcome.low <= outcome.value <= outcome.high <= 5.0
            if target is Target.THIS_RUN and outcome.method not in {Method.CENSUS, Method.SUM}:
                assert outcome.low < outcome.high


@given(answers, st.integers(0, 99))
@settings(max_examples=max_examples(60), deadline=None)
def test_frame_order_changes_nothing(rows: list[tuple], seed: int) -> None:
    original = component(rows)
    places = list(range(len(rows)))
    random.Random(seed).shuffle(places)
    shuffled = original.frame.take(np.array(places))
    first, second = corrected_component(original), corrected_component(Component("x", shuffled, 1.0, 5.0))

    assert type(first) is type(second)
    if isinstance(first, Estimate) and isinstance(second, Estimate):
        assert (first.value, first.low, first.high) == pytest.approx((second.value, second.low, second.high))


def population(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """600 answers on 1..5 whose judge errs around the expert value, half a level too generous."""
    rng = np.random.default_rng(seed)
    expert = rng.choice([1, 2, 3, 4, 5], 600, p=[0.1, 0.1, 0.2, 0.3, 0.3]).astype(float)
    judge = np.clip(np.round(expert + 0.5 + rng.normal(0, 0.9, 600)), 1, 5)
    return judge, expert, np.abs(rng.normal(0.3, 0.2, 600))


@pytest.mark.parametrize("strategy", first_fast(["stratified", "uniform", "uncertainty"], 1))
def test_intervals_have_their_stated_coverage(strategy: str) -> None:
    # 300 draws: the standard error of a coverage of 95% is 1.3%, so 91% to 99% is three of them; the bias of a mean
    # of 300 estimates is within 3 / sqrt(300) = 17% of their standard deviation, 9% of the half-width
    judge, expert, spread = population(7)
    members = [Member(i, "", float(value)) for i, value in enumerate(judge)]
    params = DrawParams(spread=dict(enumerate(spread.tolist())))
    hits, errors, halves = 0, [], []
    for seed in range(300):
        sample = draw(members, strategy, 60, seed, params)
        frame = [
            FrameAnswer(
                answer.key,
                float(judge[answer.key]),
                float(expert[answer.key]) if answer.sampled else None,
                ReviewState.RATED if answer.sampled else ReviewState.NOT_SAMPLED,
                answer.probability,
                answer.stratum,
            )
            for answer in sample
        ]
        corrected = corrected_component(Component("x", frame_of(frame), 1.0, 5.0))
        assert isinstance(corrected, Estimate)
        hits += corrected.low <= expert.mean() <= corrected.high
        errors.append(corrected.value - expert.mean())
        halves.append((corrected.high - corrected.low) / 2)

    assert 0.91 <= hits / 300 <= 0.99
    assert abs(np.mean(errors)) < 0.1 * np.mean(halves)
    # the judge alone is off by more than any of this
    assert judge.mean() - expert.mean() > np.mean(halves)
