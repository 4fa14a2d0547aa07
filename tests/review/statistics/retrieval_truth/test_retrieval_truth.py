"""Retrieval metrics of a pool, the draw from it and estimates from a sample: by hand, by derivative, over many
draws."""

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


def make_pool(
    seed: int = 0, questions: int = 8, passages: int = 24, systems: int = 3, k: int = 5
) -> tuple[Pool, np.ndarray]:
    """A random pool, 60% of it labelled, with a judge correct three times in four; returns pool and true relevance."""
    random = np.random.default_rng(seed)
    question = np.repeat(np.arange(questions), passages)
    relevant = (random.random(len(question)) < 0.3).astype(float)
    ranks = np.zeros((systems, len(question)), int)
    for row in ranks:
        for question_index in range(questions):
            own = np.flatnonzero(question == question_index)
            score = relevant[own] + random.normal(0, 0.7, passages)
            row[own[np.argsort(-score)[:20]]] = np.arange(1, 21)
    judge = np.where(random.random(len(question)) < 0.75, relevant, 1 - relevant)
    labels = np.where(random.random(len(question)) < 0.6, relevant, NAN)
    return Pool(question, ranks, labels, judge, k), relevant


def figure_of(
    figures: list[CorrectedFigure], metric: RetrievalMetric, system: int = 0, other: int | None = None
) -> CorrectedFigure:
    return next(figure for figure in figures if (figure.metric, figure.system, figure.other) == (metric, system, other))


def test_fully_labelled_pool_equals_the_plain_metrics() -> None:
    pool, relevant = make_pool()
    values = pool_figures(pool, relevant, pool.sums(relevant), pool.sums(relevant) > 0).value
    for system in range(pool.systems):
        expected = []
        for question_index in range(pool.questions):
            own = np.flatnonzero(pool.question == question_index)
            ranked = own[pool.ranks[system, own] > 0]
            ids = [str(passage) for passage in ranked[np.argsort(pool.ranks[system, ranked])]]
            truth = tuple(str(passage) for passage in own[relevant[own] > 0])
            question = QuestionSpec(id="q", category="c", text="?", ground_truth_chunk_ids=truth)
            answer = AnswerSpec("", None, tuple(ids), None)
            settings = RuleSettings(k=pool.k)
            expected.append([f(question, answer, settings).value for f in (precision_at_k, recall_at_k, ndcg_at_k)])
        assert values[:, system] == pytest.approx(np.mean(expected, axis=0))


def test_difference_equals_the_difference_of_its_figures() -> None:
    pool, relevant = make_pool()
    figures = pool_figures(pool, relevant, pool.sums(relevant), np.ones(pool.questions, bool))
    assert figures.value[:, 3] == pytest.approx(figures.value[:, 0] - figures.value[:, 1])
    assert figures.value[:, 5] == pytest.approx(figures.value[:, 1] - figures.value[:, 2])
    assert figures.influence[:, 4] == pytest.approx(figures.influence[:, 0] - figures.influence[:, 2])


def test_influence_is_the_derivative_of_the_figure() -> None:
    pool, relevant = make_pool(questions=3, passages=25)
    relevance = relevant * 0.7 + 0.11
    denominators, included = np.ones(3), np.ones(3, bool)
    figures = pool_figures(pool, relevance, denominators, included)
    for i in (0, 7, 40):
        up, down = relevance.copy(), relevance.copy()
        up[i] += 1e-5
        down[i] -= 1e-5
        slope = (
            pool_figures(pool, up, denominators, included).value
            - pool_figures(pool, down, denominators, included).value
        ) / 2e-5
        assert figures.influence[:, :, i] == pytest.approx(slope, abs=1e-6)


def test_ideal_gain_by_hand() -> None:
    # 1 / log2(2) = 1, 1 / log2(3) = 0.63093, 1 / log2(4) = 0.5; halfway between one and two: 1 + 0.63093 / 2
    gain, slope = ideal_gain(np.array([0.0, 1.0, 1.5, 2.0, 3.0, 9.0]), 3)
    assert gain == pytest.approx([0, 1, 1.315465, 1.630930, 2.130930, 2.130930], abs=1e-6)
    assert slope == pytest.approx([1, 0.630930, 0.630930, 0.5, 0, 0], abs=1e-6)


