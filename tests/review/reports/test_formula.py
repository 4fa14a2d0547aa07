"""Formula next to an overall score, and scores of the same values under other shipped profiles, worked by hand."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from evaluation.judges.shipped import profile_row
from evaluation.models import Run
from review.reports.formula import Formula, formula_in_words, formula_of, other_profiles_in_words
from review.reports.inputs import load_inputs
from tests.review.builders import NOT_APPLICABLE, answers_to, make_report, run_over, score_all

pytestmark = pytest.mark.django_db

NA = NOT_APPLICABLE
CATEGORIES = ["single_hop", "single_hop", "negative", "negative"]
GRAPHRAG_VALUES: dict[str, list[float | str | None]] = {
    "keyword_hit": [1, 0, NA, NA],
    "keyword_coverage": [1, 0.5, NA, NA],
    "negative_detection": [NA, NA, 1, 0],
    "correctness": [5, 3, 4, 2],
    "faithfulness": [4, 4, NA, NA],
    "completeness": [4, 2, NA, NA],
}
VALUES = GRAPHRAG_VALUES | {
    "claim_support": [1, 0.5, NA, NA],
    "nugget_support": [1, NA, NA, NA],
    "context_recall": [100, 0, NA, NA],
}
# means .5, .75, .5, 3.5 / 5, 4 / 5 and 3 / 5 by .15, .10, .15, .25, .20 and .15
GRAPHRAG = 0.65
# a perfect answer, .5 x .35 + .5 x .30 + .25 x .20 (completeness 2) + 0, a passed and a failed check, over 4
STANDARD = (1 + 0.375 + 1 + 0) / 4


def scored_run(profile: str, values: dict[str, list[float | str | None]]) -> Run:
    answers = answers_to(CATEGORIES)
    run = run_over(answers, profile=profile_row(answers.project, profile))
    score_all(run, values)
    return run


def formula(run: Run) -> Formula:
    result = formula_of(load_inputs(run))
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("profile", "own", "other_profile", "score"),
    [("graphrag", GRAPHRAG, "standard", STANDARD), ("standard", STANDARD, "graphrag", GRAPHRAG)],
)
def test_values_score_differently_under_another_profile(
    profile: str, own: float, other_profile: str, score: float
) -> None:
    run = scored_run(profile, VALUES)
    assert load_inputs(run).machine.figure.value == pytest.approx(own)
    run_formula = formula(run)
    assert dict(run_formula.others) == {other_profile: pytest.approx(score)}
    assert "ragas" in run_formula.lacking


def test_profiles_with_missing_metrics_are_named_without_a_score() -> None:
    run_formula = formula(scored_run("graphrag", GRAPHRAG_VALUES))
    assert run_formula.others == ()
    assert {"standard", "ragas"} <= set(run_formula.lacking)


def test_profiles_that_agree_are_not_named() -> None:
    values: dict[str, list[float | str | None]] = {
        **{name: [1, 1, NA, NA] for name in ("keyword_hit", "keyword_coverage", "claim_support", "nugget_support")},
        **{name: [5, 5, 5, 5] for name in ("correctness", "faithfulness", "completeness")},
        "negative_detection": [NA, NA, 1, 1],
        "context_recall": [100, 100, NA, NA],
    }
    run_formula = formula(scored_run("graphrag", values))
    assert run_formula.others == ()
    assert "standard" not in run_formula.lacking


def test_run_without_an_overall_score_has_a_formula_only() -> None:
    run_formula = formula(scored_run("graphrag", {"keyword_hit": [1, 1, NA, NA]}))
    assert dict(run_formula.weights)["correctness"] == 0.25
    assert (run_formula.others, run_formula.lacking) == ((), ())


@pytest.mark.parametrize(
    ("language", "start", "end"),
    [
        ("en", "graphrag v1: 0.15 × Keyword hit", "0.15 × Completeness"),
        ("ko", "graphrag v1: 0.15 × 키워드 적중", "0.15 × 완전성"),
    ],
)
def test_formula_line_names_the_profile_and_its_weights(language: str, start: str, end: str) -> None:
    report = make_report(scored_run("graphrag", VALUES))
    with override(language):
        line = formula_in_words(report.formula, report.metrics)
    assert line.startswith(start)
    assert line.endswith(end)


def test_second_line_has_the_scores_of_other_profiles() -> None:
    assert other_profiles_in_words(make_report(scored_run("graphrag", VALUES)).formula) == "standard 0.594"
    assert other_profiles_in_words(make_report(scored_run("graphrag", GRAPHRAG_VALUES)).formula) == ""
    assert other_profiles_in_words(None) == ""


def test_formula_line_names_the_only_metric_of_some_questions() -> None:
    report = make_report(scored_run("standard", VALUES))
    with override("en"):
        line = formula_in_words(report.formula, report.metrics)
    assert line.endswith("only Negative detection for questions in: negative")
