"""Runs with a uniform half rated by experts: the smallest run for a correction, gate or comparison."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.models import Run, User
from review.evidence.invalidation import invalidate_run_figures
from review.models import Rating
from tests.factories import make_user
from tests.review.builders import (
    answer_rows,
    draw_into,
    imported_row,
    metric,
    queue_for,
    rate_each,
    score_all,
)

OTHER_SCORES = {
    "keyword_hit": 1.0,
    "keyword_coverage": 1.0,
    "negative_detection": 1.0,
    "faithfulness": 5,
    "completeness": 5,
}


def fill(run: Run, correctness: Sequence[float | str | None]) -> Run:
    """Score correctness as given and everything else perfectly: the overall score is .75 + .25 x correctness / 5."""
    score_all(
        run, {"correctness": correctness} | {name: [value] * len(correctness) for name, value in OTHER_SCORES.items()}
    )
    return run


def rate_half(run: Run, experts: Sequence[float], reviewers: Sequence[User] = ()) -> None:
    """Rate a uniform draw of every other answer, from the first; each reviewer gives ``experts`` in that order."""
    _rate(run, experts, reviewers, 2)


def rate_all(run: Run, experts: Sequence[float]) -> None:
    """A census: one person rates every answer."""
    _rate(run, experts, (), 1)


def rate_other_parts(run: Run) -> None:
    """Rate faithfulness and completeness as the judge does, so that every judged part of the overall score is rated."""
    rows = {name: metric(name) for name in ("faithfulness", "completeness")}
    Rating.objects.bulk_create(
        imported_row(answer, row, "e1", int(OTHER_SCORES[name]))
        for answer in answer_rows(run)
        for name, row in rows.items()
    )
    invalidate_run_figures(run)


def _rate(run: Run, experts: Sequence[float], reviewers: Sequence[User], step: int) -> None:
    raters = list(reviewers) or [make_user()]
    row, answers = metric("correctness"), answer_rows(run)
    queue = queue_for(run, [row], raters)
    draw_into(queue, run, [("all", 1 / step, at % step == 0) for at in range(len(answers))])
    rate_each(queue, [row], answers[::step], dict.fromkeys(raters, experts))
