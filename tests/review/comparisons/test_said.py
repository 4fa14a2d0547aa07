"""Wording of p-values, and of comparisons without an overall score."""

from __future__ import annotations

import pytest
from django.utils import translation

from review.comparisons.comparison import compare
from review.comparisons.verdict import p_text, sentences
from tests.factories import make_answer_set, make_question_set, make_scored_run


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0.0, "<0.001"), (0.00099, "<0.001"), (0.001, "0.001"), (0.0314, "0.031"), (1.0, "1.000")],
)
def test_p_value_is_never_zero(value: float | None, expected: str) -> None:
    assert p_text(value) == expected


@pytest.mark.django_db
def test_runs_without_an_overall_score_are_still_compared_by_metric() -> None:
    questions = make_question_set(specs=4)
    runs = [make_scored_run(make_answer_set(questions), values=values) for values in ([1, 2, 3, 4], [3, 5, 4, 5])]
    comparison = compare(runs)
    assert comparison.differences[0].metrics[0].paired is not None
    with translation.override("en"):
        assert sentences(comparison.differences[0]) == ["The profile has no overall score."]
