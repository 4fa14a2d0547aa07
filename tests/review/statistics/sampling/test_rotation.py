"""Rotated criteria: assignment, inclusion probabilities and unbiased estimates."""

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
from tests.examples import max_examples
from tests.review.statistics.correction.frames import FrameAnswer, frame_of

FIVE = (1, 2, 3, 4, 5)


def sample_answers(strata: str, sampled_count: int) -> list[DrawnAnswer]:
    """Answers in strata of one letter each, the first ``taken`` of each sampled."""
    counts: Counter[str] = Counter()
    answers = []
    for key, stratum in enumerate(strata):
        answers.append(
            DrawnAnswer(key, stratum, sampled_count / strata.count(stratum), counts[stratum] < sampled_count)
        )
        counts[stratum] += 1
    return answers


def test_criteria_are_assigned_equally_often_with_true_probabilities() -> None:
    answers = sample_answers("a" * 20, 10)
    criteria_by_answer, samples = rotate_criteria(answers, dict.fromkeys(range(20), FIVE), 3, np.random.default_rng(1))
    # 10 answers x 3 = 30 places round a ring of 5: every criterion 6 times
    assert Counter(entry for criteria in criteria_by_answer.values() for entry in criteria) == dict.fromkeys(FIVE, 6)
    assert {len(criteria) for criteria in criteria_by_answer.values()} == {3}
    for criterion in FIVE:
        # drawn with 10 / 20, asked with 3 / 5
        assert {round(entry.probability or 0, 9) for entry in samples[criterion]} == {0.3}
        assert sum(entry.sampled for entry in samples[criterion]) == 6


def test_rarely_applicable_criteria_are_assigned_more_often() -> None:
    applicable = {key: FIVE if key < 10 else (1, 2) for key in range(20)}
    criteria_by_answer, samples = rotate_criteria(sample_answers("a" * 20, 20), applicable, 3, np.random.default_rng(2))
    assert all(criteria_by_answer[key] == {1, 2} for key in range(10, 20))
    first = {answer.key: answer for answer in samples[1]}
    # 3 of 5 criteria of the first ten answers, both of the two that apply to the others
    assert (first[0].probability, first[10].probability) == (pytest.approx(0.6), 1.0)
    # 3 does not apply to the others: nothing of theirs is unknown, they count as sampled
    third = {answer.key: answer for answer in samples[3]}
    assert (third[10].probability, third[10].sampled) == (1.0, True)


def test_stratum_too_thin_for_a_criterion_is_merged_with_the_next() -> None:
    # of 4 sampled answers in each of a, b and c each criterion of ten is asked 0.3 x 4 times: once or twice
    answers = sample_answers("aaaaaaaabbbbbbbbcccccccc", 4)
    _asked, samples = rotate_criteria(answers, dict.fromkeys(range(24), tuple(range(10))), 3, np.random.default_rng(3))
    for criterion_sample in samples.values():
        assert all(
            count >= 2 for count in Counter(answer.stratum for answer in criterion_sample if answer.sampled).values()
        )
    assert min_stratum_size(10, 3) == 7  # 2 x 10 / 3, rounded up, gives each criterion two
    assert min_stratum_size(2, 3) == 2


frames = st.lists(
    st.tuples(st.sampled_from(["a", "b", FAILED]), st.frozensets(st.sampled_from(FIVE), min_size=1), st.booleans()),
    min_size=1,
    max_size=50,
)


@given(frames, st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=max_examples(200), deadline=None)
def test_samples_equal_the_assigned_criteria(
    rows: list[tuple[str, frozenset[int], bool]], per_answer: int, seed: int
) -> None:
    answers = [DrawnAnswer(key, stratum, 0.5, sampled) for key, (stratum, _, sampled) in enumerate(rows)]
    applicable = {key: tuple(sorted(own)) for key, (_, own, _) in enumerate(rows)}
    criteria_by_answer, samples = rotate_criteria(answers, applicable, per_answer, np.random.default_rng(seed))
    assert set(criteria_by_answer) == {answer.key for answer in answers if answer.sampled}
    for key, criteria in criteria_by_answer.items():
        assert criteria <= set(applicable[key])
        assert len(criteria) == min(per_answer, len(applicable[key]))
    for criterion, sample in samples.items():
        assert [answer.key for answer in sample] == [answer.key for answer in answers]
        applicable_sample = [answer for answer in sample if criterion in applicable[answer.key]]
        assert {answer.key for answer in applicable_sample if answer.sampled} == {
            key for key, own in criteria_by_answer.items() if criterion in own
        }
        for answer in applicable_sample:
            assert answer.probability == pytest.approx(0.5 * min(1.0, per_answer / len(applicable[answer.key])))
        sampled = Counter(answer.stratum for answer in applicable_sample if answer.sampled)
        size = Counter(answer.stratum for answer in applicable_sample if answer.stratum != FAILED)
        if sum(sampled[stratum] for stratum in size) >= 2:
            assert all(sampled[stratum] >= min(2, count) for stratum, count in size.items())


