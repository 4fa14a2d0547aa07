"""Score maps: by hand, what they keep, that they never turn an order round, and when they are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluation.core.samples import AnswerSpec, Result
from evaluation.judging.calls import JudgeCase, JudgeDialog
from evaluation.judging.catalogue import family_for
from evaluation.judging.formulas import apply_score_maps
from evaluation.judging.prompt import judge_call, request_hash
from evaluation.judging.rubric import Rubric, shipped_rubric
from review.statistics.score_maps import MapEvaluation, apply_score_map, concordance, cross_validate_map, fit_score_map
from tests.factories import question_spec

LEVELS = (1, 2, 3, 4, 5)


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_the_steps_are_the_rounded_isotonic_means_and_levels_never_said_stay() -> None:
    # said 2: mean 3; said 3: labels 2 and 2.6, mean 2.3, pooled with the former (3 + 2 + 2.6) / 3 = 2.533; said 4: 5
    said, labels = array(2, 3, 3, 4), array(3, 2, 2.6, 5)
    knots = fit_score_map(said, labels, np.ones(4), LEVELS)
    # 1 was never said: 1 stays, since 1 <= 3; 2.533 rounds to 3; above 4 nothing is below 5
    assert knots == ((1, 1), (2, 3), (3, 3), (4, 5), (5, 5))
    real = fit_score_map(said / 5, labels / 5, np.ones(4), ())
    assert real == ((0.4, pytest.approx(0.506667)), (0.6, pytest.approx(0.506667)), (0.8, 1.0))
    assert apply_score_map(real, array(0.5, 0.7, 0.1)).tolist() == pytest.approx(
        [0.506667, 0.753333, 0.506667], abs=1e-5
    )


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(2, 10), st.floats(0.1, 9)), min_size=1, max_size=40),
    st.booleans(),
)
def test_a_map_rises_on_the_scale_and_is_a_rubric_s(rows: list[tuple[int, int, float]], whole: bool) -> None:
    said, labels, weights = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    knots = fit_score_map(said, labels / 2, weights, LEVELS if whole else ())
    counts = apply_score_map(knots, np.arange(1.0, 5.01, 0.25))
    assert (np.diff(counts) >= 0).all()
    assert counts.min() >= 1
    assert counts.max() <= 5
    if whole:
        assert apply_score_map(knots, np.array(LEVELS)).tolist() == [
            float(round(x)) for x in apply_score_map(knots, np.array(LEVELS))
        ]
        with_map(knots)


def with_map(knots: object) -> Rubric:
    rubric = shipped_rubric("answer_quality", "en")
    first, *others = rubric.model_dump()["metrics"]
    whole = rubric.model_dump() | {"metrics": [first | {"score_map": knots}, *others]}
    return Rubric.model_validate(whole | {"mapped_from": rubric.content_hash})


def test_concordance_by_hand() -> None:
    # said 1, 3 and labels 2, 4: covariance 1, variances 1 and 1, means one apart: 2 / (1 + 1 + 1)
    assert concordance(array(1, 3), array(2, 4), np.ones(2)) == pytest.approx(2 / 3)
    assert concordance(array(2, 2), array(2, 2), np.ones(2)) == 0


def test_a_judge_a_level_too_mild_is_mended_on_answers_the_map_never_saw() -> None:
    labels = np.tile(array(1, 2, 3, 4), 25)
    found = cross_validate_map(labels + 1, labels, np.ones(100), list(range(100)), LEVELS)
    assert found is not None
    # always one too many: a squared distance of 1, of which nothing is left
    assert (found.n, found.loss, found.is_useful) == (100, 0.0, True)
    assert (found.gain, found.after) == (pytest.approx(1), pytest.approx(1))


def test_a_map_that_only_pulls_scores_together_is_no_help() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(2, 5, 300).astype(float)
    noise = np.clip(labels * 0.15 + rng.normal(2.5, 1.6, 300), 1, 5)
    found = cross_validate_map(noise, labels, np.ones(300), list(range(300)), ())
    assert found is not None
    assert found.gain > 0.5  # much nearer in squares
    assert found.after < found.before
    assert not found.is_useful


def test_below_thirty_groups_nothing_is_fitted() -> None:
    labels = np.tile(array(1, 5), 50)
    assert cross_validate_map(labels, labels, np.ones(100), [n % 29 for n in range(100)], LEVELS) is None


def test_what_counts_is_read_on_the_map_and_the_judge_s_own_value_stays() -> None:
    rubric = with_map([(1, 2), (5, 4)])
    results = {"correctness": Result.scored(2, reason="r"), "faithfulness": Result.failed("parse")}
    found = apply_score_maps(rubric, results)
    # a quarter of the way from 2 to 4
    assert (found["correctness"].value, found["correctness"].detail, found["correctness"].reason) == (
        2.5,
        {"before_map": 2.0},
        "r",
    )
    assert found["faithfulness"] == results["faithfulness"]


@pytest.mark.parametrize("knots", [[(1, 1)], [(1, 2), (1, 3)], [(1, 3), (2, 2)], [(1, 1), (2, 6)], [(0, 1), (2, 2)]])
def test_a_map_that_does_not_rise_on_the_scale_is_no_rubric_s(knots: object) -> None:
    with pytest.raises(ValidationError, match="score map"):
        with_map(knots)


def test_a_mapped_version_asks_as_the_one_it_is_of_so_that_replies_serve_both() -> None:
    plain, with_one = shipped_rubric("answer_quality", "en"), with_map([(1, 2), (5, 4)])
    assert plain.content_hash != with_one.content_hash
    hashes = set()
    for rubric in (plain, with_one):
        family = family_for(rubric)
        question, answer = question_spec(1), AnswerSpec(text="so")
        ask = JudgeDialog(family.judge(JudgeCase(rubric, question, answer, family.produced_metrics))).request
        assert ask is not None
        hashes.add(request_hash(judge_call(rubric, question, answer, ask, model="m", parameters={})))
    assert len(hashes) == 1


def test_nearer_is_what_the_whole_interval_says() -> None:
    def proof(gain: float, low: float | None) -> MapEvaluation:
        return MapEvaluation(n=40, loss=0.1, gain=gain, low=low, high=0.3, before=0.5, after=0.6)

    assert [proof(0.1, low).reduces_error for low in (0.05, 0.0, -0.1, None)] == [True, False, False, True]
    assert not proof(0.0, None).reduces_error
