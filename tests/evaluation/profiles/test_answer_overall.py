"""From the results of an answer to its overall score: what of it is kept, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.samples import Result, Status
from evaluation.core.scales import Scale
from evaluation.profiles.per_answer import answer_overall, has_answer_overall
from evaluation.profiles.spec import ProfileSpec

SCALES = {
    "accuracy": Scale.parse("1..5"),
    "claim_support": Scale.parse("real 0..1"),
    "tone": Scale.parse("class good|bad"),
}
NO_CLAIMS = Result.not_applicable("no_claims: nothing is claimed")


def profile(**changes: Any) -> ProfileSpec:
    parts = [{"metric": "accuracy", "weight": 0.6}, {"metric": "claim_support", "weight": 0.4}]
    base = {"name": "p", "title": {"en": "T", "ko": "T"}, "unit": "per_answer", "normalise": "min_max", "parts": parts}
    return ProfileSpec.model_validate(base | changes)


def score(accuracy: Result, claim_support: Result, category: str = "single_hop", **changes: Any) -> Result:
    results = {"accuracy": accuracy, "claim_support": claim_support, "tone": Result.labelled("good")}
    return answer_overall(profile(**changes), results, SCALES, category)


def test_a_score_keeps_its_weights_and_contributions() -> None:
    # 0.6 x (4 - 1) / 4 + 0.4 x 0.5 = 0.45 + 0.2; the class is no part of it
    result = score(Result.scored(4), Result.scored(0.5))
    assert result.value == pytest.approx(0.65)
    assert result.detail["weights"] == pytest.approx({"accuracy": 0.6, "claim_support": 0.4})
    assert result.detail["contributions"] == pytest.approx({"accuracy": 0.45, "claim_support": 0.2})
    assert result.detail.keys() == {"weights", "contributions"}


def test_what_the_answer_left_empty_adds_zero_and_is_named() -> None:
    result = score(Result.scored(4), NO_CLAIMS)
    assert result.value == pytest.approx(0.45)
    assert result.detail["zeroed"] == {"claim_support": 0.0}


def test_on_a_negative_question_it_is_left_out() -> None:
    # 0.45 / 0.6
    result = score(Result.scored(4), NO_CLAIMS, "negative")
    assert result.value == pytest.approx(0.75)
    assert "zeroed" not in result.detail


def test_what_the_question_lacks_is_left_out_too() -> None:
    assert score(Result.scored(4), Result.not_applicable("no_reference")).value == pytest.approx(0.75)


def test_a_failed_part_fails_the_answer_and_keeps_the_bounds() -> None:
    # 0.45 with claims from 0 to 0.4
    result = score(Result.scored(4), Result.failed("timeout"))
    assert (result.status, result.value, result.reason) == (Status.FAILED, None, "failed_part: claim_support")
    assert result.detail["bounds"] == pytest.approx({"low": 0.45, "high": 0.85})


def test_a_failed_part_that_counts_as_zero_keeps_the_bounds_too() -> None:
    result = score(Result.scored(4), Result.failed("timeout"), on_failure="zero")
    assert (result.status, result.value) == (Status.SCORED, pytest.approx(0.45))
    assert result.detail["bounds"] == pytest.approx({"low": 0.45, "high": 0.85})


def test_without_any_part_it_does_not_apply() -> None:
    absent = Result.not_applicable("no_reference")
    assert (score(absent, absent).status, score(absent, absent).reason) == (Status.NOT_APPLICABLE, "no_parts")


@pytest.mark.parametrize(("changes", "has"), [({}, True), ({"parts": []}, False), ({"unit": "run_means"}, False)])
def test_only_profiles_that_score_single_answers_have_one(changes: dict[str, Any], has: bool) -> None:
    assert has_answer_overall(profile(**changes)) is has
