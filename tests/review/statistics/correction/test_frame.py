"""What a frame may hold, and what its answers are without being told more."""

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
def test_a_rating_counts_where_a_draw_with_known_probability_took_the_answer(
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
def test_an_answer_that_contradicts_itself_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        frame_of([FrameAnswer(**({"key": 1, "judge": 0.5} | fields))])


def test_a_component_needs_answers_and_bounds_that_differ() -> None:
    one, two = FrameAnswer(1, 0.5), FrameAnswer(2, None)
    assert Component("m", frame_of([one, two]), -1.0, 2.0).width == 3.0
    for answers, low, high, message in (
        ([], 0.0, 1.0, "needs answers"),
        ([one, two], 1.0, 1.0, "above the lower"),
    ):
        with pytest.raises(ValueError, match=message):
            Component("m", frame_of(answers), low, high)


def test_the_names_that_files_and_programs_read_stay() -> None:
    assert [str(one) for one in Target] == ["this_run", "questions_like_these"]
    methods = ["regression", "mean_of_labels", "census", "bound", "clopper_pearson", "as_it_came", "sum"]
    assert [str(one) for one in Method] == methods
    assert [str(one) for one in WithheldReason] == [
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
    assert [str(one) for one in EstimateWarning] == [
        "few_off_commonest",
        "failed_stratum_bounds",
        "clipped",
        "few_groups",
        "unseen_answers",
    ]


def test_of_several_frames_an_answer_is_labelled_where_any_has_a_label_of_it() -> None:
    one = frame_of([rated(1, 1.0, 1.0), unsampled(2, 1.0)])
    other = frame_of([unsampled(1, 1.0), unsampled(2, 1.0), rated(3, 0.0, 1.0)])
    found = unite_frames([one, other])
    assert list(found.labelled) == [True, False, True]
    assert [list(at) for at in found.places] == [[0, 1], [0, 1, 2]]
