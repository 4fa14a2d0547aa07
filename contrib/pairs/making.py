"""Comparisons: finding and authorising them, making them from two runs over the same questions or from a file, and
people rating their pairs: everybody in an order of their own, with sides by chance, one decision for a pair."""

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
from evaluation.core.errors import InvalidFile, Problem, Refused
from evaluation.core.roles import Action
from evaluation.formats.rating_rows import PairRow, Rater
from evaluation.formats.reading import read_ratings
from evaluation.models import Answer, Project, Run, User
from review.evidence.answers import new_seed
from review.queues.access import NamedAccess

PAIR_SETS = NamedAccess(PairSet.objects)


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
    """Draw so many questions at random that both runs answered, and pair their answers. Everybody named rates each
    pair. Of several samples the first is compared.

    :raises Refused: ``pairs_same_answers``, ``several_projects``, ``no_shared_answers``, ``no_reviewers``,
        ``not_in_project``, ``pair_set_exists``.
    """
    people = list(dict.fromkeys(reviewers))
    _check(run_a, run_b, people, name)
    chosen = _draw(run_a, run_b, size, seed := new_seed() if seed is None else seed)
    made = PairSet.objects.create(
        project_id=run_a.project_id, name=name, guideline=guideline, run_a=run_a, run_b=run_b, seed=seed, created_by=by
    )
    PairMember.objects.bulk_create(PairMember(pair_set=made, reviewer=person) for person in people)
    Pair.objects.bulk_create(_pair(made, place, a, b) for place, (a, b) in enumerate(chosen, start=1))
    audit.record(by, "pairs_made", made, runs=[run_a.pk, run_b.pk], pairs=len(chosen))
    return made


def close_pairs(found: PairSet, *, by: User) -> None:
    """Take no further preferences."""
    found.closed_at = timezone.now()
    found.save(update_fields=["closed_at"])
    audit.record(by, "pairs_closed", found)


def reopen_pairs(found: PairSet, *, by: User) -> None:
    """Take preferences again."""
    found.closed_at = None
    found.save(update_fields=["closed_at"])
    audit.record(by, "pairs_reopened", found)


def _check(run_a: Run, run_b: Run, people: Sequence[User], name: str) -> None:
    if run_a.answer_set_id == run_b.answer_set_id:
        raise Refused("pairs_same_answers")
    if run_a.project_id != run_b.project_id:
        raise Refused("several_projects")
    if not people:
        raise Refused("no_reviewers")
    outside = [one.username for one in people if not access.may(one, run_a.project_id, Action.RATE)]
    if outside:
        raise Refused("not_in_project", people=", ".join(outside))
    if PairSet.objects.filter(project=run_a.project_id, name=name).exists():
        raise Refused("pair_set_exists", name=name)


def _draw(run_a: Run, run_b: Run, size: int, seed: int) -> list[tuple[Answer, Answer]]:
    theirs = _answers(run_b)
    shared = [(answer, theirs[key]) for key, answer in sorted(_answers(run_a).items()) if key in theirs]
    if not shared:
        raise Refused("no_shared_answers")
    return Random(f"pairs {seed}").sample(shared, min(size, len(shared)))


def _answers(run: Run) -> dict[str, Answer]:
    """The first answer to each question by the question's id."""
    answers = Answer.objects.filter(answer_set=run.answer_set_id, status="ok").order_by("-sample", "round")
    chosen = answers.select_related("question", "answer_set__system_version__system")
    return {answer.question.external_id: answer for answer in chosen}  # the lowest sample and its last round stay


