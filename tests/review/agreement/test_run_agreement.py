"""Agreement of a run: compared scorers, included ratings and their weights."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries

from evaluation.models import MetricDefinition, Run, User
from review.agreement.run_agreement import Breakdown, JudgeMeasure, RunAgreement, compute_agreement
from review.models import ReviewQueue
from review.statistics.agreement.bootstrap import Resampling
from tests.factories import make_user
from tests.review.builders import (
    FAILED,
    OFF_SCALE,
    answer_rows,
    answers_to,
    assignment_of,
    draw_into,
    imported_rating,
    metric,
    queue_for,
    rate,
    run_over,
    score,
    score_all,
    second_judge,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """Six answers in two categories; the judge gives 5, 4, 3, 2, 1 and fails on the last."""
    run = run_over(answers_to(["a", "a", "a", "b", "b", "b"]))
    score_all(run, {"correctness": [5, 4, 3, 2, 1, FAILED]})
    return run


@pytest.fixture
def correctness() -> MetricDefinition:
    return metric("correctness")


def judge_measure(agreement: RunAgreement, author: str, name: str = "correctness") -> JudgeMeasure:
    return next(measure for measure in agreement.judges if measure.author == author and measure.metric == name)


def rate_in(queue: ReviewQueue, run: Run, person: User, row: MetricDefinition, values: dict[int, float]) -> None:
    answers = answer_rows(run)
    for position, value in values.items():
        rate(assignment_of(queue, answers[position], person, run), row, value)


def test_judge_is_compared_with_mean_of_blind_first_ratings(run: Run, correctness: MetricDefinition) -> None:
    anna, bora = make_user(), make_user()
    queue = queue_for(run, [correctness], [anna, bora])
    draw_into(queue, run, [("all", 1.0, True)] * 6)
    rate_in(queue, run, anna, correctness, {0: 5, 1: 3, 2: 3, 5: 2})
    rate_in(queue, run, bora, correctness, {0: 4, 1: 4, 2: 3})
    agreement = judge_measure(compute_agreement(run), "judge@1").agreement
    # means 4.5, 3.5, 3 against 5, 4, 3; the last answer has no judge's value
    assert agreement.n == 3
    assert agreement.excluded == {"no_judge_value": 1}
    assert agreement.statistics["bias"].value == pytest.approx((0.5 + 0.5 + 0) / 3)
    # 4.5 and 3.5 round half up to 5 and 4, so all three are exact
    assert agreement.statistics["exact"].value == 1.0


def test_final_assisted_and_exposed_ratings_are_excluded(run: Run, correctness: MetricDefinition) -> None:
    anna, bora = make_user(), make_user()
    queue = queue_for(run, [correctness], [anna, bora])
    first = assignment_of(queue, answer_rows(run)[0], anna, run)
    rate(first, correctness, 2)
    rate(first, correctness, 5, phase="final")
    rate(assignment_of(queue, answer_rows(run)[1], bora, run), correctness, 1, blind=False)
    agreement = judge_measure(compute_agreement(run), "judge@1").agreement
    assert agreement.n == 1
    assert agreement.statistics["bias"].value == 3.0  # 5 - 2, the final 5 is not read


def test_last_blind_rating_counts_and_undone_ratings_do_not(run: Run, correctness: MetricDefinition) -> None:
    anna, bora = make_user(), make_user()
    queue = queue_for(run, [correctness], [anna, bora])
    first = assignment_of(queue, answer_rows(run)[0], anna, run)
    rate(first, correctness, 1)
    rate(first, correctness, 4)  # after undo
    second = assignment_of(queue, answer_rows(run)[1], bora, run)
    rate(second, correctness, 1)
    rate(second, correctness, 4, blind=False)  # undone, exposed meanwhile: no blind opinion is left
    agreement = judge_measure(compute_agreement(run), "judge@1").agreement
    assert agreement.n == 1
    assert agreement.statistics["bias"].value == 1.0


def test_first_occasion_counts_and_hidden_repeats_do_not(run: Run, correctness: MetricDefinition) -> None:
    anna = make_user()
    queue, later_queue = queue_for(run, [correctness], [anna]), queue_for(run, [correctness], [anna])
    answer = answer_rows(run)[0]
    rate(assignment_of(queue, answer, anna, run, occasion=2), correctness, 1)
    rate(assignment_of(queue, answer, anna, run), correctness, 4)
    rate(assignment_of(later_queue, answer, anna, run), correctness, 2)
    agreement = compute_agreement(run)
    assert judge_measure(agreement, "judge@1").agreement.statistics["bias"].value == 1.0
    assert agreement.experts[0].agreement.ratings == 1


def test_scorers_are_listed_separately_and_off_scale_values_counted(run: Run, correctness: MetricDefinition) -> None:
    second_judge(run, {"correctness": [4, 4, 4, 4, 4, 4]}, name="other")
    answers = answer_rows(run)
    for answer in answers:
        imported_rating(answer, correctness, "e1", 4)
        imported_rating(answer, metric("keyword_hit"), "e1", 1)
    score(run, answers[0], correctness, 4, author="gpt-4")
    score(run, answers[1], correctness, OFF_SCALE, author="gpt-4")
    score_all(run, {"keyword_hit": [1, 1, 1, 0, 0, 0]})
    agreement = compute_agreement(run)
    assert [
        (measure.author, measure.metric, measure.scorer.primary, measure.scorer.imported)
        for measure in agreement.judges
    ] == [
        ("judge@1", "correctness", True, False),
        ("other@1", "correctness", False, False),
        ("gpt-4", "correctness", False, True),
        ("rules", "keyword_hit", True, False),
    ]
    assert judge_measure(agreement, "other@1").agreement.statistics["exact"].value == 1.0
    assert judge_measure(agreement, "gpt-4").agreement.excluded == {"judge_off_scale": 1, "no_judge_value": 4}
    assert judge_measure(agreement, "rules", "keyword_hit").agreement.statistics["tpr"].value == 0.5


def test_stratified_ratings_are_weighted_by_probability_and_response(run: Run, correctness: MetricDefinition) -> None:
    """Category a: all 3 sampled (p = 1), 2 of them rated; b: 1 of 3 sampled (p = 1/3) and rated.

    Weights: a 1/(1 x 2/3) = 1.5 each, b 1/(1/3 x 1) = 3: the sums 3 and 3 are the strata's sizes.
    """
    anna = make_user()
    queue = queue_for(run, [correctness], [anna])
    draw_into(queue, run, [("a", 1.0, True)] * 3 + [("b", 1 / 3, True)] + [("b", 1 / 3, False)] * 2)
    rate_in(queue, run, anna, correctness, {0: 5, 1: 4, 3: 4})
    measure = judge_measure(compute_agreement(run), "judge@1")
    assert measure.sampling == "weighted"
    # bias: judge - expert = 0, 0, -2 with weights 1.5, 1.5, 3: -6/6
    assert measure.agreement.statistics["bias"].value == pytest.approx(-1.0)
    assert measure.agreement.statistics["exact"].value == pytest.approx(0.5)


def test_ratings_of_unknown_sampling_are_not_mixed_with_sampled_ones(run: Run, correctness: MetricDefinition) -> None:
    anna = make_user()
    sampled_queue, picked_queue = queue_for(run, [correctness], [anna]), queue_for(run, [correctness], [anna])
    draw_into(sampled_queue, run, [("all", 0.5, n < 3) for n in range(6)])
    draw_into(picked_queue, run, [("picked", None, n == 4) for n in range(6)], strategy="hand_picked")
    rate_in(picked_queue, run, anna, correctness, {4: 5})
    assert judge_measure(compute_agreement(run), "judge@1").sampling == "unknown"
    assert judge_measure(compute_agreement(run), "judge@1").agreement.n == 1
    rate_in(sampled_queue, run, anna, correctness, {0: 5, 1: 4, 2: 3})
    measure = judge_measure(compute_agreement(run), "judge@1")
    assert (measure.sampling, measure.agreement.n, measure.left_out) == ("equal", 3, 1)
    assert not measure.agreement.weighted


def test_imported_samples_are_weighted_by_their_own_probabilities(run: Run, correctness: MetricDefinition) -> None:
    answers = answer_rows(run)
    imported_rating(answers[0], correctness, "e1", 4, probability=1.0, sampling="unknown")
    imported_rating(answers[1], correctness, "e1", 4, probability=0.25, sampling="unknown")
    measure = judge_measure(compute_agreement(run), "judge@1")
    assert measure.sampling == "weighted"
    # judge 5 and 4: bias 1 with weight 1, 0 with weight 4
    assert measure.agreement.statistics["bias"].value == pytest.approx(0.2)


def test_draw_planned_after_looking_is_a_round_with_half_of_the_weight(run: Run, correctness: MetricDefinition) -> None:
    """First draw: p = 1/2 for all. The second takes the three rated answers as certain and draws 1 of the other 3."""
    anna = make_user()
    queue = queue_for(run, [correctness], [anna])
    draw_into(queue, run, [("all", 0.5, n < 3) for n in range(6)])
    rate_in(queue, run, anna, correctness, {0: 5, 1: 4, 2: 3})
    second = [("certain", 1.0, True)] * 3 + [("all", 1 / 3, True)] + [("all", 1 / 3, False)] * 2
    draw_into(queue, run, second, planned_after_looking=True)
    rate_in(queue, run, anna, correctness, {3: 4})
    measure = judge_measure(compute_agreement(run), "judge@1")
    # Round 1: weights 2, 2, 2. Round 2: 1, 1, 1 and 3. Half of both: 1.5 each. The judge is right on the first three
    # and 2 too low on the fourth: -2 / 4.
    assert measure.sampling == "equal"
    assert measure.agreement.statistics["bias"].value == pytest.approx(-0.5)


def test_two_draws_planned_together_are_weighted_by_their_union(run: Run, correctness: MetricDefinition) -> None:
    """p = 1/2 twice gives 1 - 1/4 = 3/4 for every answer: equal, so nothing is weighted."""
    anna = make_user()
    queue = queue_for(run, [correctness], [anna])
    draw_into(queue, run, [("all", 0.5, n < 3) for n in range(6)])
    draw_into(queue, run, [("all", 0.5, n % 2 == 0) for n in range(6)])
    rate_in(queue, run, anna, correctness, {0: 5, 1: 4, 2: 3, 4: 1})
    measure = judge_measure(compute_agreement(run), "judge@1")
    assert (measure.sampling, measure.agreement.n) == ("equal", 4)


def test_experts_are_compared_with_each_other_and_with_the_judge(run: Run, correctness: MetricDefinition) -> None:
    for answer, first_value, second_value in zip(answer_rows(run), [5, 4, 3, 2, 1, 1], [5, 4, 3, 2, 2, 1], strict=True):
        imported_rating(answer, correctness, "e1", first_value)
        imported_rating(answer, correctness, "e2", second_value)
    (experts,) = compute_agreement(run).experts
    assert experts.agreement.n == 6
    assert experts.agreement.pairs["e1-e2"].statistics["exact"].value == pytest.approx(5 / 6)
    assert experts.agreement.raters == ("e1", "e2")
    assert experts.agreement.ceiling.judge["e1"].n == 5  # the judge failed on the sixth


def test_reviewers_are_shown_by_number_not_by_name(run: Run, correctness: MetricDefinition) -> None:
    anna = make_user(username="anna.private")
    queue = queue_for(run, [correctness], [anna])
    rate_in(queue, run, anna, correctness, {0: 5})
    assert "anna" not in str(compute_agreement(run).to_dict())


def test_categories_are_compared_separately_on_request(run: Run, correctness: MetricDefinition) -> None:
    for answer, value in zip(answer_rows(run), [5, 4, 3, 1, 1, 1], strict=True):
        imported_rating(answer, correctness, "e1", value)
    by_category = compute_agreement(run, by=Breakdown.CATEGORY).to_dict()["judges"]["judge@1"]["correctness"][
        "by_category"
    ]
    assert (by_category["a"]["n"], by_category["a"]["exact"]) == (3, 1.0)
    assert (by_category["b"]["n"], by_category["b"]["exact"]) == (2, 0.5)


def test_intervals_resample_question_groups_as_a_unit(correctness: MetricDefinition) -> None:
    """Two groups of three: one exact throughout, the other never. Resampling groups gives only 0, 0.5 or 1."""
    run = run_over(answers_to(["a"] * 6, groups=["g", "g", "g", "h", "h", "h"]))
    score_all(run, {"correctness": [3, 3, 3, 1, 1, 1]})
    for answer in answer_rows(run):
        imported_rating(answer, correctness, "e1", 3)
    agreement = judge_measure(compute_agreement(run, resampling=Resampling(200, 1)), "judge@1").agreement
    assert agreement.intervals["exact"] == (0.0, 1.0)
    assert agreement.warnings == ("few_groups",)


def test_agreement_is_empty_without_ratings(run: Run) -> None:
    assert compute_agreement(run).to_dict() == {"judges": {}, "experts": {}, "variance": {}}


def test_query_count_does_not_grow_with_the_run(
    run: Run, correctness: MetricDefinition, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    anna = make_user()
    queue = queue_for(run, [correctness, metric("faithfulness")], [anna])
    draw_into(queue, run, [("all", 1.0, True)] * 6)
    rate_in(queue, run, anna, correctness, dict.fromkeys(range(6), 3))
    rate_in(queue, run, anna, metric("faithfulness"), dict.fromkeys(range(6), 3))
    with django_assert_num_queries(13):
        compute_agreement(run)