def test_draw_has_its_size_and_probabilities() -> None:
    pool, _ = make_pool()
    draws = [draw_passages(pool, 40, seed) for seed in range(400)]
    first = draws[0]
    assert {int(draw.sampled.sum()) for draw in draws} == {40}
    assert first.probability.sum() == pytest.approx(40)
    assert (first.probability[~np.isnan(pool.known)] == 0).all()
    assert not first.sampled[~np.isnan(pool.known)].any()
    share = np.mean([draw.sampled for draw in draws], axis=0)
    error = np.sqrt(first.probability * (1 - first.probability) / len(draws))
    assert (np.abs(share - first.probability) <= 4.5 * error + 1e-12).all()
    assert (draw_passages(pool, 40, 7).sampled == draw_passages(pool, 40, 7).sampled).all()


def test_top_and_uncertain_passages_are_drawn_more_often() -> None:
    pool, _ = make_pool()
    draw, unlabelled = draw_passages(pool, 20, 0), np.isnan(pool.known)
    in_top_k = pool.within_k().any(axis=0)
    assert draw.probability[unlabelled & in_top_k].mean() > 2 * draw.probability[unlabelled & ~in_top_k].mean()


def test_every_unlabelled_passage_can_be_drawn_and_a_large_draw_takes_all() -> None:
    pool, _ = make_pool()
    unlabelled = np.isnan(pool.known)
    assert (draw_passages(pool, 20, 0).probability[unlabelled] > 0.3 * 20 / unlabelled.sum() * 0.99).all()
    full_draw = draw_passages(pool, 10_000, 0)
    assert (full_draw.sampled == unlabelled).all()
    assert (full_draw.probability[unlabelled] == 1).all()


def test_proportional_probabilities_by_hand() -> None:
    # 0.7 x (0.8, 0.1, 0.1) + 0.3 / 3 = 0.66, 0.17, 0.17; times 2 the first is above 1, the others share 1 evenly
    probabilities = draw_probabilities(np.array([8.0, 1.0, 1.0]), 2, np.zeros(3, bool))
    assert probabilities == pytest.approx([1.0, 0.5, 0.5])
    # without one that is sure: 0.66, 0.17, 0.17 of a size of 1
    assert draw_probabilities(np.array([8.0, 1.0, 1.0]), 1, np.zeros(3, bool)) == pytest.approx([0.66, 0.17, 0.17])
    assert draw_probabilities(np.array([8.0, 1.0, 1.0]), 2, np.array([False, True, False]))[1] == 1.0
    assert draw_probabilities(np.zeros(4), 2, np.zeros(4, bool)) == pytest.approx([0.5] * 4)


def test_guess_is_learnt_from_labels_or_taken_from_the_judge() -> None:
    pool, relevant = make_pool()
    guess = guess_relevance(pool)
    assert guess[relevant > 0].mean() - guess[relevant == 0].mean() > 0.3
    unlabelled = Pool(pool.question, pool.ranks, np.full(len(relevant), NAN), pool.judge, pool.k)
    assert set(guess_relevance(unlabelled)) == {0.1, 0.9}
    empty_pool = Pool(pool.question, pool.ranks, np.full(len(relevant), NAN), np.full(len(relevant), NAN), pool.k)
    assert set(guess_relevance(empty_pool)) == {0.5}
    relevant_only = Pool(pool.question, pool.ranks, np.where(relevant > 0, 1.0, NAN), pool.judge, pool.k)
    assert set(guess_relevance(relevant_only)) == {0.1, 0.9}


def test_labelled_pool_without_a_judge_still_gives_a_guess() -> None:
    pool, relevant = make_pool()
    pool_without_judge = Pool(pool.question, pool.ranks, pool.known, np.full(len(relevant), NAN), pool.k)
    guess = guess_relevance(pool_without_judge)
    assert ((guess > 0) & (guess < 1)).all()
    assert guess[relevant > 0].mean() > guess[relevant == 0].mean()


