"""Correction of one component: arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import (
    Estimate,
    EstimateWarning,
    Method,
    Target,
    Withheld,
    WithheldReason,
    score_interval,
)
from tests.review.statistics.correction.frames import (
    FrameAnswer,
    frame_of,
    half_labelled,
    rated,
    silent,
    unsampled,
    waiting,
    wilson,
    yes_no,
)

T18, T19, T38 = 2.100922, 2.093024, 2.024394  # 97.5% quantiles of Student's t


def estimate(component: Component, target: Target = Target.THIS_RUN) -> Estimate:
    corrected = corrected_component(component, target)
    assert isinstance(corrected, Estimate), corrected
    return corrected


def test_regression_on_a_uniform_draw() -> None:
    # b = 0.8 - 0.2 = 0.6; labelled means y 0.5, f 0.5; frame mean of f 24/40 = 0.6; 0.5 + 0.6 (0.6 - 0.5) = 0.56
    # residuals about their mean: 8 x -0.2, 2 x 0.8 where f = 0 and 2 x -0.8, 8 x 0.2 where f = 1: squares 1.6 each
    # g = 1 + 0.1 x (f - 0.5) / 0.25 = 0.8 and 1.2: (0.64 + 1.44) x 1.6 / 400 = 0.00832
    # times (1 - 1/2), times 20/19 x 19/18: variance 0.00832 x 0.5 x 20/18 = 0.004622
    # unseen: a quarter of a label at 0 and at 1, 1/4 x (1/20)^2 x (1 - 1/2) x (0.44^2 + 0.56^2) = 0.0001585
    corrected = estimate(yes_no(half_labelled()))

    assert corrected.value == pytest.approx(0.56)
    assert corrected.slope == pytest.approx(0.6)
    assert (corrected.low, corrected.high) == wilson(0.56, 0.00832 * 0.5 * 20 / 18 + 0.0001585, T18)
    assert (corrected.n, corrected.labels, corrected.method) == (40, 20, Method.REGRESSION)


def test_ppi_with_its_own_lambda_gives_an_equal_estimate() -> None:
    # lambda = b (N - k) / N = 0.6 x 20/40 = 0.3 with the rest as the unlabelled set, of which the judge accepts 14/20:
    # 0.3 x 0.7 + mean(y - 0.3 f) = 0.21 + 0.5 - 0.15 = 0.56
    assert estimate(yes_no(half_labelled())).value == pytest.approx(0.3 * 0.7 + (0.5 - 0.3 * 0.5))


def test_constant_judge_gives_the_mean_of_the_labels() -> None:
    # f = 1 everywhere: b = 0, theta = mean y = 0.5, s^2 = 20 x 0.25 / 19, variance s^2 / 20 x (1 - 1/2), t with 19 df;
    # unseen 1/4 x (1/20)^2 x 1/2 x (0.25 + 0.25) = 0.00015625
    corrected = estimate(yes_no([replace(answer, judge=1.0) for answer in half_labelled()]))

    assert (corrected.value, corrected.slope, corrected.method) == (0.5, 0.0, Method.MEAN_OF_LABELS)
    assert (corrected.low, corrected.high) == wilson(0.5, 0.25 / 19 * 0.5 + 0.00015625, T19)
    # such a mean is worth exactly its labels
    assert corrected.effective_labels == pytest.approx(20)


def test_effective_labels_show_the_gain() -> None:
    # T18 sqrt(0.004622 + 0.0001585) = 0.14526. Of a uniform draw of 23.11 labels instead of 20, with t(22.11) = 2.0733,
    # 2.0733 sqrt(5/19 (1/23.11 - 1/40) + 1/4 / 23.11^2 (1 - 23.11/40) (0.44^2 + 0.56^2)) = 0.14526
    assert estimate(yes_no(half_labelled())).effective_labels == pytest.approx(23.11, abs=0.01)


def effective_labels_of_unequal_draw(count: int, rare: float, often: float) -> float | None:
    """Effective labels of ``count`` labels, half of them drawn with each probability."""
    probabilities = (rare, often)
    answers = [rated(i, float(i % 3 > 0), float(i % 4 > 1), probabilities[i % 2]) for i in range(count)]
    answers += [unsampled(count + i, float(i % 3 > 0), rare) for i in range(400)]
    return estimate(yes_no(answers)).effective_labels


def test_labels_with_weight_below_fifty_have_no_effective_number() -> None:
    # n labels, half of weight 10, half of 2: (12 n / 2)^2 / (104 n / 2) = .692 n, of 72 labels 49.8, of 76 52.6
    assert effective_labels_of_unequal_draw(72, 0.1, 0.5) is None
    assert effective_labels_of_unequal_draw(76, 0.1, 0.5) is not None
    assert effective_labels_of_unequal_draw(24, 0.1, 0.9) is None
    assert effective_labels_of_unequal_draw(24, 0.2, 0.2) is not None  # equal ones are worth a number however few


@pytest.mark.parametrize("count", [20, 30, 60, 119])
def test_labels_without_a_judge_are_worth_their_number(count: int) -> None:
    answers = [rated(i, 1.0, float(i % 4 > 0), count / 120) for i in range(count)]
    answers += [unsampled(count + i, 1.0, count / 120) for i in range(120 - count)]
    assert estimate(yes_no(answers)).effective_labels == pytest.approx(count)


def test_effective_labels_follow_the_bound_for_a_perfect_judge() -> None:
    # 60 of 600, half accepted: u = 0.0487 to either side. Of a uniform draw of 245.9 labels, with t(244.9) = 1.9697,
    # 1.9697 sqrt(15/59 (1/245.9 - 1/600) + 1/4 / 245.9^2 (1 - 245.9/600) (1/4 + 1/4)) = 0.0487
    answers = [rated(i, float(i % 2), float(i % 2), 0.1) for i in range(60)]
    answers += [unsampled(60 + i, float(i % 2), 0.1) for i in range(540)]
    assert estimate(yes_no(answers)).effective_labels == pytest.approx(245.9, abs=0.1)


def strata_by_score() -> list[FrameAnswer]:
    """100 answers: of 80 accepted by the judge 16 are rated (12 yes), of 20 rejected 4 are (1 yes)."""
    accepted = [rated(i, 1.0, float(i < 12), 0.2, "1") for i in range(16)]
    rejected = [rated(80 + i, 0.0, float(i < 1), 0.2, "0") for i in range(4)]
    return (
        accepted
        + [unsampled(i, 1.0, 0.2, "1") for i in range(16, 80)]
        + rejected
        + [unsampled(80 + i, 0.0, 0.2, "0") for i in range(4, 20)]
    )


def test_strata_by_judge_score_need_no_slope() -> None:
    # 0.8 x 12/16 + 0.2 x 1/4 = 0.65; s^2: 16 x 0.1875 / 15 = 0.2 and 4 x 0.1875 / 3 = 0.25
    # variance 0.64 x 0.8 x 0.2 / 16 + 0.04 x 0.8 x 0.25 / 4 = 0.0064 + 0.002 = 0.0084; t with 20 - 2 df;
    # unseen 1/4 x (1/20)^2 x 0.8 x (0.35^2 + 0.65^2) = 0.0002725
    corrected = estimate(yes_no(strata_by_score()))

    assert corrected.value == pytest.approx(0.65)
    assert (corrected.slope, corrected.method) == (0.0, Method.MEAN_OF_LABELS)
    assert (corrected.low, corrected.high) == wilson(0.65, 0.0084 + 0.0002725, T18)


def test_pooled_slope_is_the_slope_within_strata() -> None:
    # two strata of 20 answers with 10 labels each, y = f + a constant that differs between strata (0 and 1), plus
    # noise of +-0.5 that does not go with f: within strata b = 1, over all it would not be.
    def stratum(name: str, first: int, shift: float, values: tuple[float, ...]) -> list[FrameAnswer]:
        labels = [
            rated(first + i, value, value + shift + (0.5 if i % 2 else -0.5), 0.5, name)
            for i, value in enumerate(v for v in values for _ in range(2))
        ]
        return labels + [unsampled(first + 10 + i, 2.0, 0.5, name) for i in range(10)]

    component = Component(
        "level", frame_of([*stratum("a", 0, 0.0, (1, 2, 3, 4, 5)), *stratum("b", 20, 1.0, (1, 1, 2, 2, 3))]), 0.0, 7.0
    )
    corrected = estimate(component)

    assert corrected.slope == pytest.approx(1.0)
    # a: 3 + (2.5 - 3) = 2.5; b: (1.8 + 1) + (1.9 - 1.8) = 2.9
    assert corrected.value == pytest.approx((2.5 + 2.9) / 2)


def test_strata_with_twenty_labels_each_have_their_own_slope() -> None:
    # y = 2 f in one stratum and y = 3 - f in the other, plus noise that does not go with f
    def stratum(name: str, first: int, slope: float, level: float) -> list[FrameAnswer]:
        labels = [
            rated(first + i, i // 2 % 2 + 0.0, level + slope * (i // 2 % 2) + 0.25 * (-1) ** i, 0.5, name)
            for i in range(20)
        ]
        return labels + [unsampled(first + 20 + i, 1.0, 0.5, name) for i in range(20)]

    corrected = estimate(Component("x", frame_of([*stratum("a", 0, 2.0, 0.0), *stratum("b", 40, -1.0, 3.0)]), 0.0, 4.0))

    # frame means of f 0.75: a 2 x 0.75 = 1.5, b 3 - 0.75 = 2.25; lambda is their mean slope (2 - 1) / 2
    assert corrected.value == pytest.approx((1.5 + 2.25) / 2)
    assert corrected.slope == pytest.approx(0.5)


def test_unequal_probabilities_weight_by_their_inverse() -> None:
    # 10 labels of probability 0.8 (all 1), 10 of 0.2 (all 0), the judge constant: weights 12.5 and 50, mean 0.2
    answers = [rated(i, 1.0, 1.0, 0.8) for i in range(10)] + [rated(10 + i, 1.0, 0.0, 0.2) for i in range(10)]
    answers += [unsampled(20 + i, 1.0, 0.5) for i in range(40)]

    assert estimate(yes_no(answers)).value == pytest.approx(0.2)


def test_complete_review_is_a_census_of_width_zero() -> None:
    # fewer than 20 labels do not matter then
    corrected = estimate(yes_no([rated(i, 1.0, float(i % 4 > 0), 1.0) for i in range(8)]))

    assert (corrected.value, corrected.low, corrected.high) == (0.75, 0.75, 0.75)
    assert (corrected.method, corrected.effective_labels, corrected.warnings) == (Method.CENSUS, 8.0, ())


def test_complete_strata_add_no_error() -> None:
    # 10 fails all rated (2 yes), 40 others of which 20 rated (15 yes, judge constant):
    # (10 x 0.2 + 40 x 0.75) / 50 = 0.64; variance 0.64 x 0.5 x (20 x 0.1875 / 19) / 20, t with 19 df;
    # unseen among the 40: 1/4 x (0.8/20)^2 x 1/2 x (0.25^2 + 0.75^2) = 0.000125
    answers = [rated(i, 0.0, float(i < 2), 1.0, "fails") for i in range(10)]
    answers += [rated(10 + i, 1.0, float(i < 15), 0.5, "rest") for i in range(20)]
    answers += [unsampled(30 + i, 1.0, 0.5, "rest") for i in range(20)]
    corrected = estimate(yes_no(answers))

    assert corrected.value == pytest.approx(0.64)
    assert (corrected.low, corrected.high) == wilson(0.64, 0.64 * 0.5 * 0.1875 / 19 + 0.000125, T19)


def test_agreement_on_every_label_gives_a_bound() -> None:
    # u = 1 - 0.05 ** (1/60) = 0.0487; the judge accepts 80 of 120
    answers = [rated(i, float(i < 40), float(i < 40)) for i in range(60)]
    answers += [unsampled(60 + i, float(i < 40)) for i in range(60)]
    corrected = estimate(yes_no(answers))

    assert corrected.value == pytest.approx(2 / 3)
    assert (corrected.high - corrected.value, corrected.value - corrected.low) == pytest.approx(
        (0.0487, 0.0487), abs=5e-5
    )
    assert (corrected.method, corrected.slope) == (Method.BOUND, 1.0)


def test_agreement_on_constant_labels_still_follows_the_judge() -> None:
    # all 30 labels are 1 on both sides, but the judge rejects 10 of the other 30: 50/60;
    # u = 1 - 0.05 ** (1/30) = 0.0950
    answers = [rated(i, 1.0, 1.0) for i in range(30)] + [unsampled(30 + i, float(i >= 10)) for i in range(30)]
    corrected = estimate(yes_no(answers))

    assert corrected.value == pytest.approx(50 / 60)
    assert corrected.high == pytest.approx(50 / 60 + 0.0950, abs=5e-5)
    assert EstimateWarning.FEW_OFF_COMMONEST in corrected.warnings


def test_constant_ratings_unlike_the_judge_get_the_exact_interval() -> None:
    # experts accept all of 30, the judge rejects 10 of them: 0.025 ** (1/30) = 0.8843
    answers = [rated(i, float(i >= 10), 1.0) for i in range(30)] + [unsampled(30 + i, 1.0) for i in range(30)]
    corrected = estimate(yes_no(answers))

    assert (corrected.value, corrected.high, corrected.method) == (1.0, 1.0, Method.CLOPPER_PEARSON)
    assert corrected.low == pytest.approx(0.8843, abs=5e-5)
    assert corrected_component(replace(yes_no(answers), yes_no=False)) == Withheld(
        WithheldReason.NOT_ESTIMABLE, Target.THIS_RUN, 60, 30
    )


def test_non_response_lowers_weights_within_its_stratum_only() -> None:
    # stratum a: 20 answers, 10 drawn, 9 respond (all 1); stratum b: 20 answers, 11 drawn and rated (4 yes).
    # theta = (1 + 4/11) / 2; silent 1 of 20 reached = 5%; its worst adds -0.5 x 1/10 x 1
    answers = [rated(i, 1.0, 1.0, 0.5, "a") for i in range(9)] + [silent(9, 1.0, 0.5, "a")]
    answers += [unsampled(10 + i, 1.0, 0.5, "a") for i in range(10)]
    answers += [rated(20 + i, 1.0, float(i < 4), 0.55, "b") for i in range(11)]
    answers += [unsampled(31 + i, 1.0, 0.55, "b") for i in range(9)]
    corrected = estimate(yes_no(answers))

    assert corrected.value == pytest.approx((1 + 4 / 11) / 2)
    assert corrected.non_response == pytest.approx(1 / 21)
    assert corrected.response_bounds == pytest.approx((corrected.value - 0.05, corrected.value))


def test_non_response_above_a_tenth_withholds_the_value() -> None:
    answers = half_labelled()[:37] + [silent(37 + i, 1.0) for i in range(3)]
    corrected = corrected_component(yes_no(answers))

    assert isinstance(corrected, Withheld)
    assert corrected.reason is WithheldReason.NON_RESPONSE
    assert corrected.missing["non_response"] == pytest.approx(3 / 23)


def test_unserved_items_are_not_non_response() -> None:
    # 10 of the 20 others were drawn and wait: same estimate, no non-response; inclusion 0.75 x 20/30 = 0.5 as before
    answers = [replace(answer, probability=0.75) for answer in half_labelled()]
    answers = answers[:30] + [waiting(answer.key, answer.judge, 0.75) for answer in answers[30:]]  # type: ignore[arg-type]
    corrected = estimate(yes_no(answers))

    assert corrected == estimate(yes_no(half_labelled()))
    assert corrected.non_response == 0.0


def test_answers_the_judge_failed_on_are_estimated_from_their_labels() -> None:
    # beside the 40 answers (0.56), 10 failed ones of which 4 are rated, 1 yes: (40 x 0.56 + 10 x 0.25) / 50 = 0.498
    failed = [rated(100 + i, None, float(i < 1), 0.4, "failed") for i in range(4)]
    failed += [unsampled(104 + i, None, 0.4, "failed") for i in range(6)]
    corrected = estimate(yes_no([*half_labelled(), *failed]))

    # variance 0.64 x 0.004622 + 0.04 x 0.6 x 0.25 / 4; t with 18 + 3 df: 2.079614
    # unseen 0.64 x 0.0001585 and, of the failed, 1/4 x (0.2/4)^2 x 0.6 x (0.75^2 + 0.25^2) = 0.000234375
    variance = 0.64 * 0.00832 * 0.5 * 20 / 18 + 0.04 * 0.6 * 0.25 / 4
    assert corrected.value == pytest.approx(0.498)
    assert (corrected.low, corrected.high) == wilson(0.498, variance + 0.64 * 0.0001585 + 0.000234375, 2.079614)


def test_failed_answers_without_labels_show_bounds() -> None:
    # 10 failed answers unrated: the value is the others', the interval reaches as if all were 0, or all 1
    failed = [unsampled(100 + i, None) for i in range(10)]
    corrected = estimate(yes_no([*half_labelled(), *failed]))

    assert corrected.value == pytest.approx(0.56)
    assert corrected.warnings == (EstimateWarning.FAILED_STRATUM_BOUNDS,)
    variance = 0.64 * (0.00832 * 0.5 * 20 / 18 + 0.0001585)
    assert (corrected.low + 0.2 * 0.56, corrected.high - 0.2 * 0.44) == wilson(0.56, variance, T18)


def test_shifted_scale_shifts_the_estimate() -> None:
    answers = [*half_labelled(), *(unsampled(100 + i, None) for i in range(10))]

    def up(value: float | None) -> float | None:
        return None if value is None else value + 3

    shifted = [replace(answer, judge=up(answer.judge), rating=up(answer.rating)) for answer in answers]
    original, shifted_estimate = (
        estimate(Component("c", frame_of(frame_answers), low, low + 1))
        for frame_answers, low in ((answers, 0.0), (shifted, 3.0))
    )
    assert (shifted_estimate.value, shifted_estimate.low, shifted_estimate.high) == pytest.approx(
        (original.value + 3, original.low + 3, original.high + 3)
    )


def test_too_few_labels_report_how_many_are_missing() -> None:
    corrected = corrected_component(yes_no(half_labelled()[3:]))

    assert corrected == Withheld(WithheldReason.TOO_FEW_LABELS, Target.THIS_RUN, 37, 17, {"labels": 3})
    assert corrected.to_dict()["withheld"] == "too_few_labels"


def test_thin_stratum_is_named() -> None:
    answers = strata_by_score()
    thin_answers = [a for a in answers if a.stratum == "1" or a.rating is None] + [rated(100, 0.0, 0.0, 0.05, "0")]
    thin_answers += [rated(200 + i, 1.0, 1.0, 0.2, "1") for i in range(3)]

    corrected = corrected_component(yes_no(thin_answers))
    assert isinstance(corrected, Withheld)
    assert (corrected.reason, corrected.missing) == (WithheldReason.STRATUM_TOO_FEW_LABELS, {"strata": {"0": 1}})


def test_small_frames_and_unreachable_answers_are_withheld() -> None:
    small_frame = corrected_component(yes_no([rated(1, 1.0, 1.0), *(unsampled(2 + i, 1.0) for i in range(10))]))
    unreachable = corrected_component(yes_no([*half_labelled(), unsampled(99, 1.0, None)]))

    assert isinstance(small_frame, Withheld)
    assert (small_frame.reason, small_frame.missing) == (WithheldReason.SMALL_FRAME, {"labels": 10})
    unreachable_result = corrected_component(
        yes_no(half_labelled()[:10] + half_labelled()[30:])
    )  # of twenty ten are too few, not too small
    assert (unreachable_result.reason, unreachable_result.missing) == (WithheldReason.TOO_FEW_LABELS, {"labels": 10})
    assert isinstance(unreachable, Withheld)
    assert (unreachable.reason, unreachable.missing) == (WithheldReason.NO_PROBABILITY, {"answers": 1})


def test_ends_beyond_the_scale_are_clipped_and_marked() -> None:
    answers = [rated(i, float(i % 2), float(i > 0)) for i in range(20)] + [unsampled(20 + i, 1.0) for i in range(20)]
    corrected = estimate(yes_no(answers))

    assert corrected.high == 1.0
    assert EstimateWarning.CLIPPED in corrected.warnings


def test_similar_questions_vary_by_group() -> None:
    # judge constant, 40 answers in 20 groups of 2, one of each rated; 10 groups are 1 and 10 are 0. Influence: a label
    # adds (y - 0.5) / 20 x sqrt(20/19), the other answers nothing (their expected value is 0.5, the estimate);
    # sum of squared group sums 20 x 0.25 / 400 x 20/19, times 20/19; t with 19 df;
    # unseen 1/4 x (1/20)^2 x 1/2 x (0.25 + 0.25) = 0.00015625
    answers = [rated(i, 1.0, float(i % 2), 0.5, "", i) for i in range(20)]
    answers += [unsampled(20 + i, 1.0, 0.5, "", i) for i in range(20)]
    corrected = estimate(yes_no(answers), Target.QUESTIONS_LIKE_THESE)

    assert (corrected.low, corrected.high) == wilson(0.5, 0.25 / 20 * (20 / 19) ** 2 + 0.00015625, T19)
    assert corrected.target is Target.QUESTIONS_LIKE_THESE
    assert corrected.warnings == ()


def test_groups_without_a_label_add_no_degrees_of_freedom() -> None:
    # judge constant, 40 answers in 20 groups of 2: 5 groups are rated 1, 1, 5 are rated 0, 0, and 10 are not rated.
    # A label adds (y - 0.5) / 20 x sqrt(20/19), a rated group twice that: 10 x (0.05)^2 x 20/19, times 20/19 for the
    # 20 groups. The 20 labels leave 19 df and the 20 groups 19, but only 10 groups have labels: 9 df, 2.262157
    answers = [rated(i, 1.0, float(i < 10), 0.5, "", i // 2) for i in range(20)]
    answers += [unsampled(20 + i, 1.0, 0.5, "", 10 + i // 2) for i in range(20)]
    corrected = estimate(yes_no(answers), Target.QUESTIONS_LIKE_THESE)

    assert corrected.value == 0.5
    assert (corrected.low, corrected.high) == wilson(0.5, 0.025 * (20 / 19) ** 2 + 0.00015625, 2.262157)


def test_census_still_varies_over_questions() -> None:
    # 10 answers, 5 yes, each its own group: sd^2 = 0.25 x 10/9, variance / 10, t with 9 df = 2.262157
    corrected = estimate(yes_no([rated(i, 1.0, float(i % 2), 1.0) for i in range(10)]), Target.QUESTIONS_LIKE_THESE)

    assert corrected.high - corrected.value == pytest.approx(2.262157 * (0.25 / 9) ** 0.5, rel=1e-5)
    assert corrected.warnings == (EstimateWarning.FEW_GROUPS,)


def test_one_group_gives_no_estimate_for_similar_questions() -> None:
    answers = [replace(answer, group="only") for answer in half_labelled()]

    corrected = corrected_component(yes_no(answers), Target.QUESTIONS_LIKE_THESE)
    assert isinstance(corrected, Withheld)
    assert (corrected.reason, corrected.missing) == (WithheldReason.TOO_FEW_GROUPS, {"groups": 1})


def test_category_is_corrected_and_withheld_by_equal_rules() -> None:
    hard_answers = [rated(100 + i, 1.0, 0.0) for i in range(5)] + [unsampled(105 + i, 1.0) for i in range(20)]
    corrected = corrected_component(yes_no(half_labelled()), is_subset=True)
    withheld = corrected_component(yes_no(hard_answers), is_subset=True)

    assert isinstance(corrected, Estimate)
    assert corrected.value == pytest.approx(0.56)
    assert isinstance(withheld, Withheld)
    assert withheld.missing == {"labels": 15}


def test_category_too_thin_for_strata_is_estimated_without_them() -> None:
    # 20 labels in stratum a, 1 of 2 answers in stratum b: by weights 40 x 1 and 1 x 2 of inclusion 0.5: one stratum
    answers = [replace(answer, stratum="a") for answer in half_labelled()]
    answers += [rated(50, 1.0, 1.0, 0.5, "b"), unsampled(51, 1.0, 0.5, "b")]

    assert isinstance(corrected_component(yes_no(answers)), Withheld)
    corrected = corrected_component(yes_no(answers), is_subset=True)
    assert isinstance(corrected, Estimate)
    # b = Cov / Var over 21 labels: f 11/21, y 11/21, fy 9/21: (9/21 - 121/441) / (11/21 - 121/441) = 68/110
    assert corrected.slope == pytest.approx(68 / 110)
    assert corrected.value == pytest.approx(11 / 21 + 68 / 110 * (26 / 42 - 11 / 21))


def skewed_frame(rated_low: int) -> list[FrameAnswer]:
    """400 answers on a scale of 0 to 4 with a constant judge; of 25 ratings ``rated_low`` are 2, the others 4."""
    labels = [rated(i, 4.0, 2.0 if i < rated_low else 4.0, 0.0625) for i in range(25)]
    return labels + [unsampled(25 + i, 4.0, 0.0625) for i in range(375)]


def test_interval_near_the_end_of_a_scale_allows_for_unseen_answers() -> None:
    # mean (23 x 4 + 2 x 2) / 25 = 3.84; s^2 = 2 x 23 / 25 x 4 / 24; variance s^2 / 25 x 15/16
    # unseen 1/4 x (1/25)^2 x 15/16 x (0.16^2 + 3.84^2) = 0.0055392, two fifths more than the variance holds
    corrected = estimate(Component("x", frame_of(skewed_frame(2)), 0.0, 4.0))

    variance = 2 * 23 / 25 * 4 / 24 / 25 * 15 / 16
    high = 3.84 + 2.063899 * (variance + 0.0055392) ** 0.5  # beyond the scale, cut
    assert (corrected.low, high) == wilson(3.84, variance + 0.0055392, 2.063899, 0.0, 4.0)
    assert corrected.high == 4.0
    assert corrected.value - corrected.low > 2 * 2.063899 * variance**0.5
    assert EstimateWarning.UNSEEN_ANSWERS in corrected.warnings


def test_no_unseen_answers_warning_in_the_middle_of_a_scale() -> None:
    assert EstimateWarning.UNSEEN_ANSWERS not in estimate(Component("x", frame_of(skewed_frame(13)), 0.0, 4.0)).warnings


@pytest.mark.parametrize("value", [-0.1, 0.0, 0.02, 0.3, 0.5, 0.98, 1.0, 1.1])
def test_score_interval_contains_the_symmetric_one_and_reaches_inwards(value: float) -> None:
    low, high = score_interval(value, 0.01, 2.0, (0.0, 1.0))
    reversed_interval = score_interval(1 - value, 0.01, 2.0, (0.0, 1.0))

    assert low <= value - 0.2 + 1e-12
    assert high >= value + 0.2 - 1e-12
    assert (1 - reversed_interval[1], 1 - reversed_interval[0]) == pytest.approx((low, high))
    assert (high - value > value - low + 1e-9) is (0.0 <= value < 0.5 - 1e-9 or value < 0)
