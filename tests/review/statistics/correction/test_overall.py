"""Overall score: summed components, with the variance of each answer's contribution."""

from __future__ import annotations

from dataclasses import replace

import pytest

from review.statistics.correction.corrected import ComponentFit, corrected_component, corrected_overall, fit_component
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import Estimate, Method, Target, Withheld, WithheldReason
from tests.review.statistics.correction.frames import (
    FrameAnswer,
    frame_of,
    half_labelled,
    rated,
    unsampled,
    wilson,
    yes_no,
)


def named_component(name: str, answers: list[FrameAnswer], weight: float = 1.0) -> Component:
    return Component(name, frame_of(answers), 0.0, 1.0, weight, yes_no=True)


def estimate(components: list[Component], target: Target = Target.THIS_RUN) -> Estimate:
    corrected = corrected_overall(components, target)
    assert isinstance(corrected, Estimate), corrected
    return corrected


def width(corrected: object) -> float:
    assert isinstance(corrected, Estimate)
    return corrected.high - corrected.low


T18, T19 = 2.100922, 2.093024
RATED = 0.75**2 * (0.00832 * 0.5 * 20 / 18 + 0.0001585)  # the variance of half_labelled(), as test_component has it


def without_ratings(answers: list[FrameAnswer]) -> list[FrameAnswer]:
    return [replace(a, rating=None, state=ReviewState.NOT_SAMPLED, probability=None) for a in answers]


@pytest.mark.parametrize("target", list(Target))
def test_two_halves_of_one_component_equal_the_component(target: Target) -> None:
    # equal residuals on equal answers do not average out: 0.5 x + 0.5 x has the width of x
    halves = estimate([named_component("a", half_labelled(), 0.5), named_component("b", half_labelled(), 0.5)], target)
    single = corrected_component(yes_no(half_labelled()), target)

    assert isinstance(single, Estimate)
    assert halves.value == pytest.approx(single.value)
    assert width(halves) == pytest.approx(width(single))
    assert halves.effective_labels == pytest.approx(single.effective_labels)
    assert halves.method is Method.SUM


def test_components_rated_on_different_answers_add_their_variances() -> None:
    # the second component's labels are the first one's unlabelled answers: variances add; what was not seen may be the
    # same answer in both, its deviations add
    first = half_labelled()
    values = [answer.rating for answer in first[:20]]
    second = [unsampled(answer.key, answer.judge) for answer in first[:20]]  # type: ignore[arg-type]
    second += [rated(20 + i, first[20 + i].judge, value) for i, value in enumerate(values)]  # type: ignore[arg-type]
    a, b = named_component("a", first, 0.5), named_component("b", second, 0.5)

    fits = [fit_component(part) for part in (a, b)]
    corrected, influences = estimate([a, b]), [part.influence for part in fits if isinstance(part, ComponentFit)]
    variance = sum(part.design_variance for part in influences) / 4
    unseen = (sum(part.unseen**0.5 for part in influences) / 2) ** 2
    assert (corrected.low, corrected.high) == wilson(corrected.value, variance + unseen, T18)


def test_unrated_rule_component_enters_uncorrected_and_is_named() -> None:
    # 0.75 x 0.56 + 0.25 x 24/40
    corrected = estimate(
        [
            named_component("rated", half_labelled(), 0.75),
            named_component("rule", without_ratings(half_labelled()), 0.25),
        ]
    )

    assert corrected.value == pytest.approx(0.75 * 0.56 + 0.25 * 0.6)
    assert corrected.named == ("rule",)
    assert (corrected.low, corrected.high) == wilson(0.57, RATED, T18)


def test_unrated_judged_component_may_take_any_value_on_its_scale() -> None:
    # judged 0.6 in mean: down 0.25 x 0.6 = 0.15, up 0.25 x 0.4 = 0.10 beyond the rated part's interval
    judged_component = replace(named_component("judged", without_ratings(half_labelled()), 0.25), judged=True)
    corrected = estimate([named_component("rated", half_labelled(), 0.75), judged_component])

    assert corrected.value == pytest.approx(0.75 * 0.56 + 0.25 * 0.6)
    assert (corrected.low + 0.15, corrected.high - 0.10) == wilson(0.57, RATED, T18)
    assert corrected.named == ()
    assert corrected.to_dict()["partly_corrected"] == {"judged": pytest.approx(0.25)}


