"""Anchoring, worked by hand: first, last and the judge's value of every rating that was looked at again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evaluation.core.samples import Status
from review.evidence.experts import ExpertRating, anchoring
from review.evidence.scorers import JudgedValue


def rated(answer: int, phase: str, value: float | None, **fields: object) -> ExpertRating:
    defaults: dict[str, object] = {
        "pk": answer * 2 + (phase == "final"), "answer_id": answer, "metric_id": 7, "rater": "expert_1",
        "imported": False, "phase": phase, "blind": phase == "initial", "value": value, "label": None,
        "cannot_judge": value is None, "sampling": "", "probability": None, "occasion": 1, "assignment_id": answer,
        "queue_id": 1, "example": False, "at": datetime(2026, 11, 20, tzinfo=UTC),
    }  # fmt: skip
    return ExpertRating(**(defaults | fields))  # type: ignore[arg-type]


def test_moves_are_counted_and_measured_against_the_judge() -> None:
    # (first, final, judge): 1 -> 3 of 5 towards, 2 kept of 5, 4 -> 2 of 5 away
    said = [(1, 3, 5), (2, 2, 5), (4, 2, 5)]
    rows = [
        rated(n, phase, value)
        for n, (first, final, _) in enumerate(said, start=1)
        for phase, value in (("initial", first), ("final", final))
    ]
    scored = {n: JudgedValue(Status.SCORED, value=judge) for n, (_, _, judge) in enumerate(said, start=1)}
    found = anchoring(rows, {7: scored})[7]
    assert (found.n, found.kept, found.towards, found.away) == (3, 1, 1, 1)
    assert (found.initial, found.final, found.judge) == (pytest.approx(7 / 3), pytest.approx(7 / 3), 5)
    assert found.before == pytest.approx((4 + 3 + 1) / 3)
    assert found.after == pytest.approx((2 + 3 + 3) / 3)
    assert found.share == pytest.approx(0)


def test_assisted_unjudged_and_unfinished_ratings_say_nothing_about_anchoring() -> None:
    scored = {n: JudgedValue(Status.SCORED, value=5.0) for n in (1, 2, 3)}
    rows = [
        rated(1, "initial", 1, blind=False), rated(1, "final", 5),
        rated(2, "initial", None), rated(2, "final", 5),
        rated(3, "initial", 2),
    ]  # fmt: skip
    assert anchoring(rows, {7: scored}) == {}
