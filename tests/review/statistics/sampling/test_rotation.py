"""Criteria in turn: who is asked what, with which probability, and that what comes of it is unbiased."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.correction.corrected import corrected_overall
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import Estimate
from review.statistics.sampling.draw import draw
from review.statistics.sampling.member import FAILED, DrawnAnswer, DrawParams, Member, Strategy
from review.statistics.sampling.rotation import min_stratum_size, rotate_criteria
from tests.examples import examples
from tests.review.statistics.correction.frames import FrameAnswer, frame_of

FIVE = (1, 2, 3, 4, 5)


def sample(strata: str, taken: int) -> list[DrawnAnswer]:
    """Answers in strata of one letter each, the first ``taken`` of each sampled."""
    seen: Counter[str] = Counter()
    found = []
    for key, stratum in enumerate(strata):
        found.append(DrawnAnswer(key, stratum, taken / strata.count(stratum), seen[stratum] < taken))
        seen[stratum] += 1
    return found


def test_each_criterion_is_asked_equally_often_and_the_probabilities_say_so() -> None:
    drawn = sample("a" * 20, 10)
    asked, samples = rotate_criteria(drawn, dict.fromkeys(range(20), FIVE), 3, np.random.default_rng(1))
    # 10 answers x 3 = 30 places round a ring of 5: every criterion 6 times
    assert Counter(one for several in asked.values() for one in several) == dict.fromkeys(FIVE, 6)
    assert {len(several) for several in asked.values()} == {3}
    for criterion in FIVE:
        # drawn with 10 / 20, asked with 3 / 5
        assert {round(one.probability or 0, 9) for one in samples[criterion]} == {0.3}
        assert sum(one.sampled for one in samples[criterion]) == 6


def test_what_applies_to_few_is_asked_more_often_and_what_does_not_apply_never() -> None:
    fitting = {key: FIVE if key < 10 else (1, 2) for key in range(20)}
    asked, samples = rotate_criteria(sample("a" * 20, 20), fitting, 3, np.random.default_rng(2))
    assert all(asked[key] == {1, 2} for key in range(10, 20))
    first = {one.key: one for one in samples[1]}
    # 3 of 5 criteria of the first ten answers, both of the two that apply to the others
    assert (first[0].probability, first[10].probability) == (pytest.approx(0.6), 1.0)
    # 3 does not apply to the others: nothing of theirs is unknown, they count as sampled
    third = {one.key: one for one in samples[3]}
    assert (third[10].probability, third[10].sampled) == (1.0, True)


def test_a_stratum_too_thin_for_a_criterion_is_joined_to_the_next() -> None:
    # of 4 sampled answers in each of a, b and c each criterion of ten is asked 0.3 x 4 times: once or twice
    drawn = sample("aaaaaaaabbbbbbbbcccccccc", 4)
    _asked, samples = rotate_criteria(drawn, dict.fromkeys(range(24), tuple(range(10))), 3, np.random.default_rng(3))
    for found in samples.values():
        assert all(count >= 2 for count in Counter(one.stratum for one in found if one.sampled).values())
    assert min_stratum_size(10, 3) == 7  # 2 x 10 / 3, rounded up, gives each criterion two
    assert min_stratum_size(2, 3) == 2


frames = st.lists(
    st.tuples(st.sampled_from(["a", "b", FAILED]), st.frozensets(st.sampled_from(FIVE), min_size=1), st.booleans()),
    min_size=1,
    max_size=50,
)


@given(frames, st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=examples(200), deadline=None)
def test_whatever_applies_the_samples_are_what_was_asked(
    rows: list[tuple[str, frozenset[int], bool]], each: int, seed: int
) -> None:
    drawn = [DrawnAnswer(key, stratum, 0.5, taken) for key, (stratum, _, taken) in enumerate(rows)]
    fitting = {key: tuple(sorted(own)) for key, (_, own, _) in enumerate(rows)}
    asked, samples = rotate_criteria(drawn, fitting, each, np.random.default_rng(seed))
    assert set(asked) == {one.key for one in drawn if one.sampled}
    for key, several in asked.items():
        assert several <= set(fitting[key])
        assert len(several) == min(each, len(fitting[key]))
    for criterion, found in samples.items():
        assert [one.key for one in found] == [one.key for one in drawn]
        mine = [one for one in found if criterion in fitting[one.key]]
        assert {one.key for one in mine if one.sampled} == {key for key, own in asked.items() if criterion in own}
        for one in mine:
            assert one.probability == pytest.approx(0.5 * min(1.0, each / len(fitting[one.key])))
        taken = Counter(one.stratum for one in mine if one.sampled)
        size = Counter(one.stratum for one in mine if one.stratum != FAILED)
        if sum(taken[stratum] for stratum in size) >= 2:
            assert all(taken[stratum] >= min(2, count) for stratum, count in size.items())


def test_any_criterion_is_asked_of_any_answer_with_its_probability() -> None:
    drawn, fitting = sample("a" * 7, 7), dict.fromkeys(range(7), FIVE)
    times = Counter(
        (key, one)
        for seed in range(2_000)
        for key, several in rotate_criteria(drawn, fitting, 3, np.random.default_rng(seed))[0].items()
        for one in several
    )
    # 3 / 5 of 2,000 are 1,200; five standard deviations are 5 sqrt(2000 x .6 x .4) = 110
    assert all(abs(times[key, one] - 1_200) < 110 for key in range(7) for one in FIVE)


N, PARTS, WEIGHT = 240, 6, {0: 0.3, 1: 0.25, 2: 0.2, 3: 0.1, 4: 0.1, 5: 0.05}


def truth(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Judge, experts and where each part applies: the last two parts to the hard half alone, which experts rate lower
    there than the judge does."""
    hard = np.arange(N) % 2 == 1
    judge = random.choice([0.25, 0.5, 0.75, 1.0], size=(N, PARTS), p=[0.1, 0.2, 0.3, 0.4])
    gap = random.choice([0.0, 0.25, 0.5], size=(N, PARTS), p=[0.5, 0.3, 0.2]) * np.where(hard, 1.0, 0.2)[:, None]
    applies = np.ones((N, PARTS), dtype=bool)
    applies[~hard, 4:] = False
    return judge, np.clip(judge - gap, 0.0, 1.0), applies


