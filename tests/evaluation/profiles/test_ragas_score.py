from __future__ import annotations

import pytest

from evaluation.core.samples import Result, Status
from evaluation.core.scales import Scale
from evaluation.profiles.per_answer import derived_results, ragas_score
from evaluation.profiles.spec import ProfileSpec

PARTS = ("claim_support", "context_precision", "context_recall", "answer_relevance")
MISSING = Result.not_applicable("does_not_retrieve")


def score(*values: float | None) -> Result:
    results = {
        name: MISSING if value is None else Result.scored(value) for name, value in zip(PARTS, values, strict=True)
    }
    return ragas_score(results)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # (30 + 20 + 24.981) / 0.8 = 93.726; the document prints the sum as it is before the division
        ((1.0, None, 100.0, 83.27), 93.72625),
        ((0.0, 0.0, 0.0, 83.27), 24.981),  # 0.3 x 83.27
        ((None, None, None, 82.29), 82.29),  # one part alone
        ((1.0, 100.0, 100.0, 100.0), 100.0),
    ],
)
def test_the_worked_examples_of_the_source(values: tuple[float | None, ...], expected: float) -> None:
    assert score(*values).value == pytest.approx(expected)


def test_the_weights_that_were_used_stand_in_the_result() -> None:
    detail = score(1.0, None, 100.0, 83.27).detail
    assert detail["weights"] == pytest.approx(
        {"claim_support": 0.375, "context_recall": 0.25, "answer_relevance": 0.375}
    )
    assert detail["missing"] == ["context_precision"]


def test_a_failed_part_is_not_left_out() -> None:
    result = ragas_score({"claim_support": Result.failed("timeout"), "context_recall": Result.scored(100)})
    assert (result.status, result.reason) == (Status.FAILED, "failed_part: claim_support")


def test_without_any_part_there_is_no_score() -> None:
    assert score(None, None, None, None).reason == "no_parts"
    assert ragas_score({}).status is Status.NOT_APPLICABLE


SCALES = {name: Scale.parse("real 0..1" if name == "claim_support" else "real 0..100") for name in PARTS}
RESULTS = {name: Result.scored(value) for name, value in zip(PARTS, (0.5, 100.0, 40.0, 80.0), strict=True)}


def profile(weights: tuple[float, ...], **changes: object) -> ProfileSpec:
    parts = [{"metric": name, "weight": weight} for name, weight in zip(PARTS, weights, strict=True)]
    base = {"name": "p", "title": {"en": "T", "ko": "T"}, "unit": "per_answer", "normalise": "min_max", "parts": parts}
    return ProfileSpec.model_validate({**base, "reported": ["ragas_score"], "on_empty_answer": "leave_out", **changes})


@pytest.mark.parametrize(
    "changes", [{}, {"report_names": {"overall": "ragas_score"}, "report_factors": {"overall": 100}}]
)
def test_own_weights_give_one_figure_under_the_name(changes: dict[str, object]) -> None:
    # .5 x 50 + .2 x 100 + .2 x 40 + .1 x 80 = 25 + 20 + 8 + 8
    found = derived_results(profile((0.5, 0.2, 0.2, 0.1), **changes), RESULTS, SCALES, "single_hop")
    assert found["ragas_score"].value == pytest.approx(61.0)
    assert found["answer_overall"].value == pytest.approx(0.61)


def test_without_any_part_neither_figure_applies() -> None:
    found = derived_results(profile((0.3, 0.2, 0.2, 0.3)), dict.fromkeys(PARTS, MISSING), SCALES, "single_hop")
    assert {result.status for result in found.values()} == {Status.NOT_APPLICABLE}


def test_a_profile_of_other_parts_reports_the_score_of_the_source() -> None:
    # .3 x 50 + .2 x 100 + .2 x 40 + .3 x 80 = 15 + 20 + 8 + 24
    other = profile((0.5, 0.2, 0.2, 0.1), parts=[{"metric": "claim_support", "weight": 1.0}])
    found = derived_results(other, RESULTS, SCALES, "single_hop")
    assert (found["ragas_score"].value, found["answer_overall"].value) == (pytest.approx(67.0), pytest.approx(0.5))


def test_an_answer_that_says_nothing_scores_zero() -> None:
    silent = {**RESULTS, "claim_support": Result.not_applicable("says_nothing"), "answer_relevance": Result.scored(0)}
    found = derived_results(profile((0.3, 0.2, 0.2, 0.3)), silent, SCALES, "single_hop")
    assert (found["ragas_score"].value, found["answer_overall"].value) == (0, 0)
    assert ragas_score(silent).value == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"report_names": {"overall": "ragas_score"}}, "report_factors: overall: 100"),
        ({"report_names": {"overall": "claim_support"}}, "the name of a metric"),
        ({"report_names": {"claim_support": "score", "context_recall": "score"}}, "one name to several metrics"),
        ({"report_names": {"context_recall": "claim_support"}}, "one name to several metrics"),
    ],
)
def test_a_name_never_shows_two_figures(changes: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        profile((0.3, 0.2, 0.2, 0.3), **changes)
