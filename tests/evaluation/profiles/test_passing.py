"""The pass rule of the regulation profile, case by case."""

from __future__ import annotations

import pytest

from evaluation.profiles.arithmetic import PassVerdict, has_passing, pass_or_fail
from evaluation.profiles.spec import ProfileSpec, shipped_profiles

SHIPPED = {profile.name: profile for profile in shipped_profiles()}
REGULATION = SHIPPED["regulation"]
PARTS = ("accuracy", "answer_completeness", "citations", "context_relevance")


def overall(accuracy: float, completeness: float, citations: float, relevance: float) -> float:
    return 0.35 * accuracy + 0.25 * completeness + 0.20 * citations + 0.20 * relevance


def values_with_overall(*scores: float) -> dict[str, float | None]:
    return {**dict(zip(PARTS, scores, strict=True)), "overall": overall(*scores)}


@pytest.mark.parametrize(
    ("scores", "expected", "below"),
    [
        ((0.9, 0.8, 0.7, 0.8), True, ()),  # .315 + .2 + .14 + .16 = .815
        # Exactly at every threshold: .2975 + .1875 + .14 + .15 = .775, below .80
        ((0.85, 0.75, 0.70, 0.75), False, ("overall",)),
        ((0.84, 1, 1, 1), False, ("accuracy",)),  # a high overall score does not make up for one part
        ((1, 1, 0.69, 1), False, ("citations",)),
        ((1, 0.74, 1, 0.74), False, ("answer_completeness", "context_relevance")),
        # .35 x .9 + .25 x .8 + .2 x .8 + .2 x .625 = .8 exactly, if rounded, but relevance is too low
        ((0.9, 0.8, 0.8, 0.625), False, ("context_relevance",)),
        ((0.86, 0.75, 0.765, 0.79), False, ("overall",)),  # .301 + .1875 + .153 + .158 = .7995
        ((0.86, 0.76, 0.765, 0.78), True, ()),  # .301 + .19 + .153 + .156 = .8
    ],
)
def test_an_answer_passes_with_every_threshold_met(
    scores: tuple[float, ...], expected: bool, below: tuple[str, ...]
) -> None:
    result = pass_or_fail(REGULATION, values_with_overall(*scores), ())
    assert (result.verdict, result.below) == (PassVerdict.PASSED if expected else PassVerdict.FAILED, below)


@pytest.mark.parametrize("flag", ["unknown_phone", "forbidden_name", "avoidance"])
def test_a_flag_fails_an_answer_with_full_scores(flag: str) -> None:
    result = pass_or_fail(REGULATION, values_with_overall(1, 1, 1, 1), {flag})
    assert (result.verdict, result.below, result.flags) == (PassVerdict.FAILED, (), (flag,))


def test_a_failed_part_is_unknown_and_not_a_fail() -> None:
    values = {**values_with_overall(1, 1, 1, 1), "citations": None, "overall": None}
    result = pass_or_fail(REGULATION, values, ())
    assert (result.verdict, result.status["citations"]) == (PassVerdict.UNKNOWN, None)
    values["accuracy"] = 0.1
    assert pass_or_fail(REGULATION, values, ()).verdict is PassVerdict.FAILED  # whatever citations would have been
    assert (
        pass_or_fail(REGULATION, values_with_overall(1, 1, 1, 1), (), flags_unavailable=True).verdict
        is PassVerdict.UNKNOWN
    )


def test_threshold_of_an_inapplicable_metric_is_ignored() -> None:
    values = values_with_overall(1, 1, 1, 1)
    del values["context_relevance"]
    assert pass_or_fail(REGULATION, values, ()).verdict is PassVerdict.PASSED
    assert pass_or_fail(REGULATION, {}, ()).verdict is PassVerdict.UNKNOWN


def test_only_profiles_with_a_pass_rule_have_passing() -> None:
    assert {name for name, profile in SHIPPED.items() if has_passing(profile)} == {
        "regulation",
        "phases",
        "phases_normalised",
    }


@pytest.mark.parametrize(("value", "verdict"), [(0.7, PassVerdict.PASSED), (0.6999, PassVerdict.FAILED)])
def test_phases_profile_fails_below_its_threshold(value: float, verdict: PassVerdict) -> None:
    profile: ProfileSpec = SHIPPED["phases"]
    assert pass_or_fail(profile, {"overall": value}, ()).verdict is verdict
