"""Score maps: fitting by hand, invariants, monotonicity and refusal."""

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


def test_steps_are_rounded_isotonic_means_and_unused_levels_stay() -> None:
    # said 2: mean 3; said 3: labels 2 and 2.6, mean 2.3, pooled with the former (3 + 2 + 2.6) / 3 = 2.533; said 4: 5
    scores, labels = array(2, 3, 3, 4), array(3, 2, 2.6, 5)
    knots = fit_score_map(scores, labels, np.ones(4), LEVELS)
    # 1 was never said: 1 stays, since 1 <= 3; 2.533 rounds to 3; above 4 nothing is below 5
    assert knots == ((1, 1), (2, 3), (3, 3), (4, 5), (5, 5))
    real = fit_score_map(scores / 5, labels / 5, np.ones(4), ())
    assert real == ((0.4, pytest.approx(0.506667)), (0.6, pytest.approx(0.506667)), (0.8, 1.0))
    assert apply_score_map(real, array(0.5, 0.7, 0.1)).tolist() == pytest.approx(
        [0.506667, 0.753333, 0.506667], abs=1e-5
    )


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(2, 10), st.floats(0.1, 9)), min_size=1, max_size=40),
    st.booleans(),
)
def test_map_is_monotonic_on_the_scale_and_valid_in_a_rubric(
    rows: list[tuple[int, int, float]], use_levels: bool
) -> None:
    scores, labels, weights = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    knots = fit_score_map(scores, labels / 2, weights, LEVELS if use_levels else ())
    counts = apply_score_map(knots, np.arange(1.0, 5.01, 0.25))
    assert (np.diff(counts) >= 0).all()
    assert counts.min() >= 1
    assert counts.max() <= 5
    if use_levels:
        assert apply_score_map(knots, np.array(LEVELS)).tolist() == [
            float(round(x)) for x in apply_score_map(knots, np.array(LEVELS))
        ]
        rubric_with_map(knots)


def rubric_with_map(knots: object) -> Rubric:
    rubric = shipped_rubric("answer_quality", "en")
    first, *other_metrics = rubric.model_dump()["metrics"]
    fields = rubric.model_dump() | {"metrics": [first | {"score_map": knots}, *other_metrics]}
    return Rubric.model_validate(fields | {"mapped_from": rubric.content_hash})


def test_concordance_by_hand() -> None:
    # said 1, 3 and labels 2, 4: covariance 1, variances 1 and 1, means one apart: 2 / (1 + 1 + 1)
    assert concordance(array(1, 3), array(2, 4), np.ones(2)) == pytest.approx(2 / 3)
    assert concordance(array(2, 2), array(2, 2), np.ones(2)) == 0


def test_lenient_judge_is_corrected_on_answers_the_map_never_saw() -> None:
    labels = np.tile(array(1, 2, 3, 4), 25)
    evaluation = cross_validate_map(labels + 1, labels, np.ones(100), list(range(100)), LEVELS)
    assert evaluation is not None
    # always one too many: a squared distance of 1, of which nothing is left
    assert (evaluation.n, evaluation.loss, evaluation.is_useful) == (100, 0.0, True)
    assert (evaluation.gain, evaluation.after) == (pytest.approx(1), pytest.approx(1))


def test_map_that_only_compresses_scores_is_not_useful() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(2, 5, 300).astype(float)
    noise = np.clip(labels * 0.15 + rng.normal(2.5, 1.6, 300), 1, 5)
    evaluation = cross_validate_map(noise, labels, np.ones(300), list(range(300)), ())
    assert evaluation is not None
    assert evaluation.gain > 0.5  # much nearer in squares
    assert evaluation.after < evaluation.before
    assert not evaluation.is_useful


def test_fewer_than_thirty_groups_fit_no_map() -> None:
    labels = np.tile(array(1, 5), 50)
    assert cross_validate_map(labels, labels, np.ones(100), [n % 29 for n in range(100)], LEVELS) is None


def test_mapped_value_counts_and_the_judge_value_is_stored() -> None:
    rubric = rubric_with_map([(1, 2), (5, 4)])
    results = {"correctness": Result.scored(2, reason="r"), "faithfulness": Result.failed("parse")}
    mapped = apply_score_maps(rubric, results)
    # a quarter of the way from 2 to 4
    assert (mapped["correctness"].value, mapped["correctness"].detail, mapped["correctness"].reason) == (
        2.5,
        {"before_map": 2.0},
        "r",
    )
    assert mapped["faithfulness"] == results["faithfulness"]


@pytest.mark.parametrize("knots", [[(1, 1)], [(1, 2), (1, 3)], [(1, 3), (2, 2)], [(1, 1), (2, 6)], [(0, 1), (2, 2)]])
def test_non_monotonic_map_is_invalid_in_a_rubric(knots: object) -> None:
    with pytest.raises(ValidationError, match="score map"):
        rubric_with_map(knots)


def test_mapped_version_sends_equal_requests_so_replies_are_reused() -> None:
    plain, mapped = shipped_rubric("answer_quality", "en"), rubric_with_map([(1, 2), (5, 4)])
    assert plain.content_hash != mapped.content_hash
    hashes = set()
    for rubric in (plain, mapped):
        family = family_for(rubric)
        question, answer = question_spec(1), AnswerSpec(text="so")
        request = JudgeDialog(family.judge(JudgeCase(rubric, question, answer, family.produced_metrics))).request
        assert request is not None
        hashes.add(request_hash(judge_call(rubric, question, answer, request, model="m", parameters={})))
    assert len(hashes) == 1


def test_reduces_error_is_decided_by_the_whole_interval() -> None:
    def evaluation_with(gain: float, low: float | None) -> MapEvaluation:
        return MapEvaluation(n=40, loss=0.1, gain=gain, low=low, high=0.3, before=0.5, after=0.6)

    assert [evaluation_with(0.1, low).reduces_error for low in (0.05, 0.0, -0.1, None)] == [True, False, False, True]
    assert not evaluation_with(0.0, None).reduces_error
