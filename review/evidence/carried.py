"""Ratings of equal answers: what experts said of an answer to the same question, with the same text and passages, in an
earlier answer set. Read here and nowhere else; ``docs/correction.md`` says what they count for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from evaluation.core.canonical import content_hash
from evaluation.models import Answer, Run
from review.evidence.answers import upheld_flags
from review.evidence.experts import ExpertRating, agreement_ratings, effective_ratings, read
from review.evidence.scorers import Key
from review.models import Assignment, Rating


@dataclass(frozen=True, slots=True)
class Origin:
    """Where ratings were given: the equal answer, its answer set and the newest run over it, the version of the system
    that answered, the keys of the ratings that count, and when the newest of them was given."""

    answer_id: int
    answer_set_id: int
    run_id: int
    system: str
    ratings: tuple[int, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Carried:
    """The ratings of one metric that an answer has from an equal one: those that count, each rater's last word, and
    the blind first ones."""

    origin: Origin
    ratings: Sequence[ExpertRating]
    blind: Sequence[ExpertRating]


def carried_ratings(run: Run, answer_ids: Collection[int] | None = None) -> dict[Key, Carried]:
    """By answer of the run (or some of them) and metric the ratings of the newest equal answer that has any. One query,
    a second where there are some.

    Equal are answers to the same question of the same version of the question set, with the same text, and the same
    passages in the same order as experts see them; the source lies in an earlier answer set. Left out are ratings
    under another version of the rubric than a judge of the run works by, taken back by their rater, made for show, of
    answers that a lead took out of all means, and hidden repeats.
    """
    twins = Answer.objects.filter(answer_set_id=run.answer_set_id, status="ok")
    if answer_ids is not None:
        twins = twins.filter(pk__in=answer_ids)
    twin = twins.filter(question=OuterRef("question"), text_hash=OuterRef("text_hash"))
    earlier = Answer.objects.filter(
        Exists(twin),
        answer_set__question_set__answer_sets=run.answer_set_id,
        answer_set__lt=run.answer_set_id,
        status="ok",
    )
    said: dict[int, list[ExpertRating]] = {}
    for row in read(_standing(run, Rating.objects.filter(answer__in=earlier))):
        said.setdefault(row.answer_id, []).append(row)
    if not said:
        return {}
    rated = earlier.filter(Exists(_standing(run, Rating.objects.filter(answer=OuterRef("pk")))))
    source = rated.filter(question=OuterRef("question"), text_hash=OuterRef("text_hash"))
    contents = _contents(Answer.objects.filter(Q(pk__in=rated.values("pk")) | Q(Exists(source), pk__in=twins)))
    found: dict[Key, Carried] = {}
    targets: dict[str, list[int]] = {}
    for one in contents:
        if one.answer_set_id == run.answer_set_id:
            targets.setdefault(one.digest, []).append(one.answer_id)
    for one in contents:  # the oldest first, so that newer ones take the place of older ones
        for answer_id in targets.get(one.digest, ()) if one.answer_id in said else ():
            found |= {(answer_id, metric): several for metric, several in _by_metric(one, said[one.answer_id]).items()}
    return found


def _standing(run: Run, ratings: QuerySet[Rating]) -> QuerySet[Rating]:
    """Those that hold: not taken back, not for show, of an answer that counts, under no other rubric than the run's."""
    other = run.judges.filter(primary=True, rubric_version__family=OuterRef("rubric_version__family"))
    rated = (Assignment.State.SUBMITTED, Assignment.State.REVEALED, Assignment.State.FINISHED)
    return ratings.filter(
        Q(assignment=None) | Q(assignment__state__in=rated, assignment__item__queue__example=False),
        ~Exists(other.exclude(rubric_version=OuterRef("rubric_version"))),
        ~Exists(upheld_flags().filter(event__assignment__item__answer=OuterRef("answer"))),
    )


@dataclass(frozen=True, slots=True)
class _Content:
    """An answer of an answer set, with a hash of what an expert reads: question, text, passages."""

    answer_id: int
    answer_set_id: int
    run_id: int
    system: str
    digest: str


_SYSTEM = ("answer_set__system_version__system__name", "answer_set__system_version__version")
_OF_ANSWER = ("answer_set_id", "pk", "newest_run", *_SYSTEM)
_READ = ("question_id", "text_hash", "retrieves", "retrieved_ids")
_OF_PASSAGE = ("contexts__position", "contexts__chunk_id", "contexts__source", "contexts__text")


def _contents(answers: QuerySet[Answer]) -> list[_Content]:
    """The contents of answers, those of older answer sets first. One query."""
    newest = Run.objects.filter(answer_set=OuterRef("answer_set")).order_by("-pk").values("pk")[:1]
    rows = answers.annotate(newest_run=Subquery(newest)).order_by("answer_set_id", "pk", "contexts__position")
    told: Iterable[tuple[Any, ...]] = rows.values_list(*_OF_ANSWER, *_READ, *_OF_PASSAGE)
    return [_content(of, list(passages)) for of, passages in groupby(told, key=lambda row: row[: len(_OF_ANSWER)])]


def _content(of: tuple[Any, ...], rows: Sequence[tuple[Any, ...]]) -> _Content:
    answer_set_id, answer_id, run_id, system, version = of
    read_of_answer, passages = rows[0][len(of) : -len(_OF_PASSAGE)], [row[-len(_OF_PASSAGE) :] for row in rows]
    digest = content_hash([*read_of_answer, passages])
    return _Content(answer_id, answer_set_id, run_id or 0, f"{system} v{version}", digest)


def _by_metric(source: _Content, rows: Iterable[ExpertRating]) -> dict[int, Carried]:
    """What holds of an answer, by metric; nothing where nobody who could judge is left."""
    rows = list(rows)
    blind: Mapping[Key, list[ExpertRating]] = agreement_ratings(rows)
    return {
        metric: Carried(_origin(source, ratings), ratings, blind.get((source.answer_id, metric), ()))
        for (_, metric), ratings in effective_ratings(rows).items()
    }


def _origin(source: _Content, ratings: Sequence[ExpertRating]) -> Origin:
    keys, newest = tuple(row.pk for row in ratings), max(row.at for row in ratings)
    return Origin(source.answer_id, source.answer_set_id, source.run_id, source.system, keys, newest)