def test_assignment_frequency_matches_the_probability() -> None:
    answers, applicable = sample_answers("a" * 7, 7), dict.fromkeys(range(7), FIVE)
    times = Counter(
        (key, criterion)
        for seed in range(2_000)
        for key, criteria in rotate_criteria(answers, applicable, 3, np.random.default_rng(seed))[0].items()
        for criterion in criteria
    )
    # 3 / 5 of 2,000 are 1,200; five standard deviations are 5 sqrt(2000 x .6 x .4) = 110
    assert all(abs(times[key, criterion] - 1_200) < 110 for key in range(7) for criterion in FIVE)


N, PARTS, WEIGHT = 240, 6, {0: 0.3, 1: 0.25, 2: 0.2, 3: 0.1, 4: 0.1, 5: 0.05}


def simulate_world(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Judge values, expert values and applicability of each part.

    The last two parts apply to the hard half only, which experts rate lower than the judge does."""
    is_hard = np.arange(N) % 2 == 1
    judge = random.choice([0.25, 0.5, 0.75, 1.0], size=(N, PARTS), p=[0.1, 0.2, 0.3, 0.4])
    gap = random.choice([0.0, 0.25, 0.5], size=(N, PARTS), p=[0.5, 0.3, 0.2]) * np.where(is_hard, 1.0, 0.2)[:, None]
    applies = np.ones((N, PARTS), dtype=bool)
    applies[~is_hard, 4:] = False
    return judge, np.clip(judge - gap, 0.0, 1.0), applies


World = tuple[np.ndarray, np.ndarray, np.ndarray]


def estimate_overall(world: World, seed: int, strategy: Strategy, *, shares: bool = True) -> Estimate:
    """Corrected overall score from 110 answers, each rated on three of its parts.

    Without ``shares`` the probabilities are those of full questions."""
    judge, experts, applies = world
    members = [Member(key, "ab"[key % 2], float(judge[key].mean())) for key in range(N)]
    params = DrawParams(per_stratum=min_stratum_size(PARTS, 3))
    sample = draw(members, strategy, 110, seed, params)
    applicable = {key: tuple(np.flatnonzero(applies[key]).tolist()) for key in range(N)}
    _asked, samples = rotate_criteria(sample, applicable, 3, np.random.default_rng([seed, 3]))
    base = {answer.key: answer for answer in sample}
    components = []
    for part, weight in WEIGHT.items():
        answers = []
        for answer in samples[part]:
            if not applies[answer.key, part]:
                continue
            state = ReviewState.RATED if answer.sampled else ReviewState.NOT_SAMPLED
            rating = float(experts[answer.key, part]) if answer.sampled else None
            chance = answer.probability if shares else base[answer.key].probability
            answers.append(
                FrameAnswer(answer.key, float(judge[answer.key, part]), rating, state, chance, answer.stratum)
            )
        components.append(Component(f"part {part}", frame_of(answers), 0.0, 1.0, weight, judged=True))
    corrected = corrected_overall(components)
    assert isinstance(corrected, Estimate), corrected
    return corrected


def true_overall(world: World) -> float:
    _judge, experts, applies = world
    return float(sum(weight * experts[applies[:, part], part].mean() for part, weight in WEIGHT.items()))


@pytest.mark.parametrize("strategy", [Strategy.STRATIFIED, Strategy.UNIFORM])
@pytest.mark.slow
def test_corrected_overall_score_is_unbiased_and_its_interval_covers(strategy: Strategy) -> None:
    world = simulate_world(np.random.default_rng(7))
    true_value = true_overall(world)
    assert true_overall((world[0], world[0], world[2])) - true_value > 0.1  # the judge is far off
    estimates = [estimate_overall(world, seed, strategy) for seed in range(200)]
    values = np.array([estimate.value for estimate in estimates])
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - true_value) < 3 * error < 0.01
    coverage = np.mean([estimate.low <= true_value <= estimate.high for estimate in estimates])
    assert coverage > 0.90  # 0.95, less three standard deviations of 200 draws


@pytest.mark.slow
def test_ignoring_the_stored_shares_gives_a_biased_score() -> None:
    # of a part that all have, 3 / 4 of the easy and 3 / 6 of the hard answers are asked, in one stratum
    world = simulate_world(np.random.default_rng(7))
    values = np.array([estimate_overall(world, seed, Strategy.UNIFORM, shares=False).value for seed in range(150)])
    assert values.mean() - true_overall(world) > 3 * values.std(ddof=1) / np.sqrt(150)
