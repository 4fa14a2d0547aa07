"""Figures of a pool, the draw from it, and what is estimated from a sample: by hand, by derivative, over many draws."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics.retrieval import ndcg_at_k, precision_at_k, recall_at_k
from review.statistics.correction.outcome import Method, WithheldReason
from review.statistics.retrieval_truth.draw import (
    PassageDraw,
    above_first_relevant,
    draw_passages,
    draw_probabilities,
    guess_relevance,
)
from review.statistics.retrieval_truth.estimates import (
    CorrectedFigure,
    estimate,
    estimate_for_similar_questions,
    first_relevant_figures,
)
from review.statistics.retrieval_truth.pool import Pool, RetrievalMetric, ideal_gain, pool_figures

NAN = math.nan


def a_pool(
    seed: int = 0, questions: int = 8, passages: int = 24, systems: int = 3, k: int = 5
) -> tuple[Pool, np.ndarray]:
    """A made-up pool, 60% of it labelled, with a judge who is right three times in four, and the truth."""
    random = np.random.default_rng(seed)
    question = np.repeat(np.arange(questions), passages)
    relevant = (random.random(len(question)) < 0.3).astype(float)
    ranks = np.zeros((systems, len(question)), int)
    for row in ranks:
        for one in range(questions):
            own = np.flatnonzero(question == one)
            score = relevant[own] + random.normal(0, 0.7, passages)
            row[own[np.argsort(-score)[:20]]] = np.arange(1, 21)
    judge = np.where(random.random(len(question)) < 0.75, relevant, 1 - relevant)
    known = np.where(random.random(len(question)) < 0.6, relevant, NAN)
    return Pool(question, ranks, known, judge, k), relevant


def of(
    found: list[CorrectedFigure], metric: RetrievalMetric, system: int = 0, other: int | None = None
) -> CorrectedFigure:
    return next(one for one in found if (one.metric, one.system, one.other) == (metric, system, other))


def test_figures_are_those_of_the_metrics_where_everything_is_labelled() -> None:
    pool, relevant = a_pool()
    found = pool_figures(pool, relevant, pool.sums(relevant), pool.sums(relevant) > 0).value
    for system in range(pool.systems):
        expected = []
        for one in range(pool.questions):
            own = np.flatnonzero(pool.question == one)
            ranked = own[pool.ranks[system, own] > 0]
            ids = [str(at) for at in ranked[np.argsort(pool.ranks[system, ranked])]]
            truth = tuple(str(at) for at in own[relevant[own] > 0])
            question = QuestionSpec(id="q", category="c", text="?", ground_truth_chunk_ids=truth)
            answer = AnswerSpec("", None, tuple(ids), None)
            settings = RuleSettings(k=pool.k)
            expected.append([f(question, answer, settings).value for f in (precision_at_k, recall_at_k, ndcg_at_k)])
        assert found[:, system] == pytest.approx(np.mean(expected, axis=0))


def test_a_difference_is_that_of_the_figures_and_follows_them() -> None:
    pool, relevant = a_pool()
    found = pool_figures(pool, relevant, pool.sums(relevant), np.ones(pool.questions, bool))
    assert found.value[:, 3] == pytest.approx(found.value[:, 0] - found.value[:, 1])
    assert found.value[:, 5] == pytest.approx(found.value[:, 1] - found.value[:, 2])
    assert found.influence[:, 4] == pytest.approx(found.influence[:, 0] - found.influence[:, 2])


def test_influence_is_the_derivative_of_the_figure() -> None:
    pool, relevant = a_pool(questions=3, passages=25)
    somewhere = relevant * 0.7 + 0.11
    least, counted = np.ones(3), np.ones(3, bool)
    found = pool_figures(pool, somewhere, least, counted)
    for at in (0, 7, 40):
        up, down = somewhere.copy(), somewhere.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        slope = (pool_figures(pool, up, least, counted).value - pool_figures(pool, down, least, counted).value) / 2e-5
        assert found.influence[:, :, at] == pytest.approx(slope, abs=1e-6)


def test_the_ideal_gain_by_hand() -> None:
    # 1 / log2(2) = 1, 1 / log2(3) = 0.63093, 1 / log2(4) = 0.5; halfway between one and two: 1 + 0.63093 / 2
    gain, slope = ideal_gain(np.array([0.0, 1.0, 1.5, 2.0, 3.0, 9.0]), 3)
    assert gain == pytest.approx([0, 1, 1.315465, 1.630930, 2.130930, 2.130930], abs=1e-6)
    assert slope == pytest.approx([1, 0.630930, 0.630930, 0.5, 0, 0], abs=1e-6)


def test_a_draw_has_its_size_and_its_probabilities() -> None:
    pool, _ = a_pool()
    drawn = [draw_passages(pool, 40, seed) for seed in range(400)]
    first = drawn[0]
    assert {int(one.sampled.sum()) for one in drawn} == {40}
    assert first.probability.sum() == pytest.approx(40)
    assert (first.probability[~np.isnan(pool.known)] == 0).all()
    assert not first.sampled[~np.isnan(pool.known)].any()
    share = np.mean([one.sampled for one in drawn], axis=0)
    error = np.sqrt(first.probability * (1 - first.probability) / len(drawn))
    assert (np.abs(share - first.probability) <= 4.5 * error + 1e-12).all()
    assert (draw_passages(pool, 40, 7).sampled == draw_passages(pool, 40, 7).sampled).all()


def test_passages_in_the_first_places_and_in_doubt_are_drawn_more_often() -> None:
    pool, _ = a_pool()
    drawn, unlabelled = draw_passages(pool, 20, 0), np.isnan(pool.known)
    on_top = pool.within_k().any(axis=0)
    assert drawn.probability[unlabelled & on_top].mean() > 2 * drawn.probability[unlabelled & ~on_top].mean()


def test_every_unlabelled_passage_can_be_drawn_and_a_large_draw_takes_all() -> None:
    pool, _ = a_pool()
    unlabelled = np.isnan(pool.known)
    assert (draw_passages(pool, 20, 0).probability[unlabelled] > 0.3 * 20 / unlabelled.sum() * 0.99).all()
    everything = draw_passages(pool, 10_000, 0)
    assert (everything.sampled == unlabelled).all()
    assert (everything.probability[unlabelled] == 1).all()


def test_proportional_probabilities_by_hand() -> None:
    # 0.7 x (0.8, 0.1, 0.1) + 0.3 / 3 = 0.66, 0.17, 0.17; times 2 the first is above 1, the others share 1 evenly
    found = draw_probabilities(np.array([8.0, 1.0, 1.0]), 2, np.zeros(3, bool))
    assert found == pytest.approx([1.0, 0.5, 0.5])
    # without one that is sure: 0.66, 0.17, 0.17 of a size of 1
    assert draw_probabilities(np.array([8.0, 1.0, 1.0]), 1, np.zeros(3, bool)) == pytest.approx([0.66, 0.17, 0.17])
    assert draw_probabilities(np.array([8.0, 1.0, 1.0]), 2, np.array([False, True, False]))[1] == 1.0
    assert draw_probabilities(np.zeros(4), 2, np.zeros(4, bool)) == pytest.approx([0.5] * 4)


def test_a_guess_is_learnt_from_labels_or_is_the_judges_word() -> None:
    pool, relevant = a_pool()
    guess = guess_relevance(pool)
    assert guess[relevant > 0].mean() - guess[relevant == 0].mean() > 0.3
    unlabelled = Pool(pool.question, pool.ranks, np.full(len(relevant), NAN), pool.judge, pool.k)
    assert set(guess_relevance(unlabelled)) == {0.1, 0.9}
    silent = Pool(pool.question, pool.ranks, np.full(len(relevant), NAN), np.full(len(relevant), NAN), pool.k)
    assert set(guess_relevance(silent)) == {0.5}
    only_right = Pool(pool.question, pool.ranks, np.where(relevant > 0, 1.0, NAN), pool.judge, pool.k)
    assert set(guess_relevance(only_right)) == {0.1, 0.9}


def test_a_labelled_pool_without_a_judge_still_gives_a_guess() -> None:
    pool, relevant = a_pool()
    silent = Pool(pool.question, pool.ranks, pool.known, np.full(len(relevant), NAN), pool.k)
    guess = guess_relevance(silent)
    assert ((guess > 0) & (guess < 1)).all()
    assert guess[relevant > 0].mean() > guess[relevant == 0].mean()


def test_estimates_are_right_on_average_and_their_intervals_cover() -> None:
    pool, relevant = a_pool()
    truth = pool_figures(pool, relevant, pool.sums(relevant), pool.sums(relevant) > 0).value
    values, covered = [], []
    for seed in range(120):
        drawn = draw_passages(pool, 45, seed)
        told = estimate(pool, drawn, np.where(drawn.sampled, relevant, NAN)).figures
        value, low, high = (
            np.array(part).reshape(3, -1) for part in zip(*((o.value, o.low, o.high) for o in told), strict=True)
        )
        values.append(value)
        covered.append((low <= truth) & (truth <= high))
    error = np.std(values, axis=0) / math.sqrt(len(values))
    assert (np.abs(np.mean(values, axis=0) - truth)[0] <= 4 * error[0]).all()  # precision: exactly unbiased
    assert (np.abs(np.mean(values, axis=0) - truth) <= 0.3 * np.std(values, axis=0)).all()  # ratios: nearly
    assert np.mean(covered) > 0.94
    assert np.mean(covered, axis=0).min() > 0.85


def test_a_wrong_guess_shifts_nothing() -> None:
    pool, relevant = a_pool()
    truth = pool_figures(pool, relevant, pool.sums(relevant), pool.sums(relevant) > 0).value
    values = []
    for seed in range(120):
        drawn = draw_passages(pool, 60, seed)
        wrong = PassageDraw(1.0 - drawn.guess, drawn.probability, drawn.sampled)
        values.append(
            of(
                list(estimate(pool, wrong, np.where(drawn.sampled, relevant, NAN)).figures), RetrievalMetric.PRECISION
            ).value
        )
    assert abs(np.mean(values) - truth[0, 0]) <= 4 * np.std(values) / math.sqrt(120)


def test_half_the_ratings_of_a_draw_count_twice() -> None:
    pool, relevant = a_pool()
    drawn = draw_passages(pool, 60, 3)
    order = np.random.default_rng(0).permutation(np.flatnonzero(drawn.sampled))
    rated = np.full(len(relevant), NAN)
    rated[order[:30]] = relevant[order[:30]]
    found = estimate(pool, drawn, rated)
    assert (found.drawn, found.rated) == (60, 30)
    halved = PassageDraw(drawn.guess, drawn.probability / 2, drawn.sampled)
    rest = np.full(len(relevant), NAN)
    rest[order[:30]] = relevant[order[:30]]
    as_drawn = PassageDraw(drawn.guess, halved.probability, ~np.isnan(rest))
    both = (of(list(one.figures), RetrievalMetric.NDCG) for one in (found, estimate(pool, as_drawn, rest)))
    one, other = both
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


def test_a_complete_pool_is_a_census() -> None:
    pool, relevant = a_pool()
    drawn = draw_passages(pool, 10_000, 0)
    found = estimate(pool, drawn, np.where(drawn.sampled, relevant, NAN))
    truth = pool_figures(pool, relevant, pool.sums(relevant), pool.sums(relevant) > 0).value
    one = of(list(found.figures), RetrievalMetric.RECALL, 1)
    assert (one.value, one.low, one.high, one.method) == (
        pytest.approx(truth[1, 1]), pytest.approx(truth[1, 1]), pytest.approx(truth[1, 1]), Method.CENSUS,
    )  # fmt: skip


def test_too_few_ratings_and_too_many_without_an_answer_are_withheld() -> None:
    pool, relevant = a_pool()
    drawn = draw_passages(pool, 40, 0)
    at = np.flatnonzero(drawn.sampled)
    rated = np.full(len(relevant), NAN)
    rated[at[:19]] = relevant[at[:19]]
    assert {one.withheld for one in estimate(pool, drawn, rated).figures} == {WithheldReason.TOO_FEW_LABELS}
    rated[at[:30]] = relevant[at[:30]]
    assert {one.withheld for one in estimate(pool, drawn, rated, unjudgeable=3).figures} == {None}
    assert {one.withheld for one in estimate(pool, drawn, rated, unjudgeable=4).figures} == {
        WithheldReason.NON_RESPONSE
    }


def test_recall_and_ndcg_leave_out_questions_without_a_known_relevant_passage() -> None:
    # two questions with two passages each, one system, k = 1: only the first question has a relevant one
    question, ranks = np.array([0, 0, 1, 1]), np.array([[1, 2, 1, 2]])
    pool = Pool(question, ranks, np.array([0.0, 1.0, NAN, NAN]), np.full(4, NAN), 1)
    drawn = draw_passages(pool, 2, 0)
    found = estimate(pool, drawn, np.array([NAN, NAN, 0.0, 0.0]))
    assert (found.questions, found.with_relevant) == (2, 1)
    told = {metric: of(list(found.figures), metric).value for metric in RetrievalMetric}
    assert told == {RetrievalMetric.PRECISION: 0.0, RetrievalMetric.RECALL: 0.0, RetrievalMetric.NDCG: 0.0}
    nothing = Pool(question, ranks, np.array([0.0, 0.0, NAN, NAN]), np.full(4, NAN), 1)
    none = estimate(nothing, drawn, np.array([NAN, NAN, 0.0, 0.0]))
    assert of(list(none.figures), RetrievalMetric.RECALL).withheld is WithheldReason.NO_VALUES
    assert of(list(none.figures), RetrievalMetric.PRECISION).value == 0.0


def test_hit_and_mrr_are_told_only_where_nothing_is_unknown_above_the_first_relevant_one() -> None:
    # ranks 1, 2, 3 of two questions; the second question's first place is unknown
    pool = Pool(
        np.array([0, 0, 0, 1, 1, 1]),
        np.array([[1, 2, 3, 1, 2, 3]]),
        np.array([0, 1, NAN, NAN, 1, 0]),
        np.full(6, NAN),
        3,
    )
    nobody = np.full(6, NAN)
    assert [(one.hit, one.undecided) for one in first_relevant_figures(pool, nobody)] == [(None, 1)]
    needed = above_first_relevant(pool)
    assert needed.tolist() == [False, False, False, True, False, False]
    (found,) = first_relevant_figures(pool, np.array([NAN, NAN, NAN, 0.0, NAN, NAN]))
    assert (found.hit, found.reciprocal_rank) == (1.0, pytest.approx((1 / 2 + 1 / 2) / 2))
    assert draw_passages(pool, 1, 0, first_relevant=True).sampled.tolist() == needed.tolist()


def test_what_cannot_be_drawn_is_refused() -> None:
    full = Pool(np.array([0, 0]), np.array([[1, 2]]), np.array([1.0, 0.0]), np.full(2, NAN), 2)
    with pytest.raises(DomainError, match="nothing_to_rate"):
        draw_passages(full, 5, 0)
    unknown = Pool(np.array([0, 0]), np.array([[1, 2]]), np.full(2, NAN), np.full(2, NAN), 2)
    with pytest.raises(DomainError, match="too_few_for_first"):
        draw_passages(unknown, 1, 0, first_relevant=True)
    with pytest.raises(ValueError, match="at least one"):
        draw_passages(unknown, 0, 0)
    with pytest.raises(ValueError, match="row for each system"):
        Pool(np.array([0]), np.array([[1, 2]]), np.array([1.0]), np.array([NAN]), 2)


def worked_example() -> CorrectedFigure:
    """Forty questions, two systems, k = 1; A's forty passages have no label, twenty of them are rated and twelve are
    relevant. B's passages are labelled, half of them relevant."""
    question = np.tile(np.arange(40), 2)
    ranks = np.array([[1] * 40 + [0] * 40, [0] * 40 + [1] * 40])
    known = np.array([NAN] * 40 + [1.0, 0.0] * 20)
    pool = Pool(question, ranks, known, np.full(80, NAN), 1)
    sampled = np.array([True] * 20 + [False] * 60)
    drawn = PassageDraw(np.full(80, 0.5), np.array([0.5] * 40 + [0.0] * 40), sampled)
    rated = np.array([1.0] * 12 + [0.0] * 8 + [NAN] * 60)
    return of(list(estimate(pool, drawn, rated).figures), RetrievalMetric.PRECISION)