def test_estimates_are_unbiased_and_their_intervals_cover() -> None:
    pool, relevant = make_pool()
    truth = pool_figures(pool, relevant, pool.sums(relevant), pool.sums(relevant) > 0).value
    values, covered = [], []
    for seed in range(120):
        draw = draw_passages(pool, 45, seed)
        figures = estimate(pool, draw, np.where(draw.sampled, relevant, NAN)).figures
        value, low, high = (
            np.array(column).reshape(3, -1) for column in zip(*((o.value, o.low, o.high) for o in figures), strict=True)
        )
        values.append(value)
        covered.append((low <= truth) & (truth <= high))
    error = np.std(values, axis=0) / math.sqrt(len(values))
    assert (np.abs(np.mean(values, axis=0) - truth)[0] <= 4 * error[0]).all()  # precision: exactly unbiased
    assert (np.abs(np.mean(values, axis=0) - truth) <= 0.3 * np.std(values, axis=0)).all()  # ratios: nearly
    assert np.mean(covered) > 0.94
    assert np.mean(covered, axis=0).min() > 0.85


def test_wrong_guess_does_not_bias_the_estimate() -> None:
    pool, relevant = make_pool()
    truth = pool_figures(pool, relevant, pool.sums(relevant), pool.sums(relevant) > 0).value
    values = []
    for seed in range(120):
        draw = draw_passages(pool, 60, seed)
        wrong_draw = PassageDraw(1.0 - draw.guess, draw.probability, draw.sampled)
        values.append(
            figure_of(
                list(estimate(pool, wrong_draw, np.where(draw.sampled, relevant, NAN)).figures),
                RetrievalMetric.PRECISION,
            ).value
        )
    assert abs(np.mean(values) - truth[0, 0]) <= 4 * np.std(values) / math.sqrt(120)


def test_half_rated_draw_equals_a_draw_of_half_the_probability() -> None:
    pool, relevant = make_pool()
    draw = draw_passages(pool, 60, 3)
    order = np.random.default_rng(0).permutation(np.flatnonzero(draw.sampled))
    ratings = np.full(len(relevant), NAN)
    ratings[order[:30]] = relevant[order[:30]]
    truth_estimate = estimate(pool, draw, ratings)
    assert (truth_estimate.drawn, truth_estimate.rated) == (60, 30)
    halved = PassageDraw(draw.guess, draw.probability / 2, draw.sampled)
    half_ratings = np.full(len(relevant), NAN)
    half_ratings[order[:30]] = relevant[order[:30]]
    as_drawn = PassageDraw(draw.guess, halved.probability, ~np.isnan(half_ratings))
    figures = (
        figure_of(list(figure.figures), RetrievalMetric.NDCG)
        for figure in (truth_estimate, estimate(pool, as_drawn, half_ratings))
    )
    figure, half_draw_figure = figures
    assert (figure.value, figure.low, figure.high) == pytest.approx(
        (half_draw_figure.value, half_draw_figure.low, half_draw_figure.high)
    )


def test_complete_pool_is_a_census() -> None:
    pool, relevant = make_pool()
    draw = draw_passages(pool, 10_000, 0)
    truth_estimate = estimate(pool, draw, np.where(draw.sampled, relevant, NAN))
    truth = pool_figures(pool, relevant, pool.sums(relevant), pool.sums(relevant) > 0).value
    recall = figure_of(list(truth_estimate.figures), RetrievalMetric.RECALL, 1)
    assert (recall.value, recall.low, recall.high, recall.method) == (
        pytest.approx(truth[1, 1]), pytest.approx(truth[1, 1]), pytest.approx(truth[1, 1]), Method.CENSUS,
    )  # fmt: skip


def test_too_few_or_unjudgeable_ratings_withhold_the_estimate() -> None:
    pool, relevant = make_pool()
    draw = draw_passages(pool, 40, 0)
    sampled_passages = np.flatnonzero(draw.sampled)
    ratings = np.full(len(relevant), NAN)
    ratings[sampled_passages[:19]] = relevant[sampled_passages[:19]]
    assert {figure.withheld for figure in estimate(pool, draw, ratings).figures} == {WithheldReason.TOO_FEW_LABELS}
    ratings[sampled_passages[:30]] = relevant[sampled_passages[:30]]
    assert {figure.withheld for figure in estimate(pool, draw, ratings, unjudgeable=3).figures} == {None}
    assert {figure.withheld for figure in estimate(pool, draw, ratings, unjudgeable=4).figures} == {
        WithheldReason.NON_RESPONSE
    }


