"""Ratings carried over from equal answers in earlier answer sets: same question, text and passages.

Only this module reads them; ``docs/correction.md`` explains their use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet

from evaluation.core.canonical import text_hash
from evaluation.models import Answer, AnswerSet, Context, Run
from review.evidence.answers import upheld_flags
from review.evidence.experts import (
    ExpertRating,
    agreement_ratings,
    effective_ratings,
    is_standing,
    read_ratings_with,
)
from review.evidence.scorers import AnswerMetricKey
from review.models import Rating


@dataclass(frozen=True, slots=True)
class RatingOrigin:
    """Origin of carried ratings.

    It holds the equal answer, its answer set and that set's newest run, the system version, the keys of the effective
    ratings, and the time of the newest one."""

    answer_id: int
    answer_set_id: int
    run_id: int
    system: str
    ratings: tuple[int, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class CarriedRatings:
    """Ratings of one metric from an equal answer: the effective ones (each rater's last), and the blind first ones."""

    origin: RatingOrigin
    ratings: Sequence[ExpertRating]
    blind: Sequence[ExpertRating]


def carried_ratings(run: Run, answer_ids: Collection[int] | None = None) -> dict[AnswerMetricKey, CarriedRatings]:
    """Ratings of the newest equal answer that has any, by answer of the run (or some of them) and metric.

    One query, two more if there are any.

    Equal answers have the same question in the same version of the question set, the same text, and the same passages
    in the same order (id, source and text); the source lies in an earlier answer set. Ratings are left out if they use
    another rubric version than a judge of the run, were withdrawn by their rater, come from an example queue, belong to
    an answer excluded from all means, or are hidden repeats."""
    ratings = _valid_ratings(_equal_answer_ratings(run, answer_ids), run)
    columns = ("run_answer", "answer__answer_set_id", "answer__retrieved_ids", "run_retrieved_ids")
    rows_by_key: dict[AnswerMetricKey, dict[tuple[int, int], list[ExpertRating]]] = {}
    candidates = list(read_ratings_with(ratings, *columns))
    passages = passage_digests({pk for row, (run_answer, *_) in candidates for pk in (row.answer_id, run_answer)})
    for row, (run_answer, set_id, ids, run_retrieved_ids) in candidates:
        if ids == run_retrieved_ids and passages.get(row.answer_id) == passages.get(run_answer):
            rows_by_key.setdefault((run_answer, row.metric_id), {}).setdefault((set_id, row.answer_id), []).append(row)
    sets = _answer_sets({set_id for sources in rows_by_key.values() for set_id, _ in sources})
    carried = {}
    for key, sources in rows_by_key.items():
        for (set_id, answer_id), rows in sorted(sources.items(), reverse=True):
            if effective := effective_ratings(rows).get((answer_id, key[1])):
                rating_ids, newest = tuple(row.pk for row in effective), max(row.at for row in effective)
                origin = RatingOrigin(answer_id, set_id, *sets[set_id], rating_ids, newest)
                carried[key] = CarriedRatings(origin, effective, agreement_ratings(rows).get((answer_id, key[1]), ()))
                break
    return carried


def equal_answers(answer_set_id: int, earlier_set_id: int) -> frozenset[tuple[int, int]]:
    """Pairs of equal answers: one of the answer set, and one of the earlier set. Two queries."""
    columns = ("pk", "question__answers", "retrieved_ids", "question__answers__retrieved_ids")
    equal_fields = {f"question__answers__{name}": F(name) for name in ("text_hash", "retrieves", "status")}
    rows = Answer.objects.filter(
        answer_set=answer_set_id, status="ok", question__answers__answer_set=earlier_set_id, **equal_fields
    )
    pairs = [(pk, earlier) for pk, earlier, ids, earlier_ids in rows.values_list(*columns) if ids == earlier_ids]
    passages = passage_digests({pk for pair in pairs for pk in pair})
    return frozenset((pk, earlier) for pk, earlier in pairs if passages.get(pk) == passages.get(earlier))


def _equal_answer_ratings(run: Run, answer_ids: Collection[int] | None) -> QuerySet[Rating]:
    """Ratings of answers in earlier sets whose text is that of an answer of the run, annotated as ``run_answer``.

    The passages may still differ, and the retrieved ids: those of the run's answer are ``run_retrieved_ids``."""
    run_answer = "answer__question__answers"
    restriction = {} if answer_ids is None else {f"{run_answer}__in": answer_ids}
    equal_fields = {f"{run_answer}__{name}": F(f"answer__{name}") for name in ("text_hash", "retrieves", "status")}
    rows = Rating.objects.filter(
        answer__answer_set__lt=run.answer_set_id,
        answer__status="ok",
        **{f"{run_answer}__answer_set": run.answer_set_id},
        **equal_fields,
        **restriction,
    )
    return rows.annotate(run_answer=F(run_answer), run_retrieved_ids=F(f"{run_answer}__retrieved_ids"))


def passage_digests(answer_ids: Collection[int]) -> dict[int, str]:
    """A digest of each answer's passages in their order, by answer. Answers without passages are left out."""
    # Compared here: without statistics PostgreSQL would read all passages once for each rating.
    rows = Context.objects.filter(answer__in=answer_ids).order_by("answer", "position")
    passages = rows.values_list("answer", "position", "chunk_id", "source", "text").iterator()
    return {
        answer: text_hash([passage for _, *passage in group]) for answer, group in groupby(passages, key=itemgetter(0))
    }


def _valid_ratings(ratings: QuerySet[Rating], run: Run) -> QuerySet[Rating]:
    """Keep valid ratings: not withdrawn, not from an example queue, of an answer that is not excluded.

    Their rubric version is that of the run's judges."""
    judges = run.judges.filter(primary=True, rubric_version__family=OuterRef("rubric_version__family"))
    return ratings.filter(
        is_standing(),
        Q(assignment=None) | Q(assignment__item__queue__example=False),
        ~Exists(upheld_flags().filter(event__assignment__item__answer=OuterRef("answer"))),
        ~Exists(judges.exclude(rubric_version=OuterRef("rubric_version"))),
    )


def _answer_sets(keys: Collection[int]) -> dict[int, tuple[int, str]]:
    """Newest run and system version of each answer set. One query if there are any."""
    version = "system_version__version"
    rows = AnswerSet.objects.filter(pk__in=keys).annotate(run=Max("runs"))
    columns = rows.values_list("pk", "run", "system_version__system__name", version)
    return {pk: (newest or 0, f"{system} v{number}") for pk, newest, system, number in columns}
