"""Runs of which experts have rated a uniform half: the smallest thing a correction, gate or comparison can be about."""

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

OTHERS = {"keyword_hit": 1.0, "keyword_coverage": 1.0, "negative_detection": 1.0, "faithfulness": 5, "completeness": 5}


def fill(run: Run, correctness: Sequence[float | str | None]) -> Run:
    """Correctness as given; everything else is perfect, so that the overall score is .75 + .25 x correctness / 5."""
    score_all(run, {"correctness": correctness} | {name: [value] * len(correctness) for name, value in OTHERS.items()})
    return run


def rate_half(run: Run, experts: Sequence[float], people: Sequence[User] = ()) -> None:
    """A uniform draw of every other answer, beginning with the first; each person gives ``experts`` in that order."""
    _rate(run, experts, people, 2)


def rate_all(run: Run, experts: Sequence[float]) -> None:
    """A census: one person rates every answer."""
    _rate(run, experts, (), 1)


def rate_the_others(run: Run) -> None:
    """Faithfulness and completeness of every answer, as the judge has them: with correctness rated as well no judged
    part of the overall score is left unrated."""
    rows = {name: metric(name) for name in ("faithfulness", "completeness")}
    Rating.objects.bulk_create(
        imported_row(answer, row, "e1", int(OTHERS[name])) for answer in answer_rows(run) for name, row in rows.items()
    )
    invalidate_run_figures(run)


def _rate(run: Run, experts: Sequence[float], people: Sequence[User], every: int) -> None:
    raters = list(people) or [make_user()]
    row, answers = metric("correctness"), answer_rows(run)
    queue = queue_for(run, [row], raters)
    draw_into(queue, run, [("all", 1 / every, at % every == 0) for at in range(len(answers))])
    rate_each(queue, [row], answers[::every], dict.fromkeys(raters, experts))