def _pair(made: PairSet, place: int, a: Answer, b: Answer) -> Pair:
    references = a.question.read().references
    return Pair(
        pair_set=made,
        external_id=a.question.external_id,
        position=place,
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


class Imported(NamedTuple):
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


def pair_set_named(name: str) -> PairSet:
    """The comparison of this id or name.

    :raises CommandError: exit code 2, when there is none or there are several of the name.
    """
    sets = PairSet.objects.select_related("project")
    found = list(sets.filter(pk=name) if name.isdigit() else sets.filter(name=name))
    if len(found) != 1:
        raise CommandError(f"{len(found)} comparisons are named {name!r}", returncode=2)
    return found[0]


LEAST, MOST = -2, 2
LONGEST_REASON = 5000


class Card(NamedTuple):
    """A pair as one person sees it: ``swapped`` puts B on the left. ``chosen`` is the person's preference so far, from
    -2 (left much better) to 2 (right much better), and ``stands`` the primary key of it, 0 without one."""

    pair: Pair
    swapped: bool
    chosen: float | None
    reason: str
    rated: int
    pairs: int
    stands: int = 0

    @property
    def left(self) -> str:
        """The answer on the left."""
        return self.pair.text_b if self.swapped else self.pair.text_a

    @property
    def right(self) -> str:
        """The answer on the right."""
        return self.pair.text_a if self.swapped else self.pair.text_b


def card_of(found: PairSet, person: User, pair_id: int | None = None) -> Card | None:
    """The pair asked for, else the person's next one without a preference; ``None`` when all are rated (or there is no
    such pair). Two queries."""
    pairs = sorted(found.pairs.all(), key=lambda pair: _number("order", found.seed, pair.pk, person.pk))
    given = newest_of(found, person)
    chosen = next((p for p in pairs if (p.pk == pair_id if pair_id else p.pk not in given)), None)
    if chosen is None:
        return None
    swapped, mine = is_swapped(found, chosen, person), given.get(chosen.pk)
    value = None if mine is None or mine.value is None else (-mine.value if swapped else mine.value)
    stands = mine.pk if mine else 0
    return Card(chosen, swapped, value, mine.reason if mine else "", len(given), len(pairs), stands)


def newest_of(found: PairSet, person: User) -> dict[int, Preference]:
    """The person's preferences by pair."""
    rows = Preference.objects.filter(pair__pair_set=found, rater=person).order_by("round", "id")
    return {row.pair_id: row for row in rows}


def last_rated(found: PairSet, person: User) -> int | None:
    """The pair the person rated last, to change their mind."""
    rows = Preference.objects.filter(pair__pair_set=found, rater=person).order_by("-id")
    return rows.values_list("pair_id", flat=True).first()


def is_swapped(found: PairSet, pair: Pair, person: User) -> bool:
    """Whether this person sees B on the left: by chance, and the same each time."""
    return bool(_number("side", found.seed, pair.pk, person.pk) & 1)


@transaction.atomic
def prefer(
    found: PairSet, pair: Pair, person: User, value: int, *, reason: str = "", seconds: float | None = None
) -> Preference:
    """Store a preference as it was seen: -2 (left much better) to 2 (right much better). The same one twice is one
    decision; another one is a new row that counts instead.

    :raises Refused: ``pairs_closed``; ``preference_range``; ``reason_too_long``.
    """
    PairMember.objects.select_for_update().get(pair_set=found, reviewer=person)  # a person's requests take turns
    if PairSet.objects.values_list("closed_at", flat=True).get(pk=found.pk) is not None:
        raise Refused("pairs_closed")
    if not LEAST <= value <= MOST:
        raise Refused("preference_range")
    if len(reason) > LONGEST_REASON:
        raise Refused("reason_too_long", length=len(reason), limit=LONGEST_REASON)
    swapped = is_swapped(found, pair, person)
    kept = float(-value if swapped else value)
    before = Preference.objects.filter(pair=pair, rater=person).order_by("-round").first()
    if before is not None and (before.value, before.reason) == (kept, reason):
        return before
    return Preference.objects.create(
        pair=pair,
        rater=person,
        value=kept,
        reason=reason,
        swapped=swapped,
        seconds=seconds,
        origin=content_hash(["preference", pair.pk, "preference", person.pk]),
        round=before.round + 1 if before else 0,
    )


def _number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")