def test_the_worked_example_of_the_docs() -> None:
    # value: 0.5 + (12 x 0.5 - 8 x 0.5) / 0.5 / 40 = 0.6. Parts z = +-0.025 with mean 0.005 over twenty:
    # 20/19 x 0.5 x (20 x 0.025^2 - 20 x 0.005^2) = 0.0063158; expected 40 x 0.25 x (1 - 0.5) / 0.5 / 40^2 = 0.00625
    found = worked_example()
    assert found.value == pytest.approx(0.6)
    seen, expected = 20 / 19 * 0.5 * (20 * 0.025**2 - 20 * 0.005**2), 0.00625
    half = 2.0930240544 * math.sqrt(seen + 0.75 * expected)
    assert (found.low, found.high) == (pytest.approx(0.6 - half), pytest.approx(0.6 + half))
    text = (Path(__file__).parents[4] / "docs/retrieval-truth.md").read_text(encoding="utf-8")
    for said in (f"{seen:.5f}", f"{expected:.5f}", f"{half:.2f}", f"{found.low:.2f} to {found.high:.2f}"):
        assert said in text


def test_an_interval_goes_no_further_than_unrated_passages_can_bring_it() -> None:
    """One question, k = 5: four relevant passages are known, all in the first five places. Of 200 below them 20 are
    rated, one is relevant. Recall lies between 4 / (4 + 1 + 180), all the others relevant, and 4 / (4 + 1), none. The
    estimate has 4 + 200 x .01 + (.99 - 19 x .01) / .1 = 14 relevant ones."""
    size = 205
    relevant = np.arange(size) < 4
    known = np.where(np.arange(size) < 5, relevant, NAN)
    pool = Pool(np.zeros(size, int), np.arange(1, size + 1)[None], known, np.full(size, NAN), 5)
    sampled = (np.arange(size) >= 5) & (np.arange(size) < 25)
    drawn = PassageDraw(np.full(size, 0.01), np.where(np.isnan(known), 0.1, 0.0), sampled)
    found = estimate(pool, drawn, np.where(sampled, np.arange(size) == 5, NAN))
    recall = of(list(found.figures), RetrievalMetric.RECALL)
    assert (recall.value, recall.low, recall.high) == pytest.approx((4 / 14, 4 / 185, 4 / 5))


