"""The overall score of an answer and its stored details, by hand."""

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


def answer_score(accuracy: Result, claim_support: Result, category: str = "single_hop", **changes: Any) -> Result:
    results = {"accuracy": accuracy, "claim_support": claim_support, "tone": Result.labelled("good")}
    return answer_overall(profile(**changes), results, SCALES, category)


def test_score_stores_weights_and_contributions() -> None:
    # 0.6 x (4 - 1) / 4 + 0.4 x 0.5 = 0.45 + 0.2; the class is no part of it
    result = answer_score(Result.scored(4), Result.scored(0.5))
    assert result.value == pytest.approx(0.65)
    assert result.detail["weights"] == pytest.approx({"accuracy": 0.6, "claim_support": 0.4})
    assert result.detail["contributions"] == pytest.approx({"accuracy": 0.45, "claim_support": 0.2})
    assert result.detail.keys() == {"weights", "contributions"}


def test_part_left_empty_by_the_answer_adds_zero_and_is_listed() -> None:
    result = answer_score(Result.scored(4), NO_CLAIMS)
    assert result.value == pytest.approx(0.45)
    assert result.detail["zeroed"] == {"claim_support": 0.0}


def test_empty_part_of_a_negative_question_is_left_out() -> None:
    # 0.45 / 0.6
    result = answer_score(Result.scored(4), NO_CLAIMS, "negative")
    assert result.value == pytest.approx(0.75)
    assert "zeroed" not in result.detail


def test_part_that_the_question_lacks_is_left_out() -> None:
    assert answer_score(Result.scored(4), Result.not_applicable("no_reference")).value == pytest.approx(0.75)


def test_failed_part_fails_the_answer_and_stores_bounds() -> None:
    # 0.45 with claims from 0 to 0.4
    result = answer_score(Result.scored(4), Result.failed("timeout"))
    assert (result.status, result.value, result.reason) == (Status.FAILED, None, "failed_part: claim_support")
    assert result.detail["bounds"] == pytest.approx({"low": 0.45, "high": 0.85})


def test_failed_part_counted_as_zero_stores_bounds() -> None:
    result = answer_score(Result.scored(4), Result.failed("timeout"), on_failure="zero")
    assert (result.status, result.value) == (Status.SCORED, pytest.approx(0.45))
    assert result.detail["bounds"] == pytest.approx({"low": 0.45, "high": 0.85})


def test_score_without_parts_is_not_applicable() -> None:
    absent = Result.not_applicable("no_reference")
    assert (answer_score(absent, absent).status, answer_score(absent, absent).reason) == (
        Status.NOT_APPLICABLE,
        "no_parts",
    )


@pytest.mark.parametrize(("changes", "expected"), [({}, True), ({"parts": []}, False), ({"unit": "run_means"}, False)])
def test_only_per_answer_profiles_have_an_answer_score(changes: dict[str, Any], expected: bool) -> None:
    assert has_answer_overall(profile(**changes)) is expected
