"""Draws: every member keeps its stratum and probability, and the probabilities are the real ones."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from review.statistics.sampling.draw import allocate, draw
from review.statistics.sampling.member import FAILED, DrawnAnswer, DrawParams, Member, Strategy, stratify
from tests.examples import examples


def frame(size: int = 40, failed: int = 3) -> list[Member]:
    """Categories a and b in turn, scores 1 to 4 in turn, the last ``failed`` without a score."""
    return [
        Member(key, "ab"[key % 2], None if key >= size - failed else float(key % 4 + 1), key >= size - failed)
        for key in range(size)
    ]


members = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(1, 5).map(float)), st.booleans()),
    min_size=1,
    max_size=60,
).map(
    lambda rows: [
        Member(key, category, None if failed else score, failed) for key, (category, score, failed) in enumerate(rows)
    ]
)


@given(members, st.sampled_from(["all", "uniform", "stratified"]), st.integers(6, 80), st.integers(0, 99))
@settings(max_examples=examples(200), deadline=None)
def test_probability_is_the_sampled_share_of_the_stratum(
    frame: list[Member], strategy: str, size: int, seed: int
) -> None:
    drawn = draw(frame, strategy, size, seed)

    assert [one.key for one in drawn] == [member.key for member in frame]
    assert sum(one.sampled for one in drawn) == (len(frame) if strategy == "all" else min(size, len(frame)))
    for stratum, count in Counter(one.stratum for one in drawn).items():
        ones = [one for one in drawn if one.stratum == stratum]
        assert {one.probability for one in ones} == {sum(one.sampled for one in ones) / count}


@given(members, st.integers(6, 80))
@settings(max_examples=examples(100), deadline=None)
def test_a_stratified_draw_takes_two_of_every_stratum_and_never_merges_the_failed_one(
    frame: list[Member], size: int
) -> None:
    drawn = draw(frame, Strategy.STRATIFIED, size, seed=1)

    for stratum in {one.stratum for one in drawn}:
        ones = [one for one in drawn if one.stratum == stratum]
        assert sum(one.sampled for one in ones) >= min(2, len(ones))
    failed = {member.key for member in frame if member.failed}
    assert {one.key for one in drawn if one.stratum == FAILED} == failed


def test_strata_below_eight_percent_are_merged() -> None:
    # 100 answers: category a has 60 of score 5 and 3 of score 4, b has 37 of score 5; 3% is below 8%, so a's 4 joins
    # a's 5 although b's 5 has fewer members.
    many = [Member(key, "a", 5.0) for key in range(60)]
    few = [Member(60 + key, "a", 4.0) for key in range(3)]
    others = [Member(63 + key, "b", 5.0) for key in range(37)]

    drawn = draw([*many, *few, *others], "stratified", 20, seed=0)

    assert Counter(one.stratum for one in drawn) == {"a 4..5": 63, "b 5": 37}
    # proportional: 20 x 63 / 100 = 12.6 and 7.4, so 13 and 7
    assert Counter(one.stratum for one in drawn if one.sampled) == {"a 4..5": 13, "b 5": 7}


def test_neymans_allocation_follows_size_times_deviation() -> None:
    members = [Member(key, "", 1.0 if key < 50 else 2.0) for key in range(100)]
    params = DrawParams(pilot_sd={"1": 0.3, "2": 0.1})

    drawn = draw(members, "stratified", 20, seed=0, params=params)

    # 20 x (50 x 0.3) / (50 x 0.3 + 50 x 0.1) = 15
    assert Counter(one.stratum for one in drawn if one.sampled) == {"1": 15, "2": 5}


def test_each_answer_is_sampled_as_often_as_its_probability_says() -> None:
    frequency: Counter[int] = Counter()
    for seed in range(2000):
        frequency.update(one.key for one in draw(frame(), "stratified", 13, seed) if one.sampled)

    for one in draw(frame(), "stratified", 13, 0):
        assert one.probability is not None
        # standard error of a frequency over 2,000 draws is at most 0.0112; 5 of them is 0.056
        assert frequency[one.key] / 2000 == pytest.approx(one.probability, abs=0.056)


def test_all_fails_and_a_share_of_the_rest() -> None:
    # scores 1..4 in turn over 37 answers: 10 ones and 9 twos are fails; 18 others, of which 20% = 3.6 -> 4;
    # 3 failed answers, of which 20% = 0.6 -> at least 2
    drawn = draw(frame(), "fails_plus_share", 0, seed=5, params=DrawParams(fail_below=3, share=0.2))

    assert Counter(one.stratum for one in drawn if one.sampled) == {"fails": 19, "rest": 4, "failed": 2}
    assert {one.stratum: one.probability for one in drawn} == {"fails": 1.0, "rest": 4 / 18, "failed": 2 / 3}


def test_fails_beyond_the_size_are_refused() -> None:
    with pytest.raises(DomainError, match="fails_exceed_size"):
        draw(frame(), "fails_plus_share", 10, seed=0, params=DrawParams(fail_below=3))


def test_uncertainty_mixes_the_spread_with_a_uniform_half() -> None:
    # 4 answers, expected size 2, spreads 3, 1, 0, 0: p = 2 (spread / 8 + 1 / 8) = 1, 0.5, 0.25, 0.25
    members = [Member(key) for key in range(4)]

    drawn = draw(members, "uncertainty", 2, seed=0, params=DrawParams(spread={0: 3.0, 1: 1.0}))

    assert [one.probability for one in drawn] == pytest.approx([1.0, 0.5, 0.25, 0.25])


@given(st.lists(st.floats(0, 100), min_size=2, max_size=40).filter(lambda s: sum(s) > 1e-3), st.integers(1, 40))
@settings(max_examples=examples(200), deadline=None)
def test_uncertainty_probabilities_sum_to_the_size_and_none_is_zero(spread: list[float], size: int) -> None:
    drawn = draw(
        [Member(key) for key in range(len(spread))],
        "uncertainty",
        size,
        seed=0,
        params=DrawParams(spread=dict(enumerate(spread))),
    )

    probabilities = [one.probability or 0.0 for one in drawn]
    assert sum(probabilities) == pytest.approx(min(size, len(spread)))
    assert all(0 < probability <= 1 for probability in probabilities)


def test_uncertainty_without_spread_is_refused() -> None:
    with pytest.raises(DomainError, match="no_spread"):
        draw(frame(), "uncertainty", 10, seed=0, params=DrawParams(spread={1: 0.0}))


def test_hand_picked_answers_have_no_probability() -> None:
    drawn = draw(frame(4, 0), "hand_picked", 0, seed=0, params=DrawParams(keys=frozenset({2})))

    assert [(one.probability, one.sampled) for one in drawn] == [
        (None, False),
        (None, False),
        (None, True),
        (None, False),
    ]


def test_a_later_look_takes_earlier_answers_as_certain() -> None:
    drawn = draw(frame(), "uniform", 10, seed=0, params=DrawParams(certain=frozenset({1, 2})))

    assert [one for one in drawn if one.stratum == "certain"] == [
        DrawnAnswer(1, "certain", 1.0, True),
        DrawnAnswer(2, "certain", 1.0, True),
    ]
    assert {one.probability for one in drawn if one.stratum != "certain"} == {10 / 38}


def test_order_of_the_frame_changes_nothing_and_the_seed_does() -> None:
    shuffled = frame()
    random.Random(1).shuffle(shuffled)

    assert draw(shuffled, "stratified", 13, 7) == draw(frame(), "stratified", 13, 7)
    assert draw(frame(), "stratified", 13, 7) != draw(frame(), "stratified", 13, 8)


def test_a_size_too_small_for_the_strata_is_refused() -> None:
    # the failed stratum and one merged stratum need 2 each
    with pytest.raises(DomainError) as refused:
        draw(frame(), "stratified", 3, seed=0)
    assert (refused.value.code, refused.value.params) == ("draw_too_small", {"needed": 4, "strata": 2})
    with pytest.raises(DomainError, match="empty_frame"):
        draw([], "uniform", 3, seed=0)
    with pytest.raises(DomainError, match="unknown_keys"):
        draw(frame(), "hand_picked", 0, seed=0, params=DrawParams(keys=frozenset({999})))


def test_many_different_scores_are_cut_into_quarters() -> None:
    members = [Member(key, "", key / 100) for key in range(100)]

    drawn = draw(members, "stratified", 20, seed=0)

    # the quartiles by the lower method are the scores 0.24, 0.49 and 0.74: 24, 25, 25 and 26 answers
    assert sorted(Counter(one.stratum for one in drawn).values()) == [24, 25, 25, 26]


def test_quarters_are_named_from_where_to_where_they_go() -> None:
    # twelve scores 1, 1.5 .. 6.5 are more than ten; a quarter begins at the place 11 * share, rounded down: 0, 2, 5, 8
    members = [Member(key, "a", 1 + key / 2, False) for key in range(12)]
    names = stratify(members, merge_below=0.0)
    assert list(dict.fromkeys(names.values())) == ["a 1..2", "a 2..3.5", "a 3.5..5", "a 5..6.5"]
    halves = stratify(members, merge_below=0.0, max_strata=2)
    assert len(set(halves.values())) == 2
    assert "from" not in "".join(halves.values())


def test_the_answers_the_judge_failed_on_count_among_the_most_strata() -> None:
    names = stratify(frame(40, failed=3), merge_below=0.0, max_strata=3)
    assert FAILED in names.values()
    assert len(set(names.values())) == 3


def test_deviations_share_in_proportion_however_small_they_are() -> None:
    assert allocate({"a": 100, "b": 100}, 40, 2, {"a": 0.003, "b": 0.001}) == {"a": 30, "b": 10}