def test_recall_and_ndcg_exclude_questions_without_a_relevant_passage() -> None:
    # two questions with two passages each, one system, k = 1: only the first question has a relevant one
    question, ranks = np.array([0, 0, 1, 1]), np.array([[1, 2, 1, 2]])
    pool = Pool(question, ranks, np.array([0.0, 1.0, NAN, NAN]), np.full(4, NAN), 1)
    draw = draw_passages(pool, 2, 0)
    truth_estimate = estimate(pool, draw, np.array([NAN, NAN, 0.0, 0.0]))
    assert (truth_estimate.questions, truth_estimate.with_relevant) == (2, 1)
    values = {metric: figure_of(list(truth_estimate.figures), metric).value for metric in RetrievalMetric}
    assert values == {RetrievalMetric.PRECISION: 0.0, RetrievalMetric.RECALL: 0.0, RetrievalMetric.NDCG: 0.0}
    pool_without_relevant = Pool(question, ranks, np.array([0.0, 0.0, NAN, NAN]), np.full(4, NAN), 1)
    empty_estimate = estimate(pool_without_relevant, draw, np.array([NAN, NAN, 0.0, 0.0]))
    assert figure_of(list(empty_estimate.figures), RetrievalMetric.RECALL).withheld is WithheldReason.NO_VALUES
    assert figure_of(list(empty_estimate.figures), RetrievalMetric.PRECISION).value == 0.0


def test_hit_and_mrr_need_all_labels_above_the_first_relevant_passage() -> None:
    # ranks 1, 2, 3 of two questions; the second question's first place is unknown
    pool = Pool(
        np.array([0, 0, 0, 1, 1, 1]),
        np.array([[1, 2, 3, 1, 2, 3]]),
        np.array([0, 1, NAN, NAN, 1, 0]),
        np.full(6, NAN),
        3,
    )
    no_ratings = np.full(6, NAN)
    assert [(row.hit, row.undecided) for row in first_relevant_figures(pool, no_ratings)] == [(None, 1)]
    needed = above_first_relevant(pool)
    assert needed.tolist() == [False, False, False, True, False, False]
    (figures,) = first_relevant_figures(pool, np.array([NAN, NAN, NAN, 0.0, NAN, NAN]))
    assert (figures.hit, figures.reciprocal_rank) == (1.0, pytest.approx((1 / 2 + 1 / 2) / 2))
    assert draw_passages(pool, 1, 0, first_relevant=True).sampled.tolist() == needed.tolist()


def test_impossible_draws_are_refused() -> None:
    labelled_pool = Pool(np.array([0, 0]), np.array([[1, 2]]), np.array([1.0, 0.0]), np.full(2, NAN), 2)
    with pytest.raises(DomainError, match="nothing_to_rate"):
        draw_passages(labelled_pool, 5, 0)
    unlabelled_pool = Pool(np.array([0, 0]), np.array([[1, 2]]), np.full(2, NAN), np.full(2, NAN), 2)
    with pytest.raises(DomainError, match="too_few_for_first"):
        draw_passages(unlabelled_pool, 1, 0, first_relevant=True)
    with pytest.raises(ValueError, match="at least one"):
        draw_passages(unlabelled_pool, 0, 0)
    with pytest.raises(ValueError, match="row for each system"):
        Pool(np.array([0]), np.array([[1, 2]]), np.array([1.0]), np.array([NAN]), 2)


