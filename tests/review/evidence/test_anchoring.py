"""Anchoring, worked by hand: first value, final value and judge value of every revised rating."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evaluation.core.samples import Status
from review.evidence.experts import ExpertRating, anchoring
from review.evidence.scorers import JudgedValue


def rating_row(answer: int, phase: str, value: float | None, **fields: object) -> ExpertRating:
    defaults: dict[str, object] = {
        "pk": answer * 2 + (phase == "final"), "answer_id": answer, "metric_id": 7, "rater": "expert_1",
        "imported": False, "phase": phase, "blind": phase == "initial", "value": value, "label": None,
        "cannot_judge": value is None, "sampling": "", "probability": None, "occasion": 1, "assignment_id": answer,
        "queue_id": 1, "example": False, "at": datetime(2026, 11, 20, tzinfo=UTC),
    }  # fmt: skip
    return ExpertRating(**(defaults | fields))  # type: ignore[arg-type]


def test_changes_are_counted_and_measured_against_the_judge() -> None:
    # (first, final, judge): 1 -> 3 of 5 towards, 2 kept of 5, 4 -> 2 of 5 away
    triples = [(1, 3, 5), (2, 2, 5), (4, 2, 5)]
    rows = [
        rating_row(n, phase, value)
        for n, (first, final_value, _) in enumerate(triples, start=1)
        for phase, value in (("initial", first), ("final", final_value))
    ]
    scored = {n: JudgedValue(Status.SCORED, value=judge) for n, (_, _, judge) in enumerate(triples, start=1)}
    summary = anchoring(rows, {7: scored})[7]
    assert (summary.n, summary.kept, summary.towards, summary.away) == (3, 1, 1, 1)
    assert (summary.initial, summary.final, summary.judge) == (pytest.approx(7 / 3), pytest.approx(7 / 3), 5)
    assert summary.before == pytest.approx((4 + 3 + 1) / 3)
    assert summary.after == pytest.approx((2 + 3 + 3) / 3)
    assert summary.share == pytest.approx(0)


def test_assisted_unjudged_and_unrevised_ratings_are_excluded() -> None:
    scored = {n: JudgedValue(Status.SCORED, value=5.0) for n in (1, 2, 3)}
    rows = [
        rating_row(1, "initial", 1, blind=False), rating_row(1, "final", 5),
        rating_row(2, "initial", None), rating_row(2, "final", 5),
        rating_row(3, "initial", 2),
    ]  # fmt: skip
    assert anchoring(rows, {7: scored}) == {}
