"""What experts said of each answer: the ratings that count for what, and how far the judge drew them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple

from django.db.models import QuerySet

from evaluation.core.metric_specs import Bilingual
from review.evidence.scorers import Judged, Key
from review.models import Rating
from review.models.queues import FIRST_OCCASION


class ExpertRating(NamedTuple):
    """One row of the table of ratings. ``rater`` names the person without telling who it is (imported: the author's
    label). ``occasion`` is above 1 for hidden repeats, ``queue_id`` 0 for imported ratings; ``at`` is when
    it was given."""

    pk: int
    answer_id: int
    metric_id: int
    rater: str
    imported: bool
    phase: str
    blind: bool
    value: float | None
    label: str | None
    cannot_judge: bool
    sampling: str
    probability: float | None
    occasion: int
    assignment_id: int
    queue_id: int
    example: bool
    at: datetime

    @property
    def key(self) -> Key:
        """Answer and metric."""
        return self.answer_id, self.metric_id

    @property
    def answer(self) -> float | str | None:
        """The value or the label; ``None`` where the expert could not judge."""
        return self.label if self.value is None else self.value


_FIELDS = (
    "id",
    "answer_id",
    "metric_id",
    "reviewer_id",
    "author",
    "source",
    "phase",
    "blind",
    "value",
    "label",
    "cannot_judge",
    "sampling",
    "probability",
    "assignment_id",
    "assignment__item__occasion",
    "assignment__item__queue_id",
    "assignment__item__queue__example",
    "created_at",
)


def ratings_of(answer_set_id: int, answer_ids: Collection[int] | None = None) -> QuerySet[Rating]:
    """All ratings of the answers of a set (or some of them): answers are shared by the runs over it, and so are
    their ratings."""
    rows = Rating.objects.filter(answer__answer_set_id=answer_set_id)
    return rows if answer_ids is None else rows.filter(answer_id__in=answer_ids)


def read(ratings: QuerySet[Rating]) -> list[ExpertRating]:
    """The rows, oldest first. One query."""
    return [row for row, _ in read_beside(ratings)]


def read_beside(ratings: QuerySet[Rating], *columns: str) -> Iterator[tuple[ExpertRating, tuple[Any, ...]]]:
    """The rows, oldest first, each with further columns. One query."""
    for (
        pk,
        answer_id,
        metric_id,
        reviewer_id,
        author,
        source,
        phase,
        blind,
        value,
        label,
        cannot_judge,
        sampling,
        probability,
        assignment_id,
        occasion,
        queue_id,
        example,
        at,
        *beside,
    ) in ratings.order_by("id").values_list(*_FIELDS, *columns):
        yield (
            ExpertRating(
                pk,
                answer_id,
                metric_id,
                intern(author if source == "import" else f"expert_{reviewer_id}"),
                source == "import",
                intern(phase),
                blind,
                value,
                label,
                cannot_judge,
                intern(sampling),
                probability,
                occasion or FIRST_OCCASION,
                assignment_id or 0,
                queue_id or 0,
                bool(example),
                at,
            ),
            tuple(beside),
        )


def has_examples(answer_set_id: int) -> bool:
    """Whether some of the ratings were made for show."""
    return ratings_of(answer_set_id).filter(assignment__item__queue__example=True).exists()


def effective_ratings(rows: Iterable[ExpertRating]) -> dict[Key, list[ExpertRating]]:
    """Each rater's latest final, else latest initial rating, assisted ones included.

    Hidden repeats serve self-consistency alone and are left out. A rater whose latest word is "cannot judge" says
    nothing.
    """
    latest: dict[tuple[int, int, str], ExpertRating] = {}
    for row in rows:
        if row.occasion != FIRST_OCCASION:
            continue
        place = row.answer_id, row.metric_id, row.rater
        earlier = latest.get(place)
        if earlier is None or row.phase == "final" or earlier.phase != "final":
            latest[place] = row
    return _by_key(row for row in latest.values() if not row.cannot_judge)


def agreement_ratings(rows: Iterable[ExpertRating]) -> dict[Key, list[ExpertRating]]:
    """Each rater's blind first word: the first occasion on which they rated, of it the last initial row (later ones
    supersede earlier ones before the reveal), if that row is blind and a judgement.

    Imported ratings count as one occasion per rater: the newest row of the initial phase.
    """
    first: dict[tuple[int, int, str], int] = {}
    last: dict[tuple[int, int, str], ExpertRating] = {}
    initial = [row for row in rows if row.phase == "initial"]
    for row in sorted(initial, key=attrgetter("occasion", "pk")):
        place = row.answer_id, row.metric_id, row.rater
        if first.setdefault(place, row.assignment_id) == row.assignment_id:
            last[place] = row
    return _by_key(row for row in last.values() if row.blind and not row.cannot_judge)


def _by_key(rows: Iterable[ExpertRating]) -> dict[Key, list[ExpertRating]]:
    found: dict[Key, list[ExpertRating]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return found


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


def anchoring(ratings: Sequence[ExpertRating], scored: Mapping[int, Mapping[int, Judged]]) -> dict[int, Anchoring]:
    """Anchoring by metric, of metrics with numbers; classes have no distance. ``scored`` is by metric and answer.
    Ratings given with the judge in view (assisted) have no blind first word and are left out."""
    first: dict[tuple[Key, str, int], ExpertRating] = {}
    last: dict[tuple[Key, str, int], ExpertRating] = {}
    for row in ratings:
        if row.occasion == FIRST_OCCASION and not row.imported:
            place = (row.key, row.rater, row.assignment_id)
            (first if row.phase == "initial" else last)[place] = row
    found: dict[int, list[Moved]] = {}
    for place, final in last.items():
        initial, judge = first.get(place), scored.get(final.metric_id, {}).get(final.answer_id)
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
