from __future__ import annotations

import pytest

from evaluation.core.samples import Result, Status
from evaluation.core.scales import Scale
from evaluation.profiles.per_answer import derived_results, ragas_score
from evaluation.profiles.spec import ProfileSpec

PARTS = ("claim_support", "context_precision", "context_recall", "answer_relevance")
MISSING = Result.not_applicable("does_not_retrieve")


def ragas_score_of(*values: float | None) -> Result:
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
def test_worked_examples(values: tuple[float | None, ...], expected: float) -> None:
    assert ragas_score_of(*values).value == pytest.approx(expected)


def test_result_lists_the_weights_used() -> None:
    detail = ragas_score_of(1.0, None, 100.0, 83.27).detail
    assert detail["weights"] == pytest.approx(
        {"claim_support": 0.375, "context_recall": 0.25, "answer_relevance": 0.375}
    )
    assert detail["missing"] == ["context_precision"]


def test_failed_part_fails_the_score() -> None:
    result = ragas_score({"claim_support": Result.failed("timeout"), "context_recall": Result.scored(100)})
    assert (result.status, result.reason) == (Status.FAILED, "failed_part: claim_support")


def test_without_any_part_there_is_no_score() -> None:
    assert ragas_score_of(None, None, None, None).reason == "no_parts"
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
def test_custom_weights_replace_the_ragas_score(changes: dict[str, object]) -> None:
    # .5 x 50 + .2 x 100 + .2 x 40 + .1 x 80 = 25 + 20 + 8 + 8
    results = derived_results(profile((0.5, 0.2, 0.2, 0.1), **changes), RESULTS, SCALES, "single_hop")
    assert results["ragas_score"].value == pytest.approx(61.0)
    assert results["answer_overall"].value == pytest.approx(0.61)


def test_without_parts_both_scores_are_not_applicable() -> None:
    results = derived_results(profile((0.3, 0.2, 0.2, 0.3)), dict.fromkeys(PARTS, MISSING), SCALES, "single_hop")
    assert {result.status for result in results.values()} == {Status.NOT_APPLICABLE}


def test_profile_with_other_parts_reports_the_default_ragas_score() -> None:
    # .3 x 50 + .2 x 100 + .2 x 40 + .3 x 80 = 15 + 20 + 8 + 24
    single_part_profile = profile((0.5, 0.2, 0.2, 0.1), parts=[{"metric": "claim_support", "weight": 1.0}])
    results = derived_results(single_part_profile, RESULTS, SCALES, "single_hop")
    assert (results["ragas_score"].value, results["answer_overall"].value) == (pytest.approx(67.0), pytest.approx(0.5))


def test_empty_answer_scores_zero() -> None:
    empty_answer = {
        **RESULTS,
        "claim_support": Result.not_applicable("says_nothing"),
        "answer_relevance": Result.scored(0),
    }
    results = derived_results(profile((0.3, 0.2, 0.2, 0.3)), empty_answer, SCALES, "single_hop")
    assert (results["ragas_score"].value, results["answer_overall"].value) == (0, 0)
    assert ragas_score(empty_answer).value == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"report_names": {"overall": "ragas_score"}}, "report_factors: overall: 100"),
        ({"report_names": {"overall": "claim_support"}}, "the name of a metric"),
        ({"report_names": {"claim_support": "score", "context_recall": "score"}}, "one name to several metrics"),
        ({"report_names": {"context_recall": "claim_support"}}, "one name to several metrics"),
    ],
)
def test_report_name_may_not_cover_two_metrics(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        profile((0.3, 0.2, 0.2, 0.3), **changes)