def test_an_interval_of_recall_reaches_further_up_than_down() -> None:
    """One question, k = 5: four relevant passages are known in the first places. Of 200 others with the guess .5 a
    hundred are rated, fifty are relevant: 4 + 100 relevant ones are estimated, recall 4 / 104. Each rated one is off by
    1, so that the variance of their number is .5 x 100 + 3/4 x 200 x .25 = 87.5: high is 4 / (104 - t root 87.5).
    Linearised, with n / (n - 1), it is 88.005: low is 4 / 104 x (1 - t root 88.005 / 104)."""
    size = 205
    at = np.arange(size)
    pool = Pool(np.zeros(size, int), at[None] + 1, np.where(at < 5, at < 4, NAN), np.full(size, NAN), 5)
    sampled = (at >= 5) & (at < 105)
    drawn = PassageDraw(np.full(size, 0.5), np.where(at < 5, 0.0, 0.5), sampled)
    found = estimate(pool, drawn, np.where(sampled, at % 2 == 0, NAN))
    recall, t = of(list(found.figures), RetrievalMetric.RECALL), 1.9842170
    assert recall.value == pytest.approx(4 / 104)
    assert recall.high == pytest.approx(4 / (104 - t * math.sqrt(87.5)))
    assert recall.low == pytest.approx(4 / 104 * (1 - t * math.sqrt(50 * 100 / 99 + 37.5) / 104))


