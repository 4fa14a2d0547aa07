"""Draws: every member keeps its stratum and its true inclusion probability."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from review.statistics.sampling.draw import allocate, draw
from review.statistics.sampling.member import FAILED, DrawnAnswer, DrawParams, Member, Strategy, stratify
from tests.examples import max_examples


def frame(size: int = 40, failed: int = 3) -> list[Member]:
    """Categories a and b alternate, scores 1 to 4 rotate, and the last ``failed`` members have no score."""
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
@settings(max_examples=max_examples(200), deadline=None)
def test_probability_is_the_sampled_share_of_the_stratum(
    frame: list[Member], strategy: str, size: int, seed: int
) -> None:
    sample = draw(frame, strategy, size, seed)

    assert [answer.key for answer in sample] == [member.key for member in frame]
    assert sum(answer.sampled for answer in sample) == (len(frame) if strategy == "all" else min(size, len(frame)))
    for stratum, count in Counter(answer.stratum for answer in sample).items():
        stratum_answers = [answer for answer in sample if answer.stratum == stratum]
        assert {answer.probability for answer in stratum_answers} == {
            sum(answer.sampled for answer in stratum_answers) / count
        }


@given(members, st.integers(6, 80))
@settings(max_examples=max_examples(100), deadline=None)
def test_stratified_draw_takes_two_per_stratum_and_keeps_failed_separate(frame: list[Member], size: int) -> None:
    sample = draw(frame, Strategy.STRATIFIED, size, seed=1)

    for stratum in {answer.stratum for answer in sample}:
        stratum_answers = [answer for answer in sample if answer.stratum == stratum]
        assert sum(answer.sampled for answer in stratum_answers) >= min(2, len(stratum_answers))
    failed = {member.key for member in frame if member.failed}
    assert {answer.key for answer in sample if answer.stratum == FAILED} == failed


def test_strata_below_eight_percent_are_merged() -> None:
    # 100 answers: category a has 60 of score 5 and 3 of score 4, b has 37 of score 5; 3% is below 8%, so a's 4 joins
    # a's 5 although b's 5 has fewer members.
    large_stratum = [Member(key, "a", 5.0) for key in range(60)]
    small_stratum = [Member(60 + key, "a", 4.0) for key in range(3)]
    other_category = [Member(63 + key, "b", 5.0) for key in range(37)]

    sample = draw([*large_stratum, *small_stratum, *other_category], "stratified", 20, seed=0)

    assert Counter(answer.stratum for answer in sample) == {"a 4..5": 63, "b 5": 37}
    # proportional: 20 x 63 / 100 = 12.6 and 7.4, so 13 and 7
    assert Counter(answer.stratum for answer in sample if answer.sampled) == {"a 4..5": 13, "b 5": 7}


def test_neyman_allocation_follows_size_times_deviation() -> None:
    members = [Member(key, "", 1.0 if key < 50 else 2.0) for key in range(100)]
    params = DrawParams(pilot_sd={"1": 0.3, "2": 0.1})

    sample = draw(members, "stratified", 20, seed=0, params=params)

    # 20 x (50 x 0.3) / (50 x 0.3 + 50 x 0.1) = 15
    assert Counter(answer.stratum for answer in sample if answer.sampled) == {"1": 15, "2": 5}


def test_inclusion_frequency_matches_the_probability() -> None:
    frequency: Counter[int] = Counter()
    for seed in range(2000):
        frequency.update(answer.key for answer in draw(frame(), "stratified", 13, seed) if answer.sampled)

    for answer in draw(frame(), "stratified", 13, 0):
        assert answer.probability is not None
        # standard error of a frequency over 2,000 draws is at most 0.0112; 5 of them is 0.056
        assert frequency[answer.key] / 2000 == pytest.approx(answer.probability, abs=0.056)


def test_all_fails_and_a_share_of_the_rest_are_drawn() -> None:
    # scores 1..4 in turn over 37 answers: 10 ones and 9 twos are fails; 18 others, of which 20% = 3.6 -> 4;
    # 3 failed answers, of which 20% = 0.6 -> at least 2
    sample = draw(frame(), "fails_plus_share", 0, seed=5, params=DrawParams(fail_below=3, share=0.2))

    assert Counter(answer.stratum for answer in sample if answer.sampled) == {"fails": 19, "rest": 4, "failed": 2}
    assert {answer.stratum: answer.probability for answer in sample} == {"fails": 1.0, "rest": 4 / 18, "failed": 2 / 3}


def test_more_fails_than_the_size_are_refused() -> None:
    with pytest.raises(DomainError, match="fails_exceed_size"):
        draw(frame(), "fails_plus_share", 10, seed=0, params=DrawParams(fail_below=3))


def test_uncertainty_mixes_the_spread_with_a_uniform_half() -> None:
    # 4 answers, expected size 2, spreads 3, 1, 0, 0: p = 2 (spread / 8 + 1 / 8) = 1, 0.5, 0.25, 0.25
    members = [Member(key) for key in range(4)]

    sample = draw(members, "uncertainty", 2, seed=0, params=DrawParams(spread={0: 3.0, 1: 1.0}))

    assert [answer.probability for answer in sample] == pytest.approx([1.0, 0.5, 0.25, 0.25])


@given(st.lists(st.floats(0, 100), min_size=2, max_size=40).filter(lambda s: sum(s) > 1e-3), st.integers(1, 40))
@settings(max_examples=max_examples(200), deadline=None)
def test_uncertainty_probabilities_sum_to_the_size_and_are_positive(spread: list[float], size: int) -> None:
    sample = draw(
        [Member(key) for key in range(len(spread))],
        "uncertainty",
        size,
        seed=0,
        params=DrawParams(spread=dict(enumerate(spread))),
    )

    probabilities = [answer.probability or 0.0 for answer in sample]
    assert sum(probabilities) == pytest.approx(min(size, len(spread)))
    assert all(0 < probability <= 1 for probability in probabilities)


def test_uncertainty_without_spread_is_refused() -> None:
    with pytest.raises(DomainError, match="no_spread"):
        draw(frame(), "uncertainty", 10, seed=0, params=DrawParams(spread={1: 0.0}))


def test_hand_picked_answers_have_no_probability() -> None:
    sample = draw(frame(4, 0), "hand_picked", 0, seed=0, params=DrawParams(keys=frozenset({2})))

    assert [(answer.probability, answer.sampled) for answer in sample] == [
        (None, False),
        (None, False),
        (None, True),
        (None, False),
    ]


def test_later_draw_takes_earlier_answers_as_certain() -> None:
    sample = draw(frame(), "uniform", 10, seed=0, params=DrawParams(certain=frozenset({1, 2})))

    assert [answer for answer in sample if answer.stratum == "certain"] == [
        DrawnAnswer(1, "certain", 1.0, True),
        DrawnAnswer(2, "certain", 1.0, True),
    ]
    assert {answer.probability for answer in sample if answer.stratum != "certain"} == {10 / 38}


def test_frame_order_changes_nothing_and_the_seed_does() -> None:
    shuffled = frame()
    random.Random(1).shuffle(shuffled)

    assert draw(shuffled, "stratified", 13, 7) == draw(frame(), "stratified", 13, 7)
    assert draw(frame(), "stratified", 13, 7) != draw(frame(), "stratified", 13, 8)


def test_size_too_small_for_the_strata_is_refused() -> None:
    # the failed stratum and one merged stratum need 2 each
    with pytest.raises(DomainError) as error_info:
        draw(frame(), "stratified", 3, seed=0)
    assert (error_info.value.code, error_info.value.params) == ("draw_too_small", {"needed": 4, "strata": 2})
    with pytest.raises(DomainError, match="empty_frame"):
        draw([], "uniform", 3, seed=0)
    with pytest.raises(DomainError, match="unknown_keys"):
        draw(frame(), "hand_picked", 0, seed=0, params=DrawParams(keys=frozenset({999})))


def test_many_distinct_scores_are_cut_into_quarters() -> None:
    members = [Member(key, "", key / 100) for key in range(100)]

    sample = draw(members, "stratified", 20, seed=0)

    # the quartiles by the lower method are the scores 0.24, 0.49 and 0.74: 24, 25, 25 and 26 answers
    assert sorted(Counter(answer.stratum for answer in sample).values()) == [24, 25, 25, 26]


def test_quarters_are_named_by_their_range() -> None:
    # twelve scores 1, 1.5 .. 6.5 are more than ten; a quarter begins at the place 11 * share, rounded down: 0, 2, 5, 8
    members = [Member(key, "a", 1 + key / 2, False) for key in range(12)]
    names = stratify(members, merge_below=0.0)
    assert list(dict.fromkeys(names.values())) == ["a 1..2", "a 2..3.5", "a 3.5..5", "a 5..6.5"]
    halves = stratify(members, merge_below=0.0, max_strata=2)
    assert len(set(halves.values())) == 2
    assert "from" not in "".join(halves.values())


def test_failed_answers_count_as_a_stratum_in_the_maximum() -> None:
    names = stratify(frame(40, failed=3), merge_below=0.0, max_strata=3)
    assert FAILED in names.values()
    assert len(set(names.values())) == 3


def test_small_deviations_share_in_proportion() -> None:
    assert allocate({"a": 100, "b": 100}, 40, 2, {"a": 0.003, "b": 0.001}) == {"a": 30, "b": 10}
