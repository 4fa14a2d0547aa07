"""Pairs with preferences from a file: the questions and answers come with it, so that no run has to be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from evaluation.accounts import audit
from evaluation.core.canonical import content_hash
from evaluation.core.errors import InvalidFile, Problem
from evaluation.files.pair_rows import PairRow
from evaluation.files.rating_values import Rater
from evaluation.files.reading import read_ratings
from evaluation.models import Project, User
from review.models import Pair, PairSet, Preference


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: pairs made, preferences by people and judges, rows that were there already."""

    pair_set: int
    pairs: int
    human: int
    judge: int
    failed: int
    unchanged: int


def import_pairs(project: Project, content: bytes, file_name: str, name: str, *, by: User | None = None) -> Imported:
    """Read the file into the set of that name, made where it is not there; the same row twice is one row, and one that
    says something else than before counts instead of it.

    :raises InvalidFile: for a bad row, a row without ``pair_id``, and a pair whose texts differ from those it has;
        nothing is stored then.
    """
    file = read_ratings(content, file_name, scales={})
    problems = [Problem("pair_id_missing", file_name, row.line, "pair_id") for row in file.ratings[:1]]
    if problems:
        raise InvalidFile(problems)
    with transaction.atomic():
        found, _ = PairSet.objects.get_or_create(project=project, name=name, defaults={"created_by": by})
        pairs, made = _pairs(found, file.pairs, file_name)
        rows = {row.origin: row for row in (_preference(pairs[one.pair_id], one) for one in file.pairs)}
        fresh = _fresh(found, rows)
        Preference.objects.bulk_create(fresh, batch_size=1000)
        audit.record(by, "pairs_imported", found, pairs=made, preferences=len(fresh))
    return Imported(
        pair_set=found.pk,
        pairs=made,
        human=sum(not row.by_judge for row in fresh),
        judge=sum(row.by_judge for row in fresh),
        failed=sum(row.value is None for row in fresh),
        unchanged=len(file.pairs) - len(fresh),
    )


def _pairs(found: PairSet, rows: tuple[PairRow, ...], file_name: str) -> tuple[Mapping[str, Pair], int]:
    existing = {pair.external_id: pair for pair in found.pairs.all()}
    wanted: dict[str, Pair] = {}
    problems: list[Problem] = []
    for row in rows:
        pair = Pair(
            pair_set=found,
            external_id=row.pair_id,
            position=len(existing) + len(wanted) + 1,
            question_text=row.question or row.question_id,
            reference=_reference(row),
            system_a=row.answer_a.system,
            system_b=row.answer_b.system,
            text_a=row.answer_a.answer,
            text_b=row.answer_b.answer,
        )
        before = existing.get(row.pair_id) or wanted.setdefault(row.pair_id, pair)
        if _texts(before) != _texts(pair):
            problems.append(Problem("pair_differs", file_name, row.line, "pair_id", {"id": row.pair_id}))
    if problems:
        raise InvalidFile(problems)
    fresh = [pair for name, pair in wanted.items() if name not in existing]
    Pair.objects.bulk_create(fresh, batch_size=500)
    return {pair.external_id: pair for pair in found.pairs.all()}, len(fresh)


def _fresh(found: PairSet, rows: Mapping[str, Preference]) -> list[Preference]:
    """The rows, by origin, that say something new; each in the round after what was said before."""
    before = {row.origin: row for row in Preference.objects.filter(pair__pair_set=found).order_by("round")}
    fresh = []
    for origin, row in rows.items():
        known = before.get(origin)
        if known is None or (known.value, known.failure, known.reason) != (row.value, row.failure, row.reason):
            row.round = known.round + 1 if known else 0
            fresh.append(row)
    return fresh


def _texts(pair: Pair) -> tuple[str, ...]:
    return pair.question_text, pair.system_a, pair.system_b, pair.text_a, pair.text_b


def _reference(row: PairRow) -> str:
    said = row.metadata.get("reference_answer", "")
    return said if isinstance(said, str) else ""


def _preference(pair: Pair, row: PairRow) -> Preference:
    by_judge = row.origin.rater is Rater.JUDGE
    return Preference(
        pair=pair,
        metric=row.metric,
        by_judge=by_judge,
        author=row.origin.author,
        value=row.value,
        failure=row.failure,
        reason=row.reason,
        origin=content_hash(["imported", pair.pk, row.metric, by_judge, row.origin.author]),
    )
