from __future__ import annotations

import pytest

from evaluation.core.samples import Result, Status
from evaluation.profiles.per_answer import ragas_score

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
