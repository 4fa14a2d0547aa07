"""The whole score: components summed, with the variance of what each answer adds."""

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


def named(name: str, answers: list[FrameAnswer], weight: float = 1.0) -> Component:
    return Component(name, frame_of(answers), 0.0, 1.0, weight, yes_no=True)


def estimate(components: list[Component], target: Target = Target.THIS_RUN) -> Estimate:
    found = corrected_overall(components, target)
    assert isinstance(found, Estimate), found
    return found


def width(found: object) -> float:
    assert isinstance(found, Estimate)
    return found.high - found.low


T18, T19 = 2.100922, 2.093024
RATED = 0.75**2 * (0.00832 * 0.5 * 20 / 18 + 0.0001585)  # the variance of half_labelled(), as test_component has it


def unrated(answers: list[FrameAnswer]) -> list[FrameAnswer]:
    return [replace(a, rating=None, state=ReviewState.NOT_SAMPLED, probability=None) for a in answers]


@pytest.mark.parametrize("target", list(Target))
def test_two_halves_of_one_component_are_the_component(target: Target) -> None:
    # equal residuals on equal answers do not average out: 0.5 x + 0.5 x has the width of x
    both = estimate([named("a", half_labelled(), 0.5), named("b", half_labelled(), 0.5)], target)
    one = corrected_component(yes_no(half_labelled()), target)

    assert isinstance(one, Estimate)
    assert both.value == pytest.approx(one.value)
    assert width(both) == pytest.approx(width(one))
    assert both.effective_labels == pytest.approx(one.effective_labels)
    assert both.method is Method.SUM


def test_components_rated_on_different_answers_add_their_variances() -> None:
    # the second component's labels are the first one's unlabelled answers: variances add; what was not seen may be the
    # same answer in both, its deviations add
    first = half_labelled()
    values = [answer.rating for answer in first[:20]]
    second = [unsampled(answer.key, answer.judge) for answer in first[:20]]  # type: ignore[arg-type]
    second += [rated(20 + at, first[20 + at].judge, value) for at, value in enumerate(values)]  # type: ignore[arg-type]
    a, b = named("a", first, 0.5), named("b", second, 0.5)

    fits = [fit_component(one) for one in (a, b)]
    found, alone = estimate([a, b]), [one.influence for one in fits if isinstance(one, ComponentFit)]
    variance = sum(one.design_variance for one in alone) / 4
    unseen = (sum(one.unseen**0.5 for one in alone) / 2) ** 2
    assert (found.low, found.high) == wilson(found.value, variance + unseen, T18)


def test_a_component_nobody_rated_enters_as_it_came_and_is_named() -> None:
    # 0.75 x 0.56 + 0.25 x 24/40
    found = estimate([named("rated", half_labelled(), 0.75), named("rule", unrated(half_labelled()), 0.25)])

    assert found.value == pytest.approx(0.75 * 0.56 + 0.25 * 0.6)
    assert found.named == ("rule",)
    assert (found.low, found.high) == wilson(0.57, RATED, T18)


def test_a_judged_component_nobody_rated_may_be_anything_on_its_scale() -> None:
    # judged 0.6 in mean: down 0.25 x 0.6 = 0.15, up 0.25 x 0.4 = 0.10 beyond the rated part's interval
    judged = replace(named("judged", unrated(half_labelled()), 0.25), judged=True)
    found = estimate([named("rated", half_labelled(), 0.75), judged])

    assert found.value == pytest.approx(0.75 * 0.56 + 0.25 * 0.6)
    assert (found.low + 0.15, found.high - 0.10) == wilson(0.57, RATED, T18)
    assert found.named == ()
    assert found.to_dict()["partly_corrected"] == {"judged": pytest.approx(0.25)}


def test_a_judged_component_reaches_no_further_than_its_answers_could() -> None:
    # contributions of a part that applies to three answers in four: in mean at most 0.75; 0.25 x (0.75 - 0.6) up
    judged = replace(named("judged", unrated(half_labelled()), 0.25), judged=True, most=0.75)
    found = estimate([named("rated", half_labelled(), 0.75), judged])

    half = 0.75 * width(corrected_component(yes_no(half_labelled()))) / 2
    assert found.high == pytest.approx(found.value + half + 0.25 * 0.15)


