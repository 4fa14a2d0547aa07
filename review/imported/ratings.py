"""A file's human rows as ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evaluation.core.canonical import content_hash
from evaluation.files.rating_values import Phase
from evaluation.models import Run
from review.imported.placed import Placed, Sampled
from review.models import Rating

BATCH = 1000
_CODE = 40  # characters of a reason code


def store_ratings(run: Run, rows: Sequence[Placed], sampled: Sampled) -> int:
    """Insert what is new; how many rows that were. One query besides the insertion.

    A row equal to its author's newest one on the answer, metric and phase is there already. A different one is a new
    row and supersedes it; the key counts how often the same was said before, so that saying A, B and A again ends
    with A.
    """
    newest, times = _before(run, rows)
    made: list[Rating] = []
    for placed in rows:
        row = placed.row
        place = (placed.answer_id, placed.metric.pk, row.origin.author, row.origin.phase.value)
        digest = _digest(placed, sampled)
        if newest.get(place) == digest:
            continue
        made.append(_rating(placed, sampled, f"{digest}:{times[digest]}"))
        times[digest] += 1
        newest[place] = digest
    Rating.objects.bulk_create(made, batch_size=BATCH)
    return len(made)


def _before(run: Run, rows: Sequence[Placed]) -> tuple[dict[tuple[int, int, str, str], str], Counter[str]]:
    """The newest row's digest of each author on each answer, metric and phase, and how often each digest stands."""
    newest: dict[tuple[int, int, str, str], str] = {}
    times: Counter[str] = Counter()
    authors = {placed.row.origin.author for placed in rows}
    earlier = Rating.objects.filter(source="import", author__in=authors).order_by("id")
    earlier = earlier.filter(answer__answer_set_id=run.answer_set_id)
    columns = earlier.values_list("answer_id", "metric_id", "author", "phase", "idempotency_key")
    for answer_id, metric_id, author, phase, key in columns:
        digest = key.partition(":")[0]
        newest[answer_id, metric_id, author, phase] = digest
        times[digest] += 1
    return newest, times


def _digest(placed: Placed, sampled: Sampled) -> str:
    """What makes two rows say the same: everything but the time of the import."""
    row, origin = placed.row, placed.row.origin
    return content_hash(
        [
            placed.answer_id,
            placed.metric.pk,
            origin.author,
            str(origin.phase),
            origin.blind,
            origin.probability,
            str(sampled),
            row.value,
            row.label,
            row.failure,
            row.reason,
            [asdict(part) for part in row.parts],
        ]
    )


def _rating(placed: Placed, sampled: Sampled, key: str) -> Rating:
    row, origin = placed.row, placed.row.origin
    silent = row.value is None and row.label is None
    code = row.failure.partition(":")[0] if silent else ""
    parts: list[dict[str, Any]] = [asdict(part) for part in row.parts]
    return Rating(
        created_at=placed.moment,
        answer_id=placed.answer_id,
        metric=placed.metric,
        author=origin.author,
        source="import",
        phase=str(origin.phase),
        # A final rating follows a look at the judge, whatever the file says.
        blind=origin.blind and origin.phase is Phase.INITIAL,
        value=row.value,
        label=row.label,
        cannot_judge=silent,
        reason_code=code[:_CODE],
        comment=row.reason,
        parts=parts or None,
        probability=origin.probability,
        sampling=str(sampled),
        idempotency_key=key,
    )