World = tuple[np.ndarray, np.ndarray, np.ndarray]


def estimated(world: World, seed: int, strategy: Strategy, *, shares: bool = True) -> Estimate:
    """The corrected overall score from 110 answers, each rated by three of its parts; without ``shares`` as if every
    answer drawn had been asked everything."""
    judge, experts, applies = world
    members = [Member(key, "ab"[key % 2], float(judge[key].mean())) for key in range(N)]
    params = DrawParams(per_stratum=min_stratum_size(PARTS, 3))
    drawn = draw(members, strategy, 110, seed, params)
    fitting = {key: tuple(np.flatnonzero(applies[key]).tolist()) for key in range(N)}
    _asked, samples = rotate_criteria(drawn, fitting, 3, np.random.default_rng([seed, 3]))
    base = {one.key: one for one in drawn}
    components = []
    for part, weight in WEIGHT.items():
        answers = []
        for one in samples[part]:
            if not applies[one.key, part]:
                continue
            state = ReviewState.RATED if one.sampled else ReviewState.NOT_SAMPLED
            rating = float(experts[one.key, part]) if one.sampled else None
            chance = one.probability if shares else base[one.key].probability
            answers.append(FrameAnswer(one.key, float(judge[one.key, part]), rating, state, chance, one.stratum))
        components.append(Component(f"part {part}", frame_of(answers), 0.0, 1.0, weight, judged=True))
    found = corrected_overall(components)
    assert isinstance(found, Estimate), found
    return found


def expected(world: World) -> float:
    _judge, experts, applies = world
    return float(sum(weight * experts[applies[:, part], part].mean() for part, weight in WEIGHT.items()))


@pytest.mark.parametrize("strategy", [Strategy.STRATIFIED, Strategy.UNIFORM])
@pytest.mark.slow
def test_the_corrected_overall_score_is_unbiased_and_its_interval_holds(strategy: Strategy) -> None:
    world = truth(np.random.default_rng(7))
    true = expected(world)
    assert expected((world[0], world[0], world[2])) - true > 0.1  # the judge is far off
    found = [estimated(world, seed, strategy) for seed in range(200)]
    values = np.array([one.value for one in found])
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - true) < 3 * error < 0.01
    held = np.mean([one.low <= true <= one.high for one in found])
    assert held > 0.90  # 0.95, less three standard deviations of 200 draws


@pytest.mark.slow
def test_without_the_stored_shares_it_would_be_biased() -> None:
    # of a part that all have, 3 / 4 of the easy and 3 / 6 of the hard answers are asked, in one stratum
    world = truth(np.random.default_rng(7))
    values = np.array([estimated(world, seed, Strategy.UNIFORM, shares=False).value for seed in range(150)])
    assert values.mean() - expected(world) > 3 * values.std(ddof=1) / np.sqrt(150)