def test_for_questions_like_these_by_hand() -> None:
    """Forty questions, k = 1, nothing labelled, 20 drawn with p = .5 and the guess .5, of which 12 are relevant. A
    question's estimate is .5 + .5 / .5 = 1.5 where its passage is relevant, -.5 where not, .5 where not rated: mean .6.
    Squares: 12 x .9^2 + 8 x 1.1^2 + 20 x .1^2 = 19.6; variance 40/39 x 19.6 / 40^2 = .012564; with 3/4 of the .00625
    that the guess expects .017252, root .13135; two by two in a group the signs that meet decide."""
    n = 40
    pool = Pool(np.arange(n), np.ones((1, n), int), np.full(n, NAN), np.full(n, NAN), 1)
    sampled = np.arange(n) < 20
    drawn = PassageDraw(guess=np.full(n, 0.5), probability=np.full(n, 0.5), sampled=sampled)
    rated = np.where(sampled, (np.arange(n) < 12).astype(float), NAN)
    found = estimate_for_similar_questions(pool, drawn, rated, list(range(n)))[RetrievalMetric.PRECISION, 0, None]
    assert isinstance(found, tuple)
    value, deviation = found
    assert value == pytest.approx(0.6)
    assert deviation is not None
    assert (deviation.value, deviation.freedom) == (pytest.approx(0.6), pytest.approx(39))
    assert deviation.error == pytest.approx(0.13135, abs=1e-5)
    assert sum(deviation.sums.values()) == pytest.approx(0)
    grouped = estimate_for_similar_questions(pool, drawn, rated, [at // 2 for at in range(n)])[
        RetrievalMetric.PRECISION, 0, None
    ]
    assert isinstance(grouped, tuple)
    assert grouped[1] is not None
    # 6 x 1.8^2 + 4 x 2.2^2 + 10 x .2^2 = 39.2; 20/19 x 39.2 / 1600 + .0046875
    assert grouped[1].error == pytest.approx(math.sqrt(20 / 19 * 39.2 / 1600 + 0.0046875))
    assert estimate_for_similar_questions(pool, drawn, rated, ["one"] * n)[RetrievalMetric.PRECISION, 0, None] == (
        value,
        None,
    )
    few = estimate_for_similar_questions(pool, drawn, np.where(np.arange(n) < 5, rated, NAN), list(range(n)))
    assert set(few.values()) == {WithheldReason.TOO_FEW_LABELS}


@pytest.mark.slow
def test_intervals_for_questions_like_these_cover_those_of_many_more() -> None:
    """Samples of 30 questions out of 6,000, of each a draw of 100 passages: 19 of 20 intervals hold the figures of all
    questions, of each system and of their difference."""
    many, truth = a_pool(seed=5, questions=6000, systems=2)
    first = np.flatnonzero(np.diff(many.question, prepend=-1))
    known, truth = many.known.copy(), truth.copy()
    known[first] = truth[first] = 1.0  # every question has a relevant passage that is known
    wanted = pool_figures(many, truth, many.sums(truth), np.ones(6000, dtype=bool)).value
    held = np.zeros((3, 3))
    for one in range(200):
        own = (many.question >= 30 * one) & (many.question < 30 * one + 30)
        pool = Pool(many.question[own] - 30 * one, many.ranks[:, own], known[own], many.judge[own], many.k)
        drawn = draw_passages(pool, 100, one)
        told = estimate_for_similar_questions(pool, drawn, np.where(drawn.sampled, truth[own], NAN), list(range(30)))
        for at, found in enumerate(told.values()):
            assert isinstance(found, tuple)
            assert found[1] is not None
            held.flat[at] += abs(found[0] - wanted.flat[at]) <= found[1].half_width(0.95)
    assert (held / 200 >= 0.92).all()
    assert held.mean() / 200 >= 0.94
