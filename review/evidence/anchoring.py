"""Anchoring: how far experts moved towards the judge after they were shown it, from first and final ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evaluation.core.registry import Bilingual
from review.evidence.experts import ExpertRating
from review.evidence.judged import Judged, Key
from review.models.queues import FIRST_OCCASION


@dataclass(frozen=True, slots=True)
class Moved:
    """One reviewed answer of one metric: what the expert said first and last, and the judge; on the metric's scale."""

    initial: float
    final: float
    judge: float


@dataclass(frozen=True, slots=True)
class Anchoring:
    """A metric's ratings that have a final beside the first and a judge value. ``towards``, ``away`` and ``kept`` count
    them; the means are on the metric's scale: of the first, the final and the judge's values, and of the distance to
    the judge before and after. ``share`` is how much of the distance was given up, ``None`` where there was none."""

    n: int
    kept: int
    towards: int
    away: int
    initial: float
    final: float
    judge: float
    before: float
    after: float

    @property
    def share(self) -> float | None:
        """(before - after) / before."""
        return (self.before - self.after) / self.before if self.before else None


def anchoring(ratings: Sequence[ExpertRating], scored: Mapping[Key, Judged]) -> dict[int, Anchoring]:
    """Anchoring by metric, of metrics with numbers; classes have no distance. Ratings given with the judge in view
    (assisted) have no blind first word and are left out."""
    first: dict[tuple[Key, str, int], ExpertRating] = {}
    last: dict[tuple[Key, str, int], ExpertRating] = {}
    for row in ratings:
        if row.occasion == FIRST_OCCASION and not row.imported:
            place = (row.key, row.rater, row.assignment_id)
            (first if row.phase == "initial" else last)[place] = row
    found: dict[int, list[Moved]] = {}
    for place, final in last.items():
        initial, judge = first.get(place), scored.get(final.key)
        if initial is None or not initial.blind or judge is None:
            continue
        if initial.value is not None and final.value is not None and judge.value is not None:
            found.setdefault(final.metric_id, []).append(Moved(initial.value, final.value, judge.value))
    return {metric: summed_up(moved) for metric, moved in sorted(found.items())}


def anchoring_json(title: Bilingual, one: Anchoring) -> dict[str, Any]:
    """The figures of a metric as JSON values."""
    return {"title": {"en": title.en, "ko": title.ko}, **asdict(one), "share": one.share}


def summed_up(moved: Sequence[Moved]) -> Anchoring:
    """The figures of at least one rating."""
    before = [abs(one.initial - one.judge) for one in moved]
    after = [abs(one.final - one.judge) for one in moved]
    return Anchoring(
        n=len(moved),
        kept=sum(one.initial == one.final for one in moved),
        towards=sum(b > a for b, a in zip(before, after, strict=True)),
        away=sum(b < a for b, a in zip(before, after, strict=True)),
        initial=_mean([one.initial for one in moved]),
        final=_mean([one.final for one in moved]),
        judge=_mean([one.judge for one in moved]),
        before=_mean(before),
        after=_mean(after),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
