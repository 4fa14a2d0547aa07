"""Comparisons: creation from two runs or a file, and preferences of people, each with own order, random sides and one
decision per pair."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from contrib.pairs.models import Pair, PairMember, PairSet, Preference
from evaluation.accounts import access, audit
from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError, InvalidFile, Problem
from evaluation.core.roles import Action
from evaluation.formats.rating_rows import PairRow, Rater
from evaluation.formats.reading import read_ratings
from evaluation.models import Answer, Project, Run, User
from review.evidence.answers import new_seed
from review.queues.access import MemberAccess

PAIR_SETS = MemberAccess(PairSet.objects)


@transaction.atomic
def make_pairs(
    run_a: Run,
    run_b: Run,
    *,
    name: str,
    reviewers: Sequence[User],
    size: int = 30,
    guideline: str = "",
    seed: int | None = None,
    by: User | None = None,
) -> PairSet:
    """Create a comparison: draw ``size`` random questions that both runs answered and pair the answers. Each reviewer
    rates every pair. Of several samples the first is used.

    :raises DomainError: ``pairs_same_answers``, ``several_projects``, ``no_shared_answers``, ``no_reviewers``,
    ``not_in_project``, ``pair_set_exists``."""
    people = list(dict.fromkeys(reviewers))
    _check_comparison(run_a, run_b, people, name)
    answer_pairs = _draw_answer_pairs(run_a, run_b, size, seed := new_seed() if seed is None else seed)
    pair_set = PairSet.objects.create(
        project_id=run_a.project_id, name=name, guideline=guideline, run_a=run_a, run_b=run_b, seed=seed, created_by=by
    )
    PairMember.objects.bulk_create(PairMember(pair_set=pair_set, reviewer=person) for person in people)
    Pair.objects.bulk_create(_pair(pair_set, position, a, b) for position, (a, b) in enumerate(answer_pairs, start=1))
    audit.record(by, "pairs_made", pair_set, runs=[run_a.pk, run_b.pk], pairs=len(answer_pairs))
    return pair_set


def close_pairs(pair_set: PairSet, *, by: User) -> None:
    """Stop taking preferences."""
    pair_set.closed_at = timezone.now()
    pair_set.save(update_fields=["closed_at"])
    audit.record(by, "pairs_closed", pair_set)


def reopen_pairs(pair_set: PairSet, *, by: User) -> None:
    pair_set.closed_at = None
    pair_set.save(update_fields=["closed_at"])
    audit.record(by, "pairs_reopened", pair_set)


def _check_comparison(run_a: Run, run_b: Run, people: Sequence[User], name: str) -> None:
    if run_a.answer_set_id == run_b.answer_set_id:
        raise DomainError("pairs_same_answers")
    if run_a.project_id != run_b.project_id:
        raise DomainError("several_projects")
    if not people:
        raise DomainError("no_reviewers")
    non_reviewers = [person.username for person in people if not access.may(person, run_a.project_id, Action.RATE)]
    if non_reviewers:
        raise DomainError("not_in_project", people=", ".join(non_reviewers))
    if PairSet.objects.filter(project=run_a.project_id, name=name).exists():
        raise DomainError("pair_set_exists", name=name)


def _draw_answer_pairs(run_a: Run, run_b: Run, size: int, seed: int) -> list[tuple[Answer, Answer]]:
    answers_b = _first_answers(run_b)
    answer_pairs = [
        (answer, answers_b[key]) for key, answer in sorted(_first_answers(run_a).items()) if key in answers_b
    ]
    if not answer_pairs:
        raise DomainError("no_shared_answers")
    return Random(f"pairs {seed}").sample(answer_pairs, min(size, len(answer_pairs)))


def _first_answers(run: Run) -> dict[str, Answer]:
    """First answer to each question by the question's id."""
    answers = Answer.objects.filter(answer_set=run.answer_set_id, status="ok").order_by("-sample", "round")
    rows = answers.select_related("question", "answer_set__system_version__system")
    # Later rows overwrite earlier ones, so the lowest sample and its last round remain.
    return {answer.question.external_id: answer for answer in rows}


def _pair(pair_set: PairSet, position: int, a: Answer, b: Answer) -> Pair:
    references = a.question.read().references
    return Pair(
        pair_set=pair_set,
        external_id=a.question.external_id,
        position=position,
        question=a.question,
        answer_a=a,
        answer_b=b,
        question_text=a.question.read().text,
        reference=references[0] if references else "",
        system_a=a.answer_set.system_version.system.name,
        system_b=b.answer_set.system_version.system.name,
        text_a=a.text,
        text_b=b.text,
    )