def test_a_baselines_unrated_component_widens_the_other_way() -> None:
    # minus 0.25 x (0 to 1) where 0.6 was judged: up 0.15, down 0.10
    judged = replace(named("judged", unrated(half_labelled()), -0.25), judged=True)
    rated_part = named("rated", half_labelled(), 0.75)
    found = estimate([rated_part, judged])

    half = 0.75 * width(corrected_component(yes_no(half_labelled()))) / 2
    assert (found.low, found.high) == pytest.approx((found.value - half - 0.10, found.value + half + 0.15))


def test_over_questions_an_uncorrected_component_adds_its_variation() -> None:
    parts = [named("rated", half_labelled(), 0.75), named("rule", unrated(half_labelled()), 0.25)]
    alone = corrected_component(parts[0], Target.QUESTIONS_LIKE_THESE)

    assert width(estimate(parts, Target.QUESTIONS_LIKE_THESE)) > 0.75 * width(alone)


def test_a_small_frame_enters_as_it_came_unless_complete() -> None:
    # run-mean profile: the second metric applies to 4 answers, of which 2 are rated: the judge's mean 0.5 stands
    few = [rated(0, 1.0, 0.0), rated(1, 0.0, 0.0), unsampled(20, 1.0), unsampled(21, 0.0)]
    found = estimate([named("rated", half_labelled(), 0.5), named("few", few, 0.5)])
    complete = [rated(0, 1.0, 0.0, 1.0), rated(1, 0.0, 0.0, 1.0)]

    assert found.value == pytest.approx(0.5 * 0.56 + 0.5 * 0.5)
    assert found.named == ("few",)
    assert estimate([named("rated", half_labelled(), 0.5), named("few", complete, 0.5)]).value == pytest.approx(0.28)


def test_any_withheld_component_withholds_the_whole_and_is_named() -> None:
    thin = half_labelled()[:15] + unrated_part(half_labelled()[15:])
    found = corrected_overall([named("good", half_labelled(), 0.5), named("thin", thin, 0.5)])

    assert isinstance(found, Withheld)
    assert found.reason is WithheldReason.COMPONENTS_WITHHELD
    assert found.missing == {"components": {"thin": {"reason": "too_few_labels", "labels": 5}}}


def unrated_part(answers: list[FrameAnswer]) -> list[FrameAnswer]:
    return [replace(answer, rating=None, state=ReviewState.NOT_SAMPLED) for answer in answers]


def test_nothing_rated_gives_no_corrected_score() -> None:
    found = corrected_overall([named("rule", unrated(half_labelled()))])

    assert isinstance(found, Withheld)
    assert found.reason is WithheldReason.TOO_FEW_LABELS


def test_one_group_says_nothing_about_questions_like_these() -> None:
    answers = [replace(answer, group="only") for answer in half_labelled()]
    found = corrected_overall([named("a", answers, 0.5), named("b", answers, 0.5)], Target.QUESTIONS_LIKE_THESE)

    assert found == Withheld(WithheldReason.TOO_FEW_GROUPS, Target.QUESTIONS_LIKE_THESE, 40, 20, {"groups": 1})
    assert found.to_dict()["missing"] == {"groups": 1}


def test_bounds_of_components_are_added_not_squared() -> None:
    # judge = expert on 30 labels of 60: plus and minus u = 1 - 0.05 ** (1/30) = 0.0950 each; 0.6 u + 0.4 u
    same = [rated(at, float(at % 2), float(at % 2)) for at in range(30)]
    same += [unsampled(30 + at, float(at % 2)) for at in range(30)]
    found = estimate([named("a", same, 0.6), named("b", same, 0.4)])

    assert found.high - found.value == pytest.approx(1 - 0.05 ** (1 / 30))


def test_a_negative_weight_turns_the_ends_of_an_interval_round() -> None:
    # experts accept all of 30 of which the judge rejects 10: 1, and down to 0.025 ** (1/30) = 0.8843 for the others.
    # Taken off another run that is the reverse: -1, and up to -0.8843
    answers = [rated(at, float(at >= 10), 1.0) for at in range(30)] + [unsampled(30 + at, 1.0) for at in range(30)]
    found = estimate([named("other run", answers, -1.0)])

    assert (found.low, found.value) == (-1.0, -1.0)
    assert found.high == pytest.approx(-(0.025 ** (1 / 30)))


