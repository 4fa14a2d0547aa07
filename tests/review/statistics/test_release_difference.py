"""Release difference: arithmetic by hand, and properties for any frame."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import Estimate, Method, Target, Withheld, WithheldReason
from review.statistics.release_difference import PairedPart, release_difference
from tests.examples import max_examples
from tests.review.statistics.correction.frames import (
    FrameAnswer,
    frame_of,
    half_labelled,
    rated,
    silent,
    unsampled,
    wilson,
)
from tools.simulations.releases import CELLS, LEAST_COVERAGE, Pairs, simulate

DATA = os.environ.get("CONCORD_TEST_DATA", "")
# 97.5% quantile of Student's t with 19 degrees of freedom.
T19 = 2.093024


def part(answers: list[FrameAnswer], questions: int = 100, *, width: float = 1.0, name: str = "correct") -> PairedPart:
    return PairedPart(Component(name, frame_of(answers), -width, width, judged=True), questions)


def estimate(*parts: PairedPart, questions: int = 100) -> Estimate:
    outcome = release_difference(parts, questions)
    assert isinstance(outcome, Estimate), outcome
    return outcome


def risen(count: int, of: int = 20, rest: int = 20) -> list[FrameAnswer]:
    """Drawn differences, ``count`` of them 1 and the others 0, and undrawn ones. The judge saw no change."""
    return [rated(i, 0.0, float(i < count)) for i in range(of)] + [unsampled(of + i, 0.0) for i in range(rest)]


def test_mean_of_changed_questions_is_scaled_by_their_share() -> None:
    result = estimate(part(risen(10)))
    # 40 of 100 changed; the mean of 20 drawn differences is 10 / 20.
    assert (result.value, result.n, result.labels) == (pytest.approx(0.4 * 0.5), 100, 20)
    # s^2 = 0.25 x 20 / 19; variance 0.4^2 (1 - 20/40) s^2 / 20; unseen 0.4^2 (1/4) (1/20)^2 (1/2) (0.5^2 + 1.5^2).
    variance = 0.16 * 0.5 * (0.25 * 20 / 19) / 20 + 0.16 * 0.25 / 400 * 0.5 * 2.5
    assert (result.low, result.high) == wilson(0.2, variance, T19, -0.4, 0.4)
    assert (result.target, result.method) == (Target.THIS_RUN, Method.MEAN_OF_LABELS)


def test_difference_of_judge_values_is_the_regressor() -> None:
    # Drawn: of 10 with a judge's difference of 0 two rose, of 10 with 1 eight did. b = (16 - 4) x 0.25 / (20 x 0.25).
    # The judge's mean over all 40 is (10 + 14) / 40 = 0.6, over the drawn 0.5.
    result = estimate(part(half_labelled()))
    assert result.slope == pytest.approx(0.6)
    assert result.value == pytest.approx(0.4 * (0.5 + 0.6 * (0.6 - 0.5)))


def test_equal_differences_give_the_bound() -> None:
    # (20 unrated / 100) x u x 2, u = 1 - 0.05^(1/20) = 0.139108.
    result = estimate(part(risen(0)))
    assert (result.value, result.low, result.high) == (0.0, pytest.approx(-0.0556433), pytest.approx(0.0556433))
    assert result.method is Method.BOUND
    # All drawn differences are 1: (40 x 1) / 100, cut at the largest difference that 40 of 100 answers allow.
    risen_by_one = estimate(part(risen(20)))
    assert (risen_by_one.value, risen_by_one.high) == (0.4, 0.4)
    assert risen_by_one.low == pytest.approx(0.4 - 0.0556433)


def test_bound_grows_by_unanswered_questions() -> None:
    # One of 21 served was skipped: a share of 1/21 of 40 changed may differ by 1 either way.
    answers = [*risen(0, rest=19), silent(50, 0.0)]
    result = estimate(part(answers))
    assert result.high == pytest.approx(0.2 * 0.139108 * 2 + 0.4 / 21, abs=1e-6)
    assert result.non_response == pytest.approx(1 / 21)


def test_certain_questions_enter_with_their_own_difference() -> None:
    # 10 certain ones fell by 1, 20 of 40 others were drawn and half of them rose: (-10 + 40 x 0.5) / 100.
    certain = [rated(100 + i, 0.0, -1.0, 1.0, "certain") for i in range(10)]
    result = estimate(part([*risen(10), *certain]))
    assert (result.value, result.labels) == (pytest.approx(0.1), 30)
    # Certain questions also enter the bound: (-10 + 40 x 0) / 100.
    assert estimate(part([*risen(0), *certain])).value == pytest.approx(-0.1)


def test_completely_rated_changes_are_exact() -> None:
    result = estimate(part(risen(3, of=12, rest=0)))
    assert (result.value, result.low, result.high, result.method) == (0.03, 0.03, 0.03, Method.CENSUS)


def test_no_changed_question_is_no_difference() -> None:
    result = estimate()
    assert (result.value, result.low, result.high, result.n) == (0.0, 0.0, 0.0, 100)


def test_too_few_ratings_withhold_the_difference() -> None:
    outcome = release_difference([part(risen(2, of=5, rest=35))], 100)
    assert isinstance(outcome, Withheld)
    assert outcome.missing["components"] == {"correct": {"reason": "too_few_labels", "labels": 15}}
    unrated = release_difference([part(risen(0, of=0, rest=40))], 100)
    assert isinstance(unrated, Withheld)
    assert (unrated.reason, unrated.missing) == (WithheldReason.TOO_FEW_LABELS, {"labels": 20})
    # Fewer changed questions than 20 are rated completely.
    few = release_difference([part(risen(0, of=0, rest=7))], 100)
    assert isinstance(few, Withheld)
    assert few.missing == {"labels": 7}


def test_parts_are_summed_with_their_weights_and_questions() -> None:
    first, second = part(risen(10), name="a"), part(risen(5), 50, name="b")
    halves = [PairedPart(replace(one.component, weight=0.5), one.questions) for one in (first, second)]
    # 0.5 x 40/100 x 0.5 + 0.5 x 40/50 x 0.25
    assert estimate(*halves).value == pytest.approx(0.1 + 0.1)


def test_exact_and_unrated_parts() -> None:
    rule = part([unsampled(i, float(i < 8), None) for i in range(40)], name="rule")
    rule = PairedPart(replace(rule.component, judged=False), 100)
    with_rule = estimate(part(risen(10)), rule)
    assert with_rule.value == pytest.approx(0.2 + 0.08)
    assert (with_rule.named, with_rule.unrated) == (("rule",), {})
    # Nobody rated the second part: its 40 changed questions may each differ by 1 either way.
    partly = estimate(part(risen(10)), part([unsampled(i, 0.0, None) for i in range(40)], name="other"))
    alone = estimate(part(risen(10)))
    assert partly.unrated == {"other": 1.0}
    assert partly.high == pytest.approx(alone.high + 0.4, abs=1e-3)


def test_rules_alone_are_exact() -> None:
    rule = part([unsampled(i, float(i < 8), None) for i in range(40)])
    exact = estimate(PairedPart(replace(rule.component, judged=False), 100))
    assert (exact.value, exact.low, exact.high) == (pytest.approx(0.08), pytest.approx(0.08), pytest.approx(0.08))


def test_more_changed_questions_than_questions_is_an_error() -> None:
    with pytest.raises(ValueError, match="changed questions"):
        release_difference([part(risen(1), 39)], 39)


rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 0.5, 1.0])),
        st.sampled_from([-1.0, 0.0, 1.0]),
        st.sampled_from([ReviewState.RATED, ReviewState.RATED, ReviewState.NOT_SAMPLED, ReviewState.NO_RESPONSE]),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


def frame_rows(drawn: list[tuple], sign: float = 1.0) -> list[FrameAnswer]:
    return [
        FrameAnswer(
            key,
            None if judge is None else sign * judge,
            sign * rating if certain or state is ReviewState.RATED else None,
            ReviewState.RATED if certain else state,
            1.0 if certain else 0.5,
            "certain" if certain else "",
        )
        for key, (judge, rating, state, certain) in enumerate(drawn)
    ]


@given(rows, st.integers(0, 200))
@settings(max_examples=max_examples(200), deadline=None)
def test_exchanged_releases_give_the_opposite_interval(drawn: list[tuple], unchanged: int) -> None:
    questions = len(drawn) + unchanged
    new, old = (release_difference([part(frame_rows(drawn, sign), questions)], questions) for sign in (1.0, -1.0))
    assert isinstance(new, Estimate) is isinstance(old, Estimate)
    if isinstance(new, Estimate) and isinstance(old, Estimate):
        assert (new.value, new.low, new.high) == pytest.approx((-old.value, -old.high, -old.low), abs=1e-9)
        assert new.low <= new.value <= new.high
        reach = len(drawn) / questions
        assert -reach - 1e-9 <= new.low
        assert new.high <= reach + 1e-9


@given(rows)
@settings(max_examples=max_examples(100), deadline=None)
def test_unchanged_questions_only_dilute(drawn: list[tuple]) -> None:
    size = len(drawn)
    few, many = (release_difference([part(frame_rows(drawn), n)], n) for n in (size, 4 * size))
    if isinstance(few, Estimate) and isinstance(many, Estimate):
        assert (4 * many.value, 4 * many.low, 4 * many.high) == pytest.approx((few.value, few.low, few.high), abs=1e-9)


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.changed:.0%}")
def test_simulated_rise_is_found_and_covered(cell: object) -> None:
    result = simulate(Pairs(Path(DATA)), cell, 200)
    # Three standard errors of 200 lives below the goals.
    assert result.found >= cell.least_found - 0.1
    assert min(result.coverage, result.tuned) >= LEAST_COVERAGE - 0.05
