"""Ratings that the judge's prompt was worked out on: they stand for their own answers, the others for all the rest."""

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
    """60 of 100 answers rated, the judge half a level off; on the first 24 he was built and says what experts say."""
    numbers = np.random.default_rng(seed)
    truth = numbers.integers(1, 6, SIZE).astype(float)
    said = np.clip(truth + numbers.normal(0.5, 1.0, SIZE), 1, 5)
    found = []
    for at in range(SIZE):
        if at >= RATED:
            found.append(unsampled(at, float(said[at]), RATED / SIZE))
        elif at >= BUILT:
            found.append(rated(at, float(said[at]), truth[at], RATED / SIZE))
        else:
            found.append(replace(rated(at, truth[at], truth[at], RATED / SIZE), built=True))
    return found


def estimate(answers: list[FrameAnswer]) -> Estimate:
    found = corrected_component(Component("m", frame_of(answers), 1.0, 5.0))
    assert isinstance(found, Estimate)
    return found


def test_they_are_a_stratum_that_is_certain_and_the_rest_a_draw_of_what_remains() -> None:
    built, rest = frame_strata(frame_of(frame()))
    assert (built.size, built.labels, built.census, set(built.inclusion)) == (24, 24, True, {1.0})
    # 36 of the 76 that are left, as a simple draw of them would have it
    assert (rest.size, rest.labels) == (76, 36)
    assert rest.inclusion == pytest.approx([36 / 76] * 36)


def test_with_unequal_probabilities_the_weights_still_add_up_to_the_rest() -> None:
    # (1 / (p s)) - (1 - s) / s with s = 1/2: p = 0.5 gives 3, p = 0.25 gives 7
    answers = [replace(rated(at, 1.0, 1.0, 0.5 if at < 4 else 0.25), built=at % 2 == 0) for at in range(8)]
    answers += [unsampled(at, 1.0, 0.5 if at < 12 else 0.25) for at in range(8, 24)]
    _, rest = frame_strata(frame_of(answers))
    assert [round(1 / p) for p in rest.inclusion] == [3, 3, 7, 7]
    assert sum(1 / rest.inclusion) == pytest.approx(24 - 4)


def test_the_figure_is_their_own_ratings_and_the_rest_as_if_it_were_drawn_alone() -> None:
    answers = frame()
    alone = estimate([replace(one, probability=36 / 76) for one in answers if not one.built])
    own = [one.rating for one in answers if one.built and one.rating is not None]
    whole = estimate(answers)
    assert whole.value == pytest.approx((sum(own) + 76 * alone.value) / 100)
    # only the rest is uncertain; the part for unlike answers grows with the same share
    assert whole.high - whole.low == pytest.approx(0.76 * (alone.high - alone.low), rel=0.02)
    assert whole.slope == pytest.approx(alone.slope)


def test_a_judge_who_knows_them_by_heart_does_not_pull_the_figure() -> None:
    believed = estimate([replace(one, built=False) for one in frame()])
    truth = frame()
    assert estimate(truth).slope != pytest.approx(believed.slope)
    assert estimate(truth).high - estimate(truth).low > believed.high - believed.low


def test_figures_need_labels_beside_them() -> None:
    few = [replace(one, built=one.state is ReviewState.RATED and int(str(one.key)) < 45) for one in frame()]
    found = corrected_component(Component("m", frame_of(few), 1.0, 5.0))
    assert isinstance(found, Withheld)
    assert (found.reason, found.missing) == (WithheldReason.TOO_FEW_LABELS, {"labels": 5})


def test_where_all_are_rated_nothing_is_set_apart() -> None:
    every = [replace(rated(at, 1.0, 2.0, 1.0), built=at < 10) for at in range(30)]
    assert [one.size for one in frame_strata(frame_of(every))] == [30]


def test_they_stay_apart_where_thin_strata_are_thrown_together() -> None:
    thin = [replace(one, stratum=f"s{int(str(one.key)) % 20}") for one in frame()]
    assert [(one.size, one.labels) for one in collapsed_strata(frame_of(thin))] == [(76, 36), (24, 24)]