@pytest.mark.parametrize("weight", [-0.5, -1.0, -2.0])
def test_what_is_taken_off_reaches_to_the_other_side(weight: float) -> None:
    # run a: the judge alone, 0.6. Run b: accepted throughout, 1 and 0.1157 below it, or rejected throughout, 0 and
    # 0.1157 above it. a - b is 0.6 - 1 and reaches 0.1157 above it, or 0.6 - 0 and 0.1157 below; times b's weight
    reach = -weight * (1 - 0.025 ** (1 / 30))
    a = named("a", unrated(half_labelled()))
    accepted = [rated(at, float(at >= 10), 1.0) for at in range(30)] + [unsampled(30 + at, 1.0) for at in range(30)]
    rejected = [rated(at, float(at < 10), 0.0) for at in range(30)] + [unsampled(30 + at, 0.0) for at in range(30)]
    down, up = estimate([a, named("b", accepted, weight)]), estimate([a, named("b", rejected, weight)])

    assert (down.low, down.value, down.high) == pytest.approx((0.6 + weight, 0.6 + weight, 0.6 + weight + reach))
    assert (up.low, up.value, up.high) == pytest.approx((0.6 - reach, 0.6, 0.6))


def test_effective_labels_weigh_an_answer_by_the_smaller_of_its_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    # 40 answers, 20 rated in both parts, the judge constant; answers 0 to 9 are 1, 10 to 19 are 0. Part a drew answers
    # 0 to 4 with 1/4, part b 5 to 9, all others with 1/2: answers 0 to 9 weigh 4, the others 2.
    # s^2: mean 40/60 = 2/3, (40 x 1/9 + 20 x 4/9) / 60 x 20/19 = 40/171
    # V: a part's shares are 4/50 and 2/50, its mean 0.6. An answer of 0 to 9 adds half of 0.08 x 0.4 x sqrt(3/4) for
    # one part and half of 0.04 x 0.4 x sqrt(1/2) for the other, one of 10 to 19 -0.04 x 0.6 x sqrt(1/2); times 20/19
    def part(name: str, rare: range) -> Component:
        labels = [rated(at, 1.0, float(at < 10), 0.25 if at in rare else 0.5) for at in range(20)]
        return named(name, labels + [unsampled(20 + at, 1.0) for at in range(20)], 0.5)

    parts = [part("a", range(5)), part("b", range(5, 10))]
    assert estimate(parts).effective_labels is None  # too few unequal labels
    monkeypatch.setattr("review.statistics.correction.corrected.MIN_EFFECTIVE_LABELS", 0)
    found = estimate(parts)

    variance = 10 * ((0.016 * 0.75**0.5 + 0.008 * 0.5**0.5) ** 2 + 0.024**2 * 0.5) * 20 / 19
    assert found.value == pytest.approx(0.6)
    # unseen: n_eff = 50^2 / 140, 1 - 0.4375 not drawn, 1/4 x (140/2500)^2 x 0.5625 x (0.6^2 + 0.4^2) = 0.00022932
    assert (found.low, found.high) == wilson(0.6, variance + 0.00022932, T19)
    # T19 sqrt(V + unseen) = 0.17845; of a uniform draw of 18.27 labels, with t(17.27) and 1/4 / 18.27^2 (1 - 18.27/40)
    # (0.6^2 + 0.4^2) = 0.0002116 unseen: 2.1074 sqrt(40/171 (1/18.27 - 1/40) + 0.0002116)
    assert found.effective_labels == pytest.approx(18.27, abs=0.01)


def test_the_json_form_names_lambda_target_and_what_came_as_it_was() -> None:
    found = estimate([named("rated", half_labelled(), 0.75), named("rule", unrated(half_labelled()), 0.25)]).to_dict()

    assert found["target"] == "this_run"
    assert found["as_it_came"] == ["rule"]
    assert {"value", "low", "high", "n", "labels", "effective_labels", "lambda", "method", "warnings"} <= set(found)
