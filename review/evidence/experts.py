"""Expert ratings: the effective ones, the ones used for agreement, and anchoring to the judge."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from evaluation.core.metric_specs import Bilingual
from review.evidence.scorers import AnswerMetricKey, JudgedValue
from review.models import Assignment, Rating
from review.models.queues import FIRST_OCCASION


class ExpertRating(NamedTuple):
    """Row of the table of ratings.

    ``rater`` is a pseudonym (imported: the author's label). ``occasion`` is above 1 for hidden repeats. ``queue_id`` is
    0 for imported ratings; ``at`` is the time of the rating."""

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
    def key(self) -> AnswerMetricKey:
        return self.answer_id, self.metric_id

    @property
    def value_or_label(self) -> float | str | None:
        """Value or label; ``None`` if the expert could not judge."""
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
    """Ratings of the answers of a set (or some of them), without those that their rater took back and did not give
    again. Runs over one set share its answers and their ratings."""
    rows = Rating.objects.filter(is_standing(), answer__answer_set_id=answer_set_id)
    return rows if answer_ids is None else rows.filter(answer_id__in=answer_ids)


def is_standing() -> Q:
    """Condition that a rating is imported, or was not undone since."""
    rated_states = (Assignment.State.SUBMITTED, Assignment.State.REVEALED, Assignment.State.FINISHED)
    return Q(assignment=None) | Q(assignment__state__in=rated_states)


def read_ratings(ratings: QuerySet[Rating]) -> list[ExpertRating]:
    """Read the rows, oldest first. One query."""
    return [row for row, _ in read_ratings_with(ratings)]


def read_ratings_with(ratings: QuerySet[Rating], *columns: str) -> Iterator[tuple[ExpertRating, tuple[Any, ...]]]:
    """Read the rows with additional columns, oldest first. One query."""
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
        *extra,
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
            tuple(extra),
        )


def has_examples(answer_set_id: int) -> bool:
    """Return whether some of the ratings come from an example queue."""
    return ratings_of(answer_set_id).filter(assignment__item__queue__example=True).exists()


def effective_ratings(rows: Iterable[ExpertRating]) -> dict[AnswerMetricKey, list[ExpertRating]]:
    """Each rater's latest final rating, or else the latest initial one, including assisted ones.

    Hidden repeats only serve self-consistency and are left out. A rater whose latest rating is "cannot judge" has none.
    """
    latest: dict[tuple[int, int, str], ExpertRating] = {}
    for row in rows:
        if row.occasion != FIRST_OCCASION:
            continue
        key = row.answer_id, row.metric_id, row.rater
        previous = latest.get(key)
        if previous is None or row.phase == "final" or previous.phase != "final":
            latest[key] = row
    return _by_key(row for row in latest.values() if not row.cannot_judge)


def agreement_ratings(rows: Iterable[ExpertRating]) -> dict[AnswerMetricKey, list[ExpertRating]]:
    """Each rater's blind first rating: the last initial row of the first occasion, if it is blind and a judgement.

    Later initial rows supersede earlier ones until the reveal. Imported ratings count as one occasion per rater: the
    newest row of the initial phase."""
    first: dict[tuple[int, int, str], int] = {}
    last: dict[tuple[int, int, str], ExpertRating] = {}
    initial = [row for row in rows if row.phase == "initial"]
    for row in sorted(initial, key=attrgetter("occasion", "pk")):
        key = row.answer_id, row.metric_id, row.rater
        if first.setdefault(key, row.assignment_id) == row.assignment_id:
            last[key] = row
    return _by_key(row for row in last.values() if row.blind and not row.cannot_judge)


def _by_key(rows: Iterable[ExpertRating]) -> dict[AnswerMetricKey, list[ExpertRating]]:
    by_key: dict[AnswerMetricKey, list[ExpertRating]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    return by_key


@dataclass(frozen=True, slots=True)
class AnchoredRating:
    """Reviewed answer of one metric: the expert's first and final value and the judge's value, on the metric's
    scale."""

    initial: float
    final: float
    judge: float


@dataclass(frozen=True, slots=True)
class Anchoring:
    """Anchoring of a metric's ratings that have an initial and a final value and a judge value.

    ``towards``, ``away`` and ``kept`` count how ratings moved relative to the judge. The means are on the metric's
    scale: of the initial, final and judge values, and of the distance to the judge before and after."""

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
        """Share of the distance that was given up, (before - after) / before; ``None`` without a distance."""
        return (self.before - self.after) / self.before if self.before else None


def anchoring(ratings: Sequence[ExpertRating], scored: Mapping[int, Mapping[int, JudgedValue]]) -> dict[int, Anchoring]:
    """Anchoring by metric, for metrics with numbers, because classes have no distance.

    ``scored`` is by metric and answer. Assisted ratings, given with the judge in view, are left out."""
    initial_ratings: dict[tuple[AnswerMetricKey, str, int], ExpertRating] = {}
    final_ratings: dict[tuple[AnswerMetricKey, str, int], ExpertRating] = {}
    for row in ratings:
        if row.occasion == FIRST_OCCASION and not row.imported:
            key = (row.key, row.rater, row.assignment_id)
            (initial_ratings if row.phase == "initial" else final_ratings)[key] = row
    ratings_by_metric: dict[int, list[AnchoredRating]] = {}
    for key, final in final_ratings.items():
        initial, judge = initial_ratings.get(key), scored.get(final.metric_id, {}).get(final.answer_id)
        if initial is None or not initial.blind or judge is None:
            continue
        if initial.value is not None and final.value is not None and judge.value is not None:
            ratings_by_metric.setdefault(final.metric_id, []).append(
                AnchoredRating(initial.value, final.value, judge.value)
            )
    return {metric: summarize_anchoring(metric_ratings) for metric, metric_ratings in sorted(ratings_by_metric.items())}


def anchoring_json(title: Bilingual, figures: Anchoring) -> dict[str, Any]:
    return {"title": {"en": title.en, "ko": title.ko}, **asdict(figures), "share": figures.share}


def summarize_anchoring(ratings: Sequence[AnchoredRating]) -> Anchoring:
    """Summarize at least one rating."""
    before = [abs(rating.initial - rating.judge) for rating in ratings]
    after = [abs(rating.final - rating.judge) for rating in ratings]
    return Anchoring(
        n=len(ratings),
        kept=sum(rating.initial == rating.final for rating in ratings),
        towards=sum(b > a for b, a in zip(before, after, strict=True)),
        away=sum(b < a for b, a in zip(before, after, strict=True)),
        initial=_mean([rating.initial for rating in ratings]),
        final=_mean([rating.final for rating in ratings]),
        judge=_mean([rating.judge for rating in ratings]),
        before=_mean(before),
        after=_mean(after),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
