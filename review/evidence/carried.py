"""Ratings of equal answers: what experts said of an answer to the same question, with the same text and passages, in an
earlier answer set. Read here and nowhere else; ``docs/correction.md`` says what they count for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet

from evaluation.models import AnswerSet, Context, Run
from review.evidence.answers import upheld_flags
from review.evidence.experts import ExpertRating, agreement_ratings, effective_ratings, read_beside
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
    passages in the same order (id, source and text); the source lies in an earlier answer set. Left out are ratings
    under another version of the rubric than a judge of the run works by, taken back by their rater, made for show, of
    answers that a lead took out of all means, and hidden repeats.
    """
    ratings = _standing(_of_equal_answers(run, answer_ids), run)
    columns = ("twin", "answer__answer_set_id", "answer__retrieved_ids", "twin_ids")
    said: dict[Key, dict[tuple[int, int], list[ExpertRating]]] = {}
    for row, (twin, set_id, ids, twin_ids) in read_beside(ratings, *columns):
        if ids == twin_ids:
            said.setdefault((twin, row.metric_id), {}).setdefault((set_id, row.answer_id), []).append(row)
    sets = _answer_sets({set_id for sources in said.values() for set_id, _ in sources})
    found = {}
    for key, sources in said.items():
        for (set_id, answer_id), rows in sorted(sources.items(), reverse=True):
            if counting := effective_ratings(rows).get((answer_id, key[1])):
                keys, newest = tuple(row.pk for row in counting), max(row.at for row in counting)
                origin = Origin(answer_id, set_id, *sets[set_id], keys, newest)
                found[key] = Carried(origin, counting, agreement_ratings(rows).get((answer_id, key[1]), ()))
                break
    return found


def _of_equal_answers(run: Run, answer_ids: Collection[int] | None) -> QuerySet[Rating]:
    """The ratings of answers in earlier sets that are equal to one of the run's, their ``twin``, but perhaps for the
    ids that were retrieved: those of the twin stand beside as ``twin_ids``."""
    twin = "answer__question__answers"
    among = {} if answer_ids is None else {f"{twin}__in": answer_ids}
    same = {f"{twin}__{name}": F(f"answer__{name}") for name in ("text_hash", "retrieves", "status")}
    rows = Rating.objects.filter(
        answer__answer_set__lt=run.answer_set_id,
        answer__status="ok",
        **{f"{twin}__answer_set": run.answer_set_id},
        **same,
        **among,
    )
    rows = rows.annotate(twin=F(twin), twin_ids=F(f"{twin}__retrieved_ids"))
    return rows.filter(~Exists(_missing("answer", "twin")), ~Exists(_missing("twin", "answer")))


def _missing(one: str, other: str) -> QuerySet[Context]:
    """Passages of one answer that the other does not have in the same place."""
    read = {name: OuterRef(name) for name in ("position", "chunk_id", "source", "text")}
    return Context.objects.filter(
        ~Exists(Context.objects.filter(answer=OuterRef(OuterRef(other)), **read)), answer=OuterRef(one)
    )


def _standing(ratings: QuerySet[Rating], run: Run) -> QuerySet[Rating]:
    """Those that hold: not taken back, not for show, of an answer that counts, under no other version of the rubric
    than the run's judges work by."""
    rated = (Assignment.State.SUBMITTED, Assignment.State.REVEALED, Assignment.State.FINISHED)
    judges = run.judges.filter(primary=True, rubric_version__family=OuterRef("rubric_version__family"))
    return ratings.filter(
        Q(assignment=None) | Q(assignment__state__in=rated, assignment__item__queue__example=False),
        ~Exists(upheld_flags().filter(event__assignment__item__answer=OuterRef("answer"))),
        ~Exists(judges.exclude(rubric_version=OuterRef("rubric_version"))),
    )


def _answer_sets(keys: Collection[int]) -> dict[int, tuple[int, str]]:
    """The newest run over each answer set, and who answered. One query where there are any."""
    version = "system_version__version"
    rows = AnswerSet.objects.filter(pk__in=keys).annotate(run=Max("runs"))
    told = rows.values_list("pk", "run", "system_version__system__name", version)
    return {pk: (newest or 0, f"{system} v{number}") for pk, newest, system, number in told}
