"""Sampling frames: valid contents and derived states."""

from __future__ import annotations

import math
from typing import Any

import pytest

from review.statistics.correction.frame import Component, ReviewState, unite_frames
from review.statistics.correction.outcome import EstimateWarning, Method, Target, WithheldReason
from tests.review.statistics.correction.frames import FrameAnswer, frame_of, rated, unsampled

RATED, WAITING = ReviewState.RATED, ReviewState.NOT_REACHED


@pytest.mark.parametrize(
    ("state", "rating", "probability", "sampled", "labelled"),
    [
        (RATED, 1.0, 0.5, True, True),
        (RATED, 1.0, 1.0, True, True),
        (RATED, 1.0, None, False, False),  # rated outside of any draw
        (WAITING, None, 0.5, True, False),
        (ReviewState.NO_RESPONSE, None, 0.5, True, False),
        (ReviewState.NOT_SAMPLED, None, 0.5, False, False),
    ],
)
def test_rating_counts_where_the_inclusion_probability_is_known(
    state: ReviewState, rating: float | None, probability: float | None, sampled: bool, labelled: bool
) -> None:
    frame = frame_of([FrameAnswer(1, 0.5, rating, state, probability)])
    assert (frame.sampled.tolist(), frame.labelled.tolist()) == ([sampled], [labelled])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rating": 1.0}, "exactly when it is rated"),
        ({"state": RATED}, "exactly when it is rated"),
        ({"probability": 0.0}, "probability of being sampled"),
        ({"probability": 1.001}, "probability of being sampled"),
        ({"judge": math.inf}, "finite"),
        ({"rating": math.inf, "state": RATED}, "finite"),
    ],
)
def test_contradictory_answer_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        frame_of([FrameAnswer(**({"key": 1, "judge": 0.5} | fields))])


def test_component_needs_answers_and_distinct_bounds() -> None:
    scored_answer, unscored_answer = FrameAnswer(1, 0.5), FrameAnswer(2, None)
    assert Component("m", frame_of([scored_answer, unscored_answer]), -1.0, 2.0).width == 3.0
    for answers, low, high, message in (
        ([], 0.0, 1.0, "needs answers"),
        ([scored_answer, unscored_answer], 1.0, 1.0, "above the lower"),
    ):
        with pytest.raises(ValueError, match=message):
            Component("m", frame_of(answers), low, high)


def test_values_stored_in_files_are_stable() -> None:
    assert [str(member) for member in Target] == ["this_run", "questions_like_these"]
    methods = ["regression", "mean_of_labels", "census", "bound", "clopper_pearson", "as_it_came", "composite", "sum"]
    assert [str(member) for member in Method] == methods
    assert [str(member) for member in WithheldReason] == [
        "too_few_labels",
        "stratum_too_few_labels",
        "non_response",
        "not_estimable",
        "no_probability",
        "small_frame",
        "components_withheld",
        "too_few_groups",
        "no_values",
    ]
    assert [str(member) for member in EstimateWarning] == [
        "few_off_commonest",
        "failed_stratum_bounds",
        "clipped",
        "few_groups",
        "unseen_answers",
    ]


def test_united_frame_is_labelled_where_any_frame_is() -> None:
    first_frame = frame_of([rated(1, 1.0, 1.0), unsampled(2, 1.0)])
    second_frame = frame_of([unsampled(1, 1.0), unsampled(2, 1.0), rated(3, 0.0, 1.0)])
    united = unite_frames([first_frame, second_frame])
    assert list(united.labelled) == [True, False, True]
    assert [list(positions) for positions in united.places] == [[0, 1], [0, 1, 2]]
