"""Several draws combined into one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.statistics.sampling.draw import draw
from review.statistics.sampling.member import Inclusion, Member, union_probability, unite_draws


def draw_inclusions(members: list[Member], strategy: str, size: int, seed: int) -> dict[int, Inclusion]:
    sample = draw(members, strategy, size, seed)
    return {answer.key: Inclusion(answer.probability, answer.stratum, answer.sampled) for answer in sample}


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=5)


def test_union_of_two_halves_is_three_quarters() -> None:
    # 1 - (1 - 0.5)(1 - 0.5)
    assert union_probability([0.5, 0.5]) == 0.75


@pytest.mark.parametrize("probability", [1.5, -0.1])
def test_invalid_probability_is_an_error(probability: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        union_probability([0.5, probability])


def test_hand_picking_gives_no_probability() -> None:
    assert union_probability([None]) is None
    assert union_probability([None, 0.25]) == 0.25


@given(probabilities)
def test_union_is_at_least_the_largest_and_at_most_the_sum(values: list[float]) -> None:
    union = union_probability(values)

    assert union is not None
    assert max(values) - 1e-12 <= union <= min(1.0, sum(values)) + 1e-12


def test_united_expected_sizes_agree_with_many_draws() -> None:
    members = [Member(key, "ab"[key % 2], float(key % 3)) for key in range(30)]
    total, runs = 0, 500
    for seed in range(runs):
        united = unite_draws(
            [draw_inclusions(members, "uniform", 6, 2 * seed), draw_inclusions(members, "stratified", 12, 2 * seed + 1)]
        )
        total += sum(inclusion.sampled for inclusion in united.values())
    expected = sum(inclusion.probability or 0.0 for inclusion in united.values())

    # the size varies by about 1.2 per pair of draws; 5 standard errors over 500 are 0.27
    assert total / runs == pytest.approx(expected, abs=0.3)


def test_hand_picked_answer_is_not_a_sampled_one() -> None:
    random = {1: Inclusion(0.5, "all", False), 2: Inclusion(0.5, "all", True)}
    hand_picked = {1: Inclusion(None, "all", True), 2: Inclusion(None, "all", False)}

    assert unite_draws([random, hand_picked]) == {1: Inclusion(0.5, "all", False), 2: Inclusion(0.5, "all", True)}
    assert unite_draws([hand_picked]) == hand_picked


def test_strata_are_those_of_the_draw_with_most_strata() -> None:
    members = [Member(key, "", float(key % 2)) for key in range(40)]
    united = unite_draws([draw_inclusions(members, "uniform", 30, 1), draw_inclusions(members, "stratified", 8, 2)])

    assert {inclusion.stratum for inclusion in united.values()} == {"0", "1"}
    # 1 - (1 - 30/40)(1 - 4/20) = 0.8
    assert [inclusion.probability for inclusion in united.values()] == pytest.approx([0.8] * 40)


def test_different_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="different frames"):
        unite_draws([{1: Inclusion(1.0, "all", True)}, {2: Inclusion(1.0, "all", True)}])