def test_unrated_judged_component_is_limited_by_its_answers() -> None:
    # contributions of a part that applies to three answers in four: in mean at most 0.75; 0.25 x (0.75 - 0.6) up
    judged_component = replace(
        named_component("judged", without_ratings(half_labelled()), 0.25), judged=True, most=0.75
    )
    corrected = estimate([named_component("rated", half_labelled(), 0.75), judged_component])

    half_width = 0.75 * width(corrected_component(yes_no(half_labelled()))) / 2
    assert corrected.high == pytest.approx(corrected.value + half_width + 0.25 * 0.15)


def test_unrated_baseline_component_widens_the_other_end() -> None:
    # minus 0.25 x (0 to 1) where 0.6 was judged: up 0.15, down 0.10
    judged_component = replace(named_component("judged", without_ratings(half_labelled()), -0.25), judged=True)
    rated_part = named_component("rated", half_labelled(), 0.75)
    corrected = estimate([rated_part, judged_component])

    half_width = 0.75 * width(corrected_component(yes_no(half_labelled()))) / 2
    assert (corrected.low, corrected.high) == pytest.approx(
        (corrected.value - half_width - 0.10, corrected.value + half_width + 0.15)
    )


def test_uncorrected_component_adds_its_variation_over_questions() -> None:
    parts = [
        named_component("rated", half_labelled(), 0.75),
        named_component("rule", without_ratings(half_labelled()), 0.25),
    ]
    single = corrected_component(parts[0], Target.QUESTIONS_LIKE_THESE)

    assert width(estimate(parts, Target.QUESTIONS_LIKE_THESE)) > 0.75 * width(single)


def test_small_frame_enters_uncorrected_unless_complete() -> None:
    # run-mean profile: the second metric applies to 4 answers, of which 2 are rated: the judge's mean 0.5 stands
    few_answers = [rated(0, 1.0, 0.0), rated(1, 0.0, 0.0), unsampled(20, 1.0), unsampled(21, 0.0)]
    corrected = estimate([named_component("rated", half_labelled(), 0.5), named_component("few", few_answers, 0.5)])
    complete = [rated(0, 1.0, 0.0, 1.0), rated(1, 0.0, 0.0, 1.0)]

    assert corrected.value == pytest.approx(0.5 * 0.56 + 0.5 * 0.5)
    assert corrected.named == ("few",)
    assert estimate(
        [named_component("rated", half_labelled(), 0.5), named_component("few", complete, 0.5)]
    ).value == pytest.approx(0.28)


def test_withheld_component_withholds_the_overall_score_and_is_named() -> None:
    thin_answers = half_labelled()[:15] + unrated_answers(half_labelled()[15:])
    corrected = corrected_overall(
        [named_component("good", half_labelled(), 0.5), named_component("thin", thin_answers, 0.5)]
    )

    assert isinstance(corrected, Withheld)
    assert corrected.reason is WithheldReason.COMPONENTS_WITHHELD
    assert corrected.missing == {"components": {"thin": {"reason": "too_few_labels", "labels": 5}}}


def unrated_answers(answers: list[FrameAnswer]) -> list[FrameAnswer]:
    return [replace(answer, rating=None, state=ReviewState.NOT_SAMPLED) for answer in answers]


def test_nothing_rated_gives_no_corrected_score() -> None:
    corrected = corrected_overall([named_component("rule", without_ratings(half_labelled()))])

    assert isinstance(corrected, Withheld)
    assert corrected.reason is WithheldReason.TOO_FEW_LABELS


def test_one_group_gives_no_estimate_for_similar_questions() -> None:
    answers = [replace(answer, group="only") for answer in half_labelled()]
    corrected = corrected_overall(
        [named_component("a", answers, 0.5), named_component("b", answers, 0.5)], Target.QUESTIONS_LIKE_THESE
    )

    assert corrected == Withheld(WithheldReason.TOO_FEW_GROUPS, Target.QUESTIONS_LIKE_THESE, 40, 20, {"groups": 1})
    assert corrected.to_dict()["missing"] == {"groups": 1}


def test_bounds_of_components_are_added_not_squared() -> None:
    # judge = expert on 30 labels of 60: plus and minus u = 1 - 0.05 ** (1/30) = 0.0950 each; 0.6 u + 0.4 u
    answers = [rated(i, float(i % 2), float(i % 2)) for i in range(30)]
    answers += [unsampled(30 + i, float(i % 2)) for i in range(30)]
    corrected = estimate([named_component("a", answers, 0.6), named_component("b", answers, 0.4)])

    assert corrected.high - corrected.value == pytest.approx(1 - 0.05 ** (1 / 30))