def worked_example() -> CorrectedFigure:
    """Forty questions, two systems, k = 1.

    A's forty passages have no label; twenty of them are rated and twelve are relevant. B's passages are labelled, half
    of
    them relevant."""
    question = np.tile(np.arange(40), 2)
    ranks = np.array([[1] * 40 + [0] * 40, [0] * 40 + [1] * 40])
    labels = np.array([NAN] * 40 + [1.0, 0.0] * 20)
    pool = Pool(question, ranks, labels, np.full(80, NAN), 1)
    sampled = np.array([True] * 20 + [False] * 60)
    draw = PassageDraw(np.full(80, 0.5), np.array([0.5] * 40 + [0.0] * 40), sampled)
    ratings = np.array([1.0] * 12 + [0.0] * 8 + [NAN] * 60)
    return figure_of(list(estimate(pool, draw, ratings).figures), RetrievalMetric.PRECISION)


def test_worked_example_of_the_docs() -> None:
    # value: 0.5 + (12 x 0.5 - 8 x 0.5) / 0.5 / 40 = 0.6. Parts z = +-0.025 with mean 0.005 over twenty:
    # 20/19 x 0.5 x (20 x 0.025^2 - 20 x 0.005^2) = 0.0063158; expected 40 x 0.25 x (1 - 0.5) / 0.5 / 40^2 = 0.00625
    figure = worked_example()
    assert figure.value == pytest.approx(0.6)
    variance, expected = 20 / 19 * 0.5 * (20 * 0.025**2 - 20 * 0.005**2), 0.00625
    half_width = 2.0930240544 * math.sqrt(variance + 0.75 * expected)
    assert (figure.low, figure.high) == (pytest.approx(0.6 - half_width), pytest.approx(0.6 + half_width))
    text = (Path(__file__).parents[4] / "docs/retrieval-truth.md").read_text(encoding="utf-8")
    for number in (f"{variance:.5f}", f"{expected:.5f}", f"{half_width:.2f}", f"{figure.low:.2f} to {figure.high:.2f}"):
        assert number in text


def test_interval_is_limited_by_the_unrated_passages() -> None:
    """One question, k = 5: four relevant passages are known, all in the first five places. Of 200 below them 20 are
    rated, one is relevant. Recall lies between 4 / (4 + 1 + 180), all the others relevant, and 4 / (4 + 1), none. The
    estimate has 4 + 200 x .01 + (.99 - 19 x .01) / .1 = 14 relevant ones."""
    size = 205
    relevant = np.arange(size) < 4
    labels = np.where(np.arange(size) < 5, relevant, NAN)
    pool = Pool(np.zeros(size, int), np.arange(1, size + 1)[None], labels, np.full(size, NAN), 5)
    sampled = (np.arange(size) >= 5) & (np.arange(size) < 25)
    draw = PassageDraw(np.full(size, 0.01), np.where(np.isnan(labels), 0.1, 0.0), sampled)
    truth_estimate = estimate(pool, draw, np.where(sampled, np.arange(size) == 5, NAN))
    recall = figure_of(list(truth_estimate.figures), RetrievalMetric.RECALL)
    assert (recall.value, recall.low, recall.high) == pytest.approx((4 / 14, 4 / 185, 4 / 5))


def test_recall_interval_reaches_further_up_than_down() -> None:
    """One question, k = 5: four relevant passages are known in the first places. Of 200 others with the guess .5 a
    hundred are rated, fifty are relevant: 4 + 100 relevant ones are estimated, recall 4 / 104. Each rated one is off by
    1, so that the variance of their number is .5 x 100 + 3/4 x 200 x .25 = 87.5: high is 4 / (104 - t root 87.5).
    Linearised, with n / (n - 1), it is 88.005: low is 4 / 104 x (1 - t root 88.005 / 104)."""
    size = 205
    index = np.arange(size)
    pool = Pool(np.zeros(size, int), index[None] + 1, np.where(index < 5, index < 4, NAN), np.full(size, NAN), 5)
    sampled = (index >= 5) & (index < 105)
    draw = PassageDraw(np.full(size, 0.5), np.where(index < 5, 0.0, 0.5), sampled)
    truth_estimate = estimate(pool, draw, np.where(sampled, index % 2 == 0, NAN))
    recall, t = figure_of(list(truth_estimate.figures), RetrievalMetric.RECALL), 1.9842170
    assert recall.value == pytest.approx(4 / 104)
    assert recall.high == pytest.approx(4 / (104 - t * math.sqrt(87.5)))
    assert recall.low == pytest.approx(4 / 104 * (1 - t * math.sqrt(50 * 100 / 99 + 37.5) / 104))


