"""A file's judge rows as scores of an imported judge, known by its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.canonical import content_hash
from evaluation.core.samples import Status
from evaluation.models import Finding, Run, Score
from review.imported.placed import Placed

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Stored:
    """How many scores were inserted, and how many of them are failures."""

    stored: int
    failed: int


def store_judge_scores(run: Run, rows: Sequence[Placed]) -> Stored:
    """Insert what is new. A row that says the same as the judge's newest score of the answer is there already; a
    different one is the next round of the same origin, and the highest round counts. One query besides."""
    newest = _newest(run, rows)
    made: list[tuple[Score, Placed]] = []
    for placed in rows:
        score = _score(run, placed)
        before = newest.get((score.origin, placed.metric.pk))
        if before and _said(before) == _said(score):
            continue
        score.round = before.round + 1 if before else 0
        newest[score.origin, placed.metric.pk] = score
        made.append((score, placed))
    Score.objects.bulk_create([score for score, _ in made], batch_size=BATCH)
    Finding.objects.bulk_create(
        (
            Finding(
                score=score,
                kind=part.kind,
                position=position,
                text=part.text,
                verdict=part.verdict,
                context=part.context,
                start=part.start,
                end=part.end,
                reason=part.reason,
            )
            for score, placed in made
            for position, part in enumerate(placed.row.parts)
        ),
        batch_size=BATCH,
    )
    return Stored(len(made), sum(score.status == Status.FAILED for score, _ in made))


def _newest(run: Run, rows: Sequence[Placed]) -> dict[tuple[str, int], Score]:
    authors = {placed.row.origin.author for placed in rows}
    scores = Score.objects.filter(run=run, author__in=authors).order_by("round")
    return {(score.origin, score.metric_id): score for score in scores}


def _said(score: Score) -> tuple[str, float | None, str | None, str]:
    return score.status, score.value, score.label, score.reason


def _score(run: Run, placed: Placed) -> Score:
    row = placed.row
    failed = row.value is None and row.label is None
    return Score(
        created_at=placed.moment,
        run=run,
        answer_id=placed.answer_id,
        metric=placed.metric,
        origin=content_hash(["import", run.pk, placed.answer_id, row.origin.author]),
        author=row.origin.author,
        status=Status.FAILED if failed else Status.SCORED,
        value=row.value,
        label=row.label,
        reason=row.failure if failed else row.reason,
        detail={"reported": row.reason} if failed and row.reason else {},
    )