def test_negative_weight_swaps_the_interval_ends() -> None:
    # experts accept all of 30 of which the judge rejects 10: 1, and down to 0.025 ** (1/30) = 0.8843 for the others.
    # Taken off another run that is the reverse: -1, and up to -0.8843
    answers = [rated(i, float(i >= 10), 1.0) for i in range(30)] + [unsampled(30 + i, 1.0) for i in range(30)]
    corrected = estimate([named_component("other run", answers, -1.0)])

    assert (corrected.low, corrected.value) == (-1.0, -1.0)
    assert corrected.high == pytest.approx(-(0.025 ** (1 / 30)))


@pytest.mark.parametrize("weight", [-0.5, -1.0, -2.0])
def test_subtracted_bounds_extend_to_the_other_side(weight: float) -> None:
    # run a: the judge alone, 0.6. Run b: accepted throughout, 1 and 0.1157 below it, or rejected throughout, 0 and
    # 0.1157 above it. a - b is 0.6 - 1 and reaches 0.1157 above it, or 0.6 - 0 and 0.1157 below; times b's weight
    reach = -weight * (1 - 0.025 ** (1 / 30))
    a = named_component("a", without_ratings(half_labelled()))
    accepted = [rated(i, float(i >= 10), 1.0) for i in range(30)] + [unsampled(30 + i, 1.0) for i in range(30)]
    rejected = [rated(i, float(i < 10), 0.0) for i in range(30)] + [unsampled(30 + i, 0.0) for i in range(30)]
    down, up = (
        estimate([a, named_component("b", accepted, weight)]),
        estimate([a, named_component("b", rejected, weight)]),
    )

    assert (down.low, down.value, down.high) == pytest.approx((0.6 + weight, 0.6 + weight, 0.6 + weight + reach))
    assert (up.low, up.value, up.high) == pytest.approx((0.6 - reach, 0.6, 0.6))


def test_effective_labels_use_the_smaller_probability_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    # 40 answers, 20 rated in both parts, the judge constant; answers 0 to 9 are 1, 10 to 19 are 0. Part a drew answers
    # 0 to 4 with 1/4, part b 5 to 9, all others with 1/2: answers 0 to 9 weigh 4, the others 2.
    # s^2: mean 40/60 = 2/3, (40 x 1/9 + 20 x 4/9) / 60 x 20/19 = 40/171
    # V: a part's shares are 4/50 and 2/50, its mean 0.6. An answer of 0 to 9 adds half of 0.08 x 0.4 x sqrt(3/4) for
    # one part and half of 0.04 x 0.4 x sqrt(1/2) for the other, one of 10 to 19 -0.04 x 0.6 x sqrt(1/2); times 20/19
    def part(name: str, rare: range) -> Component:
        labels = [rated(i, 1.0, float(i < 10), 0.25 if i in rare else 0.5) for i in range(20)]
        return named_component(name, labels + [unsampled(20 + i, 1.0) for i in range(20)], 0.5)

    parts = [part("a", range(5)), part("b", range(5, 10))]
    assert estimate(parts).effective_labels is None  # too few unequal labels
    monkeypatch.setattr("review.statistics.correction.corrected.MIN_EFFECTIVE_LABELS", 0)
    corrected = estimate(parts)

    variance = 10 * ((0.016 * 0.75**0.5 + 0.008 * 0.5**0.5) ** 2 + 0.024**2 * 0.5) * 20 / 19
    assert corrected.value == pytest.approx(0.6)
    # unseen: n_eff = 50^2 / 140, 1 - 0.4375 not drawn, 1/4 x (140/2500)^2 x 0.5625 x (0.6^2 + 0.4^2) = 0.00022932
    assert (corrected.low, corrected.high) == wilson(0.6, variance + 0.00022932, T19)
    # T19 sqrt(V + unseen) = 0.17845; of a uniform draw of 18.27 labels, with t(17.27) and 1/4 / 18.27^2 (1 - 18.27/40)
    # (0.6^2 + 0.4^2) = 0.0002116 unseen: 2.1074 sqrt(40/171 (1/18.27 - 1/40) + 0.0002116)
    assert corrected.effective_labels == pytest.approx(18.27, abs=0.01)


def test_json_names_lambda_target_and_uncorrected_components() -> None:
    corrected = estimate(
        [
            named_component("rated", half_labelled(), 0.75),
            named_component("rule", without_ratings(half_labelled()), 0.25),
        ]
    ).to_dict()

    assert corrected["target"] == "this_run"
    assert corrected["as_it_came"] == ["rule"]
    assert {"value", "low", "high", "n", "labels", "effective_labels", "lambda", "method", "warnings"} <= set(corrected)