def test_similar_questions_by_hand() -> None:
    """Forty questions, k = 1, nothing labelled, 20 drawn with p = .5 and the guess .5, of which 12 are relevant. A
    question's estimate is .5 + .5 / .5 = 1.5 where its passage is relevant, -.5 where not, .5 where not rated: mean .6.
    Squares: 12 x .9^2 + 8 x 1.1^2 + 20 x .1^2 = 19.6; variance 40/39 x 19.6 / 40^2 = .012564; with 3/4 of the .00625
    that the guess expects .017252, root .13135; two by two in a group the signs that meet decide."""
    n = 40
    pool = Pool(np.arange(n), np.ones((1, n), int), np.full(n, NAN), np.full(n, NAN), 1)
    sampled = np.arange(n) < 20
    draw = PassageDraw(guess=np.full(n, 0.5), probability=np.full(n, 0.5), sampled=sampled)
    ratings = np.where(sampled, (np.arange(n) < 12).astype(float), NAN)
    estimated = estimate_for_similar_questions(pool, draw, ratings, list(range(n)))[RetrievalMetric.PRECISION, 0, None]
    assert isinstance(estimated, tuple)
    value, deviation = estimated
    assert value == pytest.approx(0.6)
    assert deviation is not None
    assert (deviation.value, deviation.freedom) == (pytest.approx(0.6), pytest.approx(39))
    assert deviation.error == pytest.approx(0.13135, abs=1e-5)
    assert sum(deviation.sums.values()) == pytest.approx(0)
    grouped = estimate_for_similar_questions(pool, draw, ratings, [i // 2 for i in range(n)])[
        RetrievalMetric.PRECISION, 0, None
    ]
    assert isinstance(grouped, tuple)
    assert grouped[1] is not None
    # 6 x 1.8^2 + 4 x 2.2^2 + 10 x .2^2 = 39.2; 20/19 x 39.2 / 1600 + .0046875
    assert grouped[1].error == pytest.approx(math.sqrt(20 / 19 * 39.2 / 1600 + 0.0046875))
    assert estimate_for_similar_questions(pool, draw, ratings, ["one"] * n)[RetrievalMetric.PRECISION, 0, None] == (
        value,
        None,
    )
    too_few = estimate_for_similar_questions(pool, draw, np.where(np.arange(n) < 5, ratings, NAN), list(range(n)))
    assert set(too_few.values()) == {WithheldReason.TOO_FEW_LABELS}


@pytest.mark.slow
def test_similar_question_intervals_have_their_stated_coverage() -> None:
    """Samples of 30 questions out of 6,000, each with a draw of 100 passages: 19 of 20 intervals contain the population
    figures of each system and of their difference."""
    population, truth = make_pool(seed=5, questions=6000, systems=2)
    first = np.flatnonzero(np.diff(population.question, prepend=-1))
    labels, truth = population.known.copy(), truth.copy()
    labels[first] = truth[first] = 1.0  # every question has a relevant passage that is known
    true_values = pool_figures(population, truth, population.sums(truth), np.ones(6000, dtype=bool)).value
    hits = np.zeros((3, 3))
    for sample_index in range(200):
        own = (population.question >= 30 * sample_index) & (population.question < 30 * sample_index + 30)
        pool = Pool(
            population.question[own] - 30 * sample_index,
            population.ranks[:, own],
            labels[own],
            population.judge[own],
            population.k,
        )
        draw = draw_passages(pool, 100, sample_index)
        estimates = estimate_for_similar_questions(pool, draw, np.where(draw.sampled, truth[own], NAN), list(range(30)))
        for i, estimated in enumerate(estimates.values()):
            assert isinstance(estimated, tuple)
            assert estimated[1] is not None
            hits.flat[i] += abs(estimated[0] - true_values.flat[i]) <= estimated[1].half_width(0.95)
    assert (hits / 200 >= 0.92).all()
    assert hits.mean() / 200 >= 0.94
