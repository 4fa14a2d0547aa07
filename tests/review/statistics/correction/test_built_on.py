"""Ratings used to develop the judge's prompt represent only their own answers; the others represent the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.frame import Component, ReviewState, collapsed_strata, frame_strata
from review.statistics.correction.outcome import Estimate, Withheld, WithheldReason
from tests.review.statistics.correction.frames import FrameAnswer, frame_of, rated, unsampled

SIZE, RATED, BUILT = 100, 60, 24


def frame(seed: int = 1) -> list[FrameAnswer]:
    """60 of 100 answers rated, with a judge half a level off; it repeats the experts on the first 24, the prompt
    examples."""
    numbers = np.random.default_rng(seed)
    truth = numbers.integers(1, 6, SIZE).astype(float)
    verdicts = np.clip(truth + numbers.normal(0.5, 1.0, SIZE), 1, 5)
    answers = []
    for i in range(SIZE):
        if i >= RATED:
            answers.append(unsampled(i, float(verdicts[i]), RATED / SIZE))
        elif i >= BUILT:
            answers.append(rated(i, float(verdicts[i]), truth[i], RATED / SIZE))
        else:
            answers.append(replace(rated(i, truth[i], truth[i], RATED / SIZE), built=True))
    return answers


def estimate(answers: list[FrameAnswer]) -> Estimate:
    corrected = corrected_component(Component("m", frame_of(answers), 1.0, 5.0))
    assert isinstance(corrected, Estimate)
    return corrected


def test_prompt_ratings_are_a_certain_stratum_and_the_rest_a_draw() -> None:
    prompt_stratum, other_stratum = frame_strata(frame_of(frame()))
    assert (prompt_stratum.size, prompt_stratum.labels, prompt_stratum.census, set(prompt_stratum.inclusion)) == (
        24,
        24,
        True,
        {1.0},
    )
    # 36 of the 76 that are left, as a simple draw of them would have it
    assert (other_stratum.size, other_stratum.labels) == (76, 36)
    assert other_stratum.inclusion == pytest.approx([36 / 76] * 36)


def test_weights_sum_to_the_rest_with_unequal_probabilities() -> None:
    # (1 / (p s)) - (1 - s) / s with s = 1/2: p = 0.5 gives 3, p = 0.25 gives 7
    answers = [replace(rated(i, 1.0, 1.0, 0.5 if i < 4 else 0.25), built=i % 2 == 0) for i in range(8)]
    answers += [unsampled(i, 1.0, 0.5 if i < 12 else 0.25) for i in range(8, 24)]
    _, other_stratum = frame_strata(frame_of(answers))
    assert [round(1 / p) for p in other_stratum.inclusion] == [3, 3, 7, 7]
    assert sum(1 / other_stratum.inclusion) == pytest.approx(24 - 4)


def test_value_combines_prompt_ratings_with_a_separate_estimate_of_the_rest() -> None:
    answers = frame()
    rest_estimate = estimate([replace(answer, probability=36 / 76) for answer in answers if not answer.built])
    prompt_ratings = [answer.rating for answer in answers if answer.built and answer.rating is not None]
    total_estimate = estimate(answers)
    assert total_estimate.value == pytest.approx((sum(prompt_ratings) + 76 * rest_estimate.value) / 100)
    # only the rest is uncertain; the part for unlike answers grows with the same share
    assert total_estimate.high - total_estimate.low == pytest.approx(
        0.76 * (rest_estimate.high - rest_estimate.low), rel=0.02
    )
    assert total_estimate.slope == pytest.approx(rest_estimate.slope)


def test_memorising_judge_does_not_bias_the_value() -> None:
    naive_estimate = estimate([replace(answer, built=False) for answer in frame()])
    truth = frame()
    assert estimate(truth).slope != pytest.approx(naive_estimate.slope)
    assert estimate(truth).high - estimate(truth).low > naive_estimate.high - naive_estimate.low


def test_values_need_labels_outside_the_prompt() -> None:
    answers = [
        replace(answer, built=answer.state is ReviewState.RATED and int(str(answer.key)) < 45) for answer in frame()
    ]
    corrected = corrected_component(Component("m", frame_of(answers), 1.0, 5.0))
    assert isinstance(corrected, Withheld)
    assert (corrected.reason, corrected.missing) == (WithheldReason.TOO_FEW_LABELS, {"labels": 5})


def test_complete_review_has_no_separate_prompt_stratum() -> None:
    answers = [replace(rated(i, 1.0, 2.0, 1.0), built=i < 10) for i in range(30)]
    assert [stratum.size for stratum in frame_strata(frame_of(answers))] == [30]


def test_prompt_stratum_stays_separate_when_thin_strata_are_merged() -> None:
    answers = [replace(row, stratum=f"s{int(str(row.key)) % 20}") for row in frame()]
    assert [(row.size, row.labels) for row in collapsed_strata(frame_of(answers))] == [(76, 36), (24, 24)]