class PairImport(NamedTuple):
    """Result of an import: new pairs, preferences by people and judges, failures, and unchanged rows."""

    pair_set: int
    pairs: int
    human: int
    judge: int
    failed: int
    unchanged: int


def import_pairs(project: Project, content: bytes, file_name: str, name: str, *, by: User | None = None) -> PairImport:
    """Import a file into the set of this name, which is created if missing. Repeated rows are skipped; a row with
    another value supersedes the earlier one.

    :raises InvalidFile: for a bad row, a row without ``pair_id``, and a pair whose texts differ from the stored ones;
    nothing is stored."""
    file = read_ratings(content, file_name, scales={})
    problems = [Problem("pair_id_missing", file_name, row.line, "pair_id") for row in file.ratings[:1]]
    if problems:
        raise InvalidFile(problems)
    with transaction.atomic():
        pair_set, _ = PairSet.objects.get_or_create(project=project, name=name, defaults={"created_by": by})
        pairs, new_pair_count = _store_pairs(pair_set, file.pairs, file_name)
        rows = {
            row.origin: row for row in (_preference_row(pairs[pair_row.pair_id], pair_row) for pair_row in file.pairs)
        }
        new_preferences = _new_preferences(pair_set, rows)
        Preference.objects.bulk_create(new_preferences, batch_size=1000)
        audit.record(by, "pairs_imported", pair_set, pairs=new_pair_count, preferences=len(new_preferences))
    return PairImport(
        pair_set=pair_set.pk,
        pairs=new_pair_count,
        human=sum(not row.by_judge for row in new_preferences),
        judge=sum(row.by_judge for row in new_preferences),
        failed=sum(row.value is None for row in new_preferences),
        unchanged=len(file.pairs) - len(new_preferences),
    )


def _store_pairs(pair_set: PairSet, rows: tuple[PairRow, ...], file_name: str) -> tuple[Mapping[str, Pair], int]:
    stored_pairs = {pair.external_id: pair for pair in pair_set.pairs.all()}
    new_pairs: dict[str, Pair] = {}
    problems: list[Problem] = []
    for row in rows:
        pair = Pair(
            pair_set=pair_set,
            external_id=row.pair_id,
            position=len(stored_pairs) + len(new_pairs) + 1,
            question_text=row.question or row.question_id,
            reference=_reference(row),
            system_a=row.answer_a.system,
            system_b=row.answer_b.system,
            text_a=row.answer_a.answer,
            text_b=row.answer_b.answer,
        )
        known_pair = stored_pairs.get(row.pair_id) or new_pairs.setdefault(row.pair_id, pair)
        if _pair_texts(known_pair) != _pair_texts(pair):
            problems.append(Problem("pair_differs", file_name, row.line, "pair_id", {"id": row.pair_id}))
    if problems:
        raise InvalidFile(problems)
    pairs_to_insert = [pair for name, pair in new_pairs.items() if name not in stored_pairs]
    Pair.objects.bulk_create(pairs_to_insert, batch_size=500)
    return {pair.external_id: pair for pair in pair_set.pairs.all()}, len(pairs_to_insert)


def _new_preferences(pair_set: PairSet, rows: Mapping[str, Preference]) -> list[Preference]:
    """Rows, by origin, that differ from their newest stored row; each gets the next round."""
    newest = {row.origin: row for row in Preference.objects.filter(pair__pair_set=pair_set).order_by("round")}
    new_rows = []
    for origin, row in rows.items():
        previous = newest.get(origin)
        if previous is None or (previous.value, previous.failure, previous.reason) != (
            row.value,
            row.failure,
            row.reason,
        ):
            row.round = previous.round + 1 if previous else 0
            new_rows.append(row)
    return new_rows


def _pair_texts(pair: Pair) -> tuple[str, ...]:
    return pair.question_text, pair.system_a, pair.system_b, pair.text_a, pair.text_b


def _reference(row: PairRow) -> str:
    reference = row.metadata.get("reference_answer", "")
    return reference if isinstance(reference, str) else ""


def _preference_row(pair: Pair, row: PairRow) -> Preference:
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


