"""What a scorer (a judge or the rules) said of each answer: its repeats folded into one value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluation.core.samples import Status

REPEATS_TIED = "repeats_tied"  # as many repeats said one class as another
Key = tuple[int, int]  # answer, metric


@dataclass(frozen=True, slots=True)
class Judged:
    """A scorer's value of one metric for one answer: the mean over the repeats that are scored (classes: their
    majority), ``value`` or ``label`` exactly where ``status`` is scored, else the ``reason``. ``each`` holds the
    repeats' values where there are several."""

    status: Status
    value: float | None = None
    label: str | None = None
    reason: str = ""
    repeats: int = 1
    each: tuple[float, ...] = ()

    @property
    def answer(self) -> float | str | None:
        """The value or the label, ``None`` where there is neither."""
        return self.label if self.value is None else self.value


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The columns of a score that figures read."""

    answer_id: int
    metric_id: int
    status: str
    value: float | None
    label: str | None
    reason: str


def folded(repeats: Sequence[ScoreRow]) -> Judged:
    """One value of several repeats: the mean of those that are scored, whatever failed beside them; without a scored
    one the first failure, else the first reason why the metric does not apply."""
    scored = [row for row in repeats if row.status == Status.SCORED]
    if not scored:
        failed = [row for row in repeats if row.status == Status.FAILED]
        first = (failed or list(repeats))[0]
        return Judged(Status(first.status), reason=first.reason, repeats=len(repeats))
    values = [row.value for row in scored if row.value is not None]
    if values:
        each = tuple(values) if len(values) > 1 else ()
        return Judged(Status.SCORED, value=math.fsum(values) / len(values), repeats=len(repeats), each=each)
    label = majority(row.label for row in scored if row.label is not None)
    if label is None:
        return Judged(Status.FAILED, reason=REPEATS_TIED, repeats=len(repeats))
    return Judged(Status.SCORED, label=label, repeats=len(repeats))


def majority(labels: Iterable[str]) -> str | None:
    """The most frequent label; ``None`` where two are tied for it, or there is none."""
    ranked = Counter(labels).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]
