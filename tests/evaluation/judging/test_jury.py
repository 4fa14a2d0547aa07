"""Jury values by hand, and the cases without a value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.samples import Result, Status
from evaluation.judging.formulas import JuryRule, jury_result


def members(*values: float | str | None) -> dict[str, Result]:
    """Member results from numbers, classes, and ``None`` for a failure."""
    results = [
        Result.failed("parse") if v is None else Result.labelled(v) if isinstance(v, str) else Result.scored(v)
        for v in values
    ]
    return {f"judge-{n}@1": result for n, result in enumerate(results)}


@pytest.mark.parametrize(
    ("values", "rule", "value"),
    [
        ([1, 2, 5], JuryRule.MEAN, 8 / 3),
        ([1, 2, 5], JuryRule.MEDIAN, 2),
        ([1, 2, 3, 5], JuryRule.MEDIAN, 2.5),  # the mean of 2 and 3
        ([4, 4, 1], JuryRule.MAJORITY, 4),
        ([4, 5, None], JuryRule.MEAN, 4.5),  # two of three gave a value
    ],
)
def test_numbers_are_combined_by_the_rule(values: list[float | None], rule: JuryRule, value: float) -> None:
    result = jury_result(members(*values), rule)
    assert result.value == pytest.approx(value)
    assert result.detail["rule"] == rule
    assert set(result.detail["members"]) == set(members(*values))


def test_spread_is_the_standard_deviation_of_members() -> None:
    assert jury_result(members(2, 4), JuryRule.MEAN).detail["spread"] == 1.0  # both are 1 from the mean 3


def test_classes_are_decided_by_majority_under_any_rule() -> None:
    assert jury_result(members("right", "right", "wrong"), JuryRule.MEAN).label == "right"
    assert jury_result(members("right", "wrong"), JuryRule.MEAN).reason == "jury_split"


def test_jury_without_majority_or_enough_values_fails_with_member_values() -> None:
    split = jury_result(members(1, 2, 3), JuryRule.MAJORITY)
    assert (split.status, split.reason) == (Status.FAILED, "jury_split")
    assert split.detail["members"] == {"judge-0@1": 1, "judge-1@1": 2, "judge-2@1": 3}
    short = jury_result(members(5, None), JuryRule.MEAN)  # one of two is not more than half
    assert (short.status, short.reason) == (Status.FAILED, "jury_short")


def test_a_failed_member_counts_against_a_majority() -> None:
    assert jury_result(members(4, 4, None, None, 4), JuryRule.MAJORITY).value == 4
    assert jury_result(members(4, 4, None, 1), JuryRule.MAJORITY).reason == "jury_split"  # two of four


def test_jury_is_not_applicable_if_most_members_are() -> None:
    not_applicable = Result.not_applicable("no_claims")
    assert (
        jury_result({"a": not_applicable, "b": not_applicable, "c": Result.scored(1)}, JuryRule.MEAN) == not_applicable
    )
    assert jury_result({"a": not_applicable, "b": Result.failed("parse")}, JuryRule.MEAN).reason == "jury_short"


@given(st.lists(st.integers(1, 5), min_size=2, max_size=9), st.sampled_from(JuryRule), st.randoms())
def test_jury_ignores_member_order_and_stays_within_member_values(
    values: list[int], rule: JuryRule, chance: object
) -> None:
    results = members(*values)
    reordered = dict(reversed(results.items()))
    result = jury_result(results, rule)
    assert (result.status, result.value, result.reason) == (
        (reordered_result := jury_result(reordered, rule)).status,
        reordered_result.value,
        reordered_result.reason,
    )
    assert result.value is None or min(values) <= result.value <= max(values)