def find_pair_set(name: str) -> PairSet:
    """Find a comparison by id or name.

    :raises CommandError: with exit code 2, if none or several match."""
    sets = PairSet.objects.select_related("project")
    matches = list(sets.filter(pk=name) if name.isdigit() else sets.filter(name=name))
    if len(matches) != 1:
        raise CommandError(f"{name!r} matches {len(matches)} comparisons. Use the id of one.", returncode=2)
    return matches[0]


MIN_PREFERENCE, MAX_PREFERENCE = -2, 2
MAX_REASON_LENGTH = 5000


class PairCard(NamedTuple):
    """A pair for one person: ``swapped`` shows B on the left. ``preference`` is the person's current one, from -2 (left
    much better) to 2 (right much better), and ``preference_id`` its primary key, 0 without one."""

    pair: Pair
    swapped: bool
    preference: float | None
    reason: str
    rated: int
    pairs: int
    preference_id: int = 0

    @property
    def left(self) -> str:
        return self.pair.text_b if self.swapped else self.pair.text_a

    @property
    def right(self) -> str:
        return self.pair.text_a if self.swapped else self.pair.text_b


def pair_card(pair_set: PairSet, person: User, pair_id: int | None = None) -> PairCard | None:
    """Return the requested pair, else the person's next unrated one; ``None`` if all are rated, or the pair does not
    exist. Two queries."""
    pairs = sorted(pair_set.pairs.all(), key=lambda pair: _hashed_number("order", pair_set.seed, pair.pk, person.pk))
    own_preferences = newest_preferences(pair_set, person)
    next_pair = next((p for p in pairs if (p.pk == pair_id if pair_id else p.pk not in own_preferences)), None)
    if next_pair is None:
        return None
    swapped, own_preference = is_swapped(pair_set, next_pair, person), own_preferences.get(next_pair.pk)
    value = (
        None
        if own_preference is None or own_preference.value is None
        else (-own_preference.value if swapped else own_preference.value)
    )
    preference_id = own_preference.pk if own_preference else 0
    return PairCard(
        next_pair,
        swapped,
        value,
        own_preference.reason if own_preference else "",
        len(own_preferences),
        len(pairs),
        preference_id,
    )


def newest_preferences(pair_set: PairSet, person: User) -> dict[int, Preference]:
    """The person's newest preferences by pair."""
    rows = Preference.objects.filter(pair__pair_set=pair_set, rater=person).order_by("round", "id")
    return {row.pair_id: row for row in rows}


def last_rated_pair(pair_set: PairSet, person: User) -> int | None:
    """Primary key of the pair that the person rated last."""
    rows = Preference.objects.filter(pair__pair_set=pair_set, rater=person).order_by("-id")
    return rows.values_list("pair_id", flat=True).first()


def is_swapped(pair_set: PairSet, pair: Pair, person: User) -> bool:
    """Return whether the person sees B on the left: random, but fixed per person and pair."""
    return bool(_hashed_number("side", pair_set.seed, pair.pk, person.pk) & 1)


@transaction.atomic
def store_preference(
    pair_set: PairSet, pair: Pair, person: User, value: int, *, reason: str = "", seconds: float | None = None
) -> Preference:
    """Store a preference as shown: -2 (left much better) to 2 (right much better). An equal one is not stored twice; a
    different one supersedes the earlier row.

    :raises DomainError: ``pairs_closed``; ``password_by_others_link``; ``preference_range``; ``reason_too_long``."""
    # Lock the membership, so that a person's requests run one after the other.
    PairMember.objects.select_for_update().get(pair_set=pair_set, reviewer=person)
    if PairSet.objects.values_list("closed_at", flat=True).get(pk=pair_set.pk) is not None:
        raise DomainError("pairs_closed")
    if person.is_distrusted:
        raise DomainError("password_by_others_link")
    if not MIN_PREFERENCE <= value <= MAX_PREFERENCE:
        raise DomainError("preference_range")
    if len(reason) > MAX_REASON_LENGTH:
        raise DomainError("reason_too_long", length=len(reason), limit=MAX_REASON_LENGTH)
    swapped = is_swapped(pair_set, pair, person)
    stored_value = float(-value if swapped else value)
    previous = Preference.objects.filter(pair=pair, rater=person).order_by("-round").first()
    if previous is not None and (previous.value, previous.reason) == (stored_value, reason):
        return previous
    return Preference.objects.create(
        pair=pair,
        rater=person,
        value=stored_value,
        reason=reason,
        swapped=swapped,
        seconds=seconds,
        origin=content_hash(["preference", pair.pk, "preference", person.pk]),
        round=previous.round + 1 if previous else 0,
    )


def _hashed_number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")
